"""Talks to a server with chuk-mcp, a client that shares no code with the SDK.

Run it as python -m tests.support.mcp_client.chuk TARGET.

TARGET is a URL (the token comes in MCP_BEARER_TOKEN), or - and a command. Prints what it saw, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from importlib import import_module
from typing import Any


async def main(target: str, command: list[str]) -> dict[str, Any]:
    if target == "-":
        stdio: Any = import_module("chuk_mcp.transports.stdio")
        connection = stdio.stdio_client(
            stdio.StdioParameters(command=command[0], args=command[1:], env=dict(os.environ))
        )
    else:
        http: Any = import_module("chuk_mcp.transports.http")
        connection = http.http_client(http.StreamableHTTPParameters(url=target))
    messages = "chuk_mcp.protocol.messages"
    initialize: Any = import_module(f"{messages}.initialize")
    tools: Any = import_module(f"{messages}.tools")
    resources: Any = import_module(f"{messages}.resources")
    async with connection as streams:
        hello = await initialize.send_initialize(*streams)
        listed = await tools.send_tools_list(*streams)
        found = await tools.send_tools_call(*streams, "memory_search", {"query": "port of staging"})
        refused = await tools.send_tools_call(*streams, "memory_search", {"query": "port", "corpus": "moon"})
        cards = await resources.send_resources_list(*streams)
        card = await resources.send_resources_read(*streams, cards.resources[0].uri)
        return {
            "server": hello.serverInfo.name,
            "instructions": hello.instructions,
            "tools": [tool.name for tool in listed.tools],
            "found": found.model_dump(),
            "refused": refused.model_dump(),
            "card": card.model_dump(),
        }


if __name__ == "__main__":
    seen = asyncio.run(main(sys.argv[1], sys.argv[2:]))
    sys.stdout.write(json.dumps(seen, default=str))
