# Fetch: may a tool send a request out? First what nothing lifts: https, a method that the grant names, a tap that is granted as a
# tool, no address of this machine's network turned inward (the host resolves and classifies them). Then reach: what the URL
# says leaves, so that the session's label must stay within the ceiling of some hosts that the name matched.
package amem

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "fetch"
	input.grant.known == true
	_may_leave
	_reaches
} else := {"allow": false, "hold": false, "reasons": sort(_fetch_refused)} if input.action == "fetch"

_may_leave if {
	input.scheme == "https"
	input.tool == true
	input.method in input.methods
	count(input.addresses) > 0
	every address in input.addresses {
		address.inward == false
	}
}

_may_leave if {
	input.loopback == true
	input.tool == true
	input.method in input.methods
	count(input.addresses) > 0
	every address in input.addresses {
		address.loopback == true
	}
}

_reaches if {
	some ceiling in input.reach
	data.labels[input.label] <= data.labels[ceiling]
}

_fetch_refused contains {"code": "unknown_domain", "domain": input.domain} if input.grant.known == false

_fetch_refused contains {"code": "not_https", "scheme": input.scheme} if {
	input.scheme != "https"
	not _may_leave
}

_fetch_refused contains {"code": "not_a_tool", "tap": input.tap} if input.tool == false

_fetch_refused contains {"code": "method_not_granted", "tap": input.tap, "method": input.method} if not _methods[input.method]

_fetch_refused contains {"code": "no_address", "host": input.host} if count(input.addresses) == 0

_fetch_refused contains {"code": "inward_address", "host": input.host, "address": address.address} if {
	some address in input.addresses
	address.inward == true
	not _may_leave
}

_fetch_refused contains {"code": "host_not_granted", "tap": input.tap, "host": input.host} if count(input.reach) == 0

_fetch_refused contains {"code": "label_over_reach", "label": input.label, "host": input.host, "tap": input.tap} if {
	count(input.reach) > 0
	not _reaches
}

_methods := {method | some method in input.methods}
