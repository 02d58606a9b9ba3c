# Model calls: may what a session has seen go to a destination? Two ceilings bind: the route's and that of grants.toml.
package amem

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "model_call"
	_rank[input.label] <= _rank[input.ceiling]
	_rank[input.label] <= _rank[data.grants.destinations[input.destination].ceiling]
} else := {"allow": false, "hold": false, "reasons": sort(_call_refused)} if input.action == "model_call"

_destination_known if data.grants.destinations[input.destination]

_ceilings contains input.ceiling

_ceilings contains data.grants.destinations[input.destination].ceiling

_call_refused contains {"code": "unknown_destination", "destination": input.destination} if not _destination_known

_call_refused contains {"code": "no_ceiling", "destination": input.destination} if {
	_destination_known
	some ceiling in _ceilings
	ceiling == null
}

_call_refused contains {
	"code": "label_over_ceiling",
	"label": input.label,
	"ceiling": ceiling,
	"destination": input.destination,
} if {
	some ceiling in _ceilings
	_rank[input.label] > _rank[ceiling]
}
