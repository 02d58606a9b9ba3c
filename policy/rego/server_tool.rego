# Tools at the provider: may a call have tools run at the provider, where the sandbox does not hold them? Only those
# that the grant names.
package amem

decision := {"allow": true, "hold": false, "reasons": []} if {
	input.action == "server_tool"
	count(input.tools) > 0
	every tool in input.tools {
		tool in input.grant.server_tools
	}
} else := {"allow": false, "hold": false, "reasons": sort(_tool_refused)} if input.action == "server_tool"

_tool_refused contains {
	"code": "server_tool",
	"tool": tool,
	"destination": input.destination,
	"principal": input.principal,
} if {
	some tool in input.tools
	not _granted_tools[tool]
}

_granted_tools := {tool | some tool in input.grant.server_tools}
