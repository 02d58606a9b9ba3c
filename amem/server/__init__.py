"""The memory server: the tools of `amem.memory` over MCP, and the guard that hooks ask. The one door of the MCP SDK."""
