# Judging a proposal: a person judges a proposal, and nobody approves what he proposed. The approval is of one version.
# A policy comes into force by the owner's word: he approves it, or proposed it.
package amem

_judgements := {"approve", "decline"}

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action in _judgements
	_may_judge
} else := {"allow": false, "hold": false, "reasons": sort(_judge_refused)} if input.action in _judgements

_may_judge if {
	input.action == "decline"
	input.grant.write == true
	input.kind == "human"
}

_may_judge if {
	input.action == "approve"
	input.grant.write == true
	input.kind == "human"
	input.proposer != input.principal
	input.version == input.proposed
	_owner_says
}

_owner_says if input.type != "policy"

_owner_says if data.grants.owner in {input.principal, input.proposer}

_judge_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_judge_refused contains {"code": "no_write_grant", "principal": input.principal, "domain": input.domain} if {
	input.grant.known == true
	input.grant.write == false
}

_judge_refused contains {"code": "person_only", "principal": input.principal} if input.kind != "human"

_judge_refused contains {"code": "own_proposal", "principal": input.principal} if {
	input.action == "approve"
	input.proposer == input.principal
}

_judge_refused contains {
	"code": "version_changed",
	"entry": input.subject,
	"proposed": input.proposed,
	"version": input.version,
} if {
	input.action == "approve"
	input.version != input.proposed
}

_judge_refused contains {"code": "policy_by_owner", "principal": input.principal, "entry": input.subject} if {
	input.action == "approve"
	not _owner_says
}
