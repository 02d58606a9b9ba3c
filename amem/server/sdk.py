"""The MCP SDK's server over the tools of one session. Importing this takes most of a second: `app` does it in a thread, nobody else.

Stateless: each request stands alone, so that nothing of a client is held between two.
"""

from typing import Any

from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings

from amem import __version__
from amem.server import replies
from amem.typed import TYPE_CHECKING

if TYPE_CHECKING:
    from amem.server.app import McpApp


def manager(mcp: "McpApp", body_limit_bytes: int) -> StreamableHTTPSessionManager:
    """What answers the requests of a session's harness, once it is run."""
    listed = [
        types.Tool(
            name=name,
            description=tool.description,
            input_schema=dict(tool.schema),
            annotations=types.ToolAnnotations(read_only_hint=tool.reads, destructive_hint=False, open_world_hint=False),
        )
        for name, tool in mcp.table.items()
    ]

    async def list_tools(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        mcp.listed()
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: ServerRequestContext[Any], params: types.CallToolRequestParams) -> types.CallToolResult:
        reply = await mcp.call(params.name, params.arguments)
        blocks: list[types.ContentBlock] = [types.TextContent(type="text", text=text) for text in replies.blocks(reply)]
        return types.CallToolResult(content=blocks, is_error=reply.refused)

    server: Server[Any] = Server(
        "memory",
        version=__version__,
        instructions=mcp.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_prompts=_no_prompts,
        on_list_resources=_no_resources,
        on_list_resource_templates=_no_templates,
    )
    return StreamableHTTPSessionManager(
        server,
        stateless=True,
        json_response=True,
        max_request_body_size=body_limit_bytes,
        # A page that a name was rebound to sends another Host; "localhost" alone is what clients of a Unix socket send.
        security_settings=TransportSecuritySettings(allowed_hosts=["localhost", "localhost:*", "127.0.0.1", "127.0.0.1:*"]),
    )


# Empty, and there: several harnesses ask for them whatever the server says it has.


async def _no_prompts(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=[])


async def _no_resources(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
    return types.ListResourcesResult(resources=[])


async def _no_templates(_: ServerRequestContext[Any], __: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=[])
