# Writes: does an entry go into the record, into the quarantine, or back?
package amem

decision := _gated if {
	input.action == "write"
	input.grant.write == true
	_rank[input.classification] >= _rank[input.label]
	every entry in input.supersedes {
		entry.domain == input.domain
	}
} else := {"allow": false, "hold": false, "reasons": sort(_write_refused)} if input.action == "write"

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

_gated := {"allow": true, "hold": false, "reasons": []} if {
	input.principal == data.grants.owner
	input.principal == input.owner
} else := {"allow": true, "hold": false, "reasons": []} if {
	input.findings == []
	input.supersedes == []
} else := {"allow": true, "hold": false, "reasons": []} if {
	input.findings == []
	every entry in input.supersedes {
		entry.tier in {"raw", "curated"}
	}
	input.superseded_so_far + count(input.supersedes) <= input.max_supersedes
} else := {"allow": false, "hold": true, "review": "human", "reasons": sort(_write_held)}

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
	count(input.supersedes) > 0
	input.superseded_so_far + count(input.supersedes) > input.max_supersedes
}
