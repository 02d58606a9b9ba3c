# Promotions: who marks an entry curated, and who proposes it as verified? Curated is for anyone but its author. What a session has
# read may be in its why, and whoever reads the entry reads the why: so the entry is not below the session. The owner's word passes.
package amem

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "promote"
	_may_promote
} else := {"allow": false, "hold": false, "reasons": sort(_promote_refused)} if input.action == "promote"

_may_promote if {
	input.grant.write == true
	input.why == true
	input.to == "curated"
	input.tier == "raw"
	input.author != input.principal
	_why_fits
}

_may_promote if {
	input.grant.write == true
	input.why == true
	input.to == "verified"
	input.tier in {"raw", "curated"}
	_why_fits
}

_why_fits if data.labels[input.label] <= data.labels[input.classification]

_why_fits if input.principal == data.grants.owner

_promote_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_promote_refused contains {"code": "no_write_grant", "principal": input.principal, "domain": input.domain} if {
	input.grant.known == true
	input.grant.write == false
}

_promote_refused contains {"code": "no_why"} if input.why == false

_promote_refused contains {
	"code": "why_below_session",
	"entry": input.subject,
	"classification": input.classification,
	"label": input.label,
} if {
	not _why_fits
}

_promote_refused contains {"code": "promote_own", "principal": input.principal, "entry": input.subject} if {
	input.to == "curated"
	input.author == input.principal
}

_promote_refused contains {"code": "tier_not_lower", "entry": input.subject, "tier": input.tier} if {
	_tier[input.tier] >= _tier[input.to]
}

_tier := {"raw": 0, "curated": 1, "verified": 2}
