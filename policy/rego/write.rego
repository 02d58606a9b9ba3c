# Writes: does an entry go into the record, into the quarantine, or back? What the host says of `supersedes`: how many the session will
# have superseded with these (`superseding`, 0 where there are none), and which of them are `guarded`, that is neither raw nor curated,
# or `elsewhere`, in another domain.
package amem

# What passes the gates.
decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "write"
	input.findings == []
	input.guarded == []
	input.superseding <= input.max_supersedes
	input.grant.write == true
	labels := data.labels
	labels[input.classification] >= labels[input.label]
	input.elsewhere == []
} else := {"allow": true, "hold": false, "reasons": []} if {
	# The owner passes them.
	input.action == "write"
	input.grant.owner == true
	input.grant.write == true
	labels := data.labels
	labels[input.classification] >= labels[input.label]
	input.elsewhere == []
} else := {"allow": false, "hold": true, "review": "human", "reasons": sort((found | guarded) | many)} if {
	# What else may be written is held for the owner.
	input.action == "write"
	input.grant.write == true
	labels := data.labels
	labels[input.classification] >= labels[input.label]
	input.elsewhere == []
	found := {{"code": "scan_findings"} | input.findings != []}
	guarded := {{"code": "supersede_verified", "entry": entry} | some entry in input.guarded}
	many := {{"code": "too_many_superseded", "so_far": input.superseded_so_far, "limit": input.max_supersedes} |
		input.superseding > input.max_supersedes
	}
} else := {"allow": false, "hold": false, "reasons": sort(((domain | grant) | label) | other)} if {
	input.action == "write"
	domain := {{"code": "unknown_domain"} | input.grant.known == false}
	grant := {{"code": "no_write_grant"} |
		input.grant.known == true
		input.grant.write == false
	}
	label := {{"code": "label_below_session"} | data.labels[input.classification] < data.labels[input.label]}
	other := {{"code": "supersede_other_domain", "entry": one.entry, "other": one.other} | some one in input.elsewhere}
}
