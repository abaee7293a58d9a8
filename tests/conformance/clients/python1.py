"""The official Python SDK 1: the 2025 era over stdio.   python1.py SERVER [ARG...]"""
import asyncio
import os
import sys
from datetime import timedelta

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import McpError

import checks
from checks import WATCHED, both_halves, check


async def refused(name, call, code):
    try:
        await call
        check(False, name, "no error")
    except McpError as error:
        check(error.error.code == code, name, error.error)


async def main():
    updates = asyncio.Queue()

    async def on_message(message):
        if isinstance(message, types.ServerNotification) and isinstance(message.root, types.ResourceUpdatedNotification):
            await updates.put(message.root.params)

    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with stdio_client(server) as (read, write):
        async with ClientSession(read, write, timedelta(seconds=30), message_handler=on_message) as session:
            hello = await session.initialize()
            check(hello.protocolVersion in ("2025-06-18", "2025-11-25") and hello.instructions, "initialize", hello)
            tools = [tool.name for tool in (await session.list_tools()).tools]
            check(len(tools) == 13 and tools[0] == "shoal_exec", "tools/list", tools)

            result = await session.call_tool("shoal_exec", {"src": "'hi'"})
            uri = both_halves("shoal_exec", result.structuredContent, result.content)
            listed = await session.call_tool("shoal_pty_list", {})
            check(not listed.isError and "ptys" in listed.structuredContent, "shoal_pty_list", listed)
            wrong = await session.call_tool("shoal_exec", {"source": "1"})
            check(wrong.isError and wrong.structuredContent["code"] == -32602, "a wrong argument is a result", wrong)
            await refused("an unknown tool is an error", session.call_tool("nope", {}), -32602)

            roots = (await session.list_resources()).resources
            check([str(root.uri) for root in roots][:2] == ["shoal://journal", "shoal://jobs"], "resources/list", roots)
            templates = (await session.list_resource_templates()).resourceTemplates
            check(len(templates) >= 12, "resources/templates/list", templates)
            value = await session.read_resource(uri)
            check(value.contents[0].mimeType == "application/json", "resources/read", value)
            await refused("a missing resource is an error", session.read_resource("shoal://nope/1"), -32602)

            await session.subscribe_resource(WATCHED)
            await session.call_tool("shoal_exec", {"src": "1"})
            update = await asyncio.wait_for(updates.get(), 30)
            check(str(update.uri) == WATCHED and update.model_extra.get("seq") is not None, "an update with its event", update)
            await session.unsubscribe_resource(WATCHED)
            await session.send_ping()
    check(True, "closed")


asyncio.run(main())
sys.exit(checks.failures)
