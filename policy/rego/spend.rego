# Spend: is there room for a call under the limits of its destination? `spent` counts what was used, and what calls under way
# have reserved; `wanted` is what this call may come to. A limit that is null is none.
package amem

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "spend"
	_in_session
	_in_day
} else := {"allow": false, "hold": false, "reasons": sort(_spend_refused)} if input.action == "spend"

_in_session if input.limits.session == null

_in_session if input.spent.session + input.wanted <= input.limits.session

_in_day if input.limits.day == null

_in_day if input.spent.day + input.wanted <= input.limits.day

_spend_refused contains {
	"code": "spend_session",
	"destination": input.destination,
	"limit": input.limits.session,
	"left": max([0, input.limits.session - input.spent.session]),
	"wanted": input.wanted,
} if {
	is_number(input.limits.session)
	input.spent.session + input.wanted > input.limits.session
}

_spend_refused contains {
	"code": "spend_day",
	"zone": input.zone,
	"destination": input.destination,
	"limit": input.limits.day,
	"left": max([0, input.limits.day - input.spent.day]),
	"wanted": input.wanted,
} if {
	is_number(input.limits.day)
	input.spent.day + input.wanted > input.limits.day
}
