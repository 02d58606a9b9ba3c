# The owner's acts: to release a held write into the record as it was written, or drop it; to take an entry out of service, or
# everything that it reached; to erase one; to lower a label; to take a bundle in.
package amem

_owner_acts := {"release", "drop", "demote", "contain", "erase", "declassify", "import"}

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action in _owner_acts
	input.grant.known == true
	input.principal == data.grants.owner
	input.principal == input.owner
} else := {"allow": false, "hold": false, "reasons": sort(_act_refused)} if input.action in _owner_acts

_act_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_act_refused contains {"code": "owner_only", "act": input.action, "principal": input.principal} if {
	input.principal != data.grants.owner
}
