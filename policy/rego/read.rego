# Reads: what may a session be served? The filter is pushed into every query: up to the lower of what the session handles and its grant.
package amem

decision := {"allow": true, "hold": false, "reasons": [], "filter": {"domains": [input.domain], "max_label": lower, "min_tier": "raw"}} if {
	input.action == "read"
	input.grant.known == true
	labels := data.labels
	labels[input.handling] <= labels[input.grant.read]
	lower := input.handling
} else := {"allow": true, "hold": false, "reasons": [], "filter": {"domains": [input.domain], "max_label": lower, "min_tier": "raw"}} if {
	input.action == "read"
	input.grant.known == true
	labels := data.labels
	labels[input.grant.read] < labels[input.handling]
	lower := input.grant.read
} else := {"allow": false, "hold": false, "reasons": sort(domain | grant)} if {
	input.action == "read"
	domain := {{"code": "unknown_domain"} | input.grant.known == false}
	grant := {{"code": "no_read_grant"} |
		input.grant.known == true
		input.grant.read == "none"
	}
}
