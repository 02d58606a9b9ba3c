# Model calls: may what a session has seen go to a destination? Two ceilings bind: the route's and that of grants.toml.
package amem

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "model_call"
	labels := data.labels
	labels[input.label] <= labels[input.ceiling]
	labels[input.label] <= labels[data.grants.destinations[input.destination].ceiling]
} else := {"allow": false, "hold": false, "reasons": sort((unknown | none) | over)} if {
	input.action == "model_call"
	granted := [found.ceiling | some name, found in data.grants.destinations; name == input.destination]
	ceilings := array.concat(granted, [input.ceiling])
	unknown := {{"code": "unknown_destination"} | granted == []}
	none := {{"code": "no_ceiling"} |
		granted != []
		null in ceilings
	}
	over := {{"code": "label_over_ceiling", "ceiling": ceiling} |
		some ceiling in ceilings
		data.labels[input.label] > data.labels[ceiling]
	}
}
