# Spend: is there room for a call under the limits of its destination? What the host says of it: the limits that it would go `over`, by
# what was used, what calls under way have reserved and what this one may come to. A limit that is null is none.
package amem

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "spend"
	input.over == []
} else := {"allow": false, "hold": false, "reasons": sort(over)} if {
	input.action == "spend"
	over := {{"code": concat("_", ["spend", one.scope]), "limit": one.limit, "left": one.left} | some one in input.over}
}
