# Writes: does an entry go into the record, into the quarantine, or back?
package amem

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "write"
	_may_write
	_gates_open
} else := {"allow": false, "hold": true, "review": "human", "reasons": sort(_write_held)} if {
	input.action == "write"
	_may_write
} else := {"allow": false, "hold": false, "reasons": sort(_write_refused)} if input.action == "write"

_may_write if {
	input.grant.write == true
	_rank[input.classification] >= _rank[input.label]
	every entry in input.supersedes {
		entry.domain == input.domain
	}
}

_write_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_write_refused contains {"code": "no_write_grant", "principal": input.principal, "domain": input.domain} if {
	input.grant.known == true
	input.grant.write == false
}

_write_refused contains {
	"code": "label_below_session",
	"classification": input.classification,
	"label": input.label,
} if {
	_rank[input.classification] < _rank[input.label]
}

_write_refused contains {
	"code": "supersede_other_domain",
	"entry": entry.id,
	"other": entry.domain,
	"domain": input.domain,
} if {
	some entry in input.supersedes
	entry.domain != input.domain
}

# The gates: what does not pass them is held for the owner. The owner passes.

_gates_open if {
	input.principal == data.grants.owner
	input.principal == input.owner
}

_gates_open if {
	count(input.findings) == 0
	every entry in input.supersedes {
		entry.tier in {"raw", "curated"}
	}
	_within_limit
}

_within_limit if count(input.supersedes) == 0

_within_limit if input.superseded_so_far + count(input.supersedes) <= input.max_supersedes

_write_held contains {"code": "scan_findings", "findings": input.findings} if count(input.findings) > 0

_write_held contains {"code": "supersede_verified", "entry": entry.id} if {
	some entry in input.supersedes
	entry.tier == "verified"
}

_write_held contains {
	"code": "too_many_superseded",
	"so_far": input.superseded_so_far,
	"limit": input.max_supersedes,
} if {
	not _within_limit
}
