# Reads: what may a session be served? The filter is pushed into every query.
package amem

decision := {"allow": true, "hold": false, "reasons": [], "filter": read_filter} if {
	input.action == "read"
	input.grant.known == true
	read_filter
} else := {"allow": false, "hold": false, "reasons": sort(_read_refused)} if input.action == "read"

# METADATA
# title: What an entry must meet to be served
read_filter := {"domains": [input.domain], "max_label": input.handling, "min_tier": "raw"} if {
	_rank[input.handling] <= _rank[input.grant.read]
} else := {"domains": [input.domain], "max_label": input.grant.read, "min_tier": "raw"} if {
	_rank[input.grant.read] < _rank[input.handling]
}

_read_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_read_refused contains {"code": "no_read_grant", "principal": input.principal, "domain": input.domain} if {
	input.grant.known == true
	input.grant.read == "none"
}
