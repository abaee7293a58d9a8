"""The official Python SDK 2: probing, or 2026-07-28 alone, with a listen stream.   python2.py MODE SERVER [ARG...]"""
import asyncio
import os
import sys

import anyio
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

import checks
from checks import WATCHED, both_halves, check


# What the server's instructions and docs/agents.md tell a model to write.
TAUGHT = [
    "(ls .).where(.size > 10kb).sort_by(.size).map(.name)",
    "let r = (^false); r.ok; r.status; r.stderr; r.stdout",
    "(^echo hi).out",
    "let name = 'w'; \"{name}\"; [1, 2].map(x => x + 1); {a: 1}; 1..10; 5s; 10kb",
    "let c = true; if c { 1 } else { 2 }; for x in 1..3 { echo (x) }; fn f(x) { x }; f(1)",
    "sh { printf 'b\\na' | sort }",
    "env.NAME = \"v\"; echo '{\"items\": [1]}' > data.json",
    "json.parse(path(\"data.json\").read()).items.first(); \"text\".lines(); {x: 1}.json()",
    "for f in glob(\"**/*.json\") { echo (f.size) }",
    "let t = spawn { 1 + 1 }; t.await()",
    "with cwd: \"/\", env: {A: \"1\"} { pwd }",
]


async def refused(name, call):
    try:
        await call
        check(False, name, "no error")
    except MCPError as error:
        # Kernel codes would be read as codes of MCP itself.
        check(error.code == -32602, name, error.error)


async def main():
    mode = sys.argv[1]
    server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:], env=dict(os.environ))
    async with Client(server, mode=mode, read_timeout_seconds=30) as client:
        check(client.protocol_version == "2026-07-28", "the version", client.protocol_version)
        tools = await client.list_tools()
        check(len(tools.tools) == 13 and tools.ttl_ms > 0 and tools.cache_scope == "public", "tools/list", tools)
        result = await client.call_tool("shoal_exec", {"src": "'hi'"})
        uri = both_halves("shoal_exec", result.structured_content, result.content)
        wrong = await client.call_tool("shoal_exec", {})
        check(wrong.is_error and wrong.structured_content["code"] == -32602, "a missing argument is a result", wrong)
        for source in TAUGHT:
            result = await client.call_tool("shoal_exec", {"src": source})
            check(not result.is_error, f"as taught: {source}", result.structured_content)
        await refused("an unknown tool is an error", client.call_tool("nope", {}))
        value = await client.read_resource(uri)
        check(value.ttl_ms == 0 and value.cache_scope == "private", "resources/read", value)
        await refused("a missing resource is an error", client.read_resource("shoal://nope/1"))
        await refused("an unknown terminal is an error", client.read_resource("shoal://pty/999"))

        async with client.listen(resource_subscriptions=[WATCHED, "shoal://out/1"]) as stream:
            check(stream.honored.resource_subscriptions == [WATCHED], "the acknowledged subset", stream.honored)
            await client.call_tool("shoal_exec", {"src": "1"})
            with anyio.fail_after(30):
                update = await stream.__anext__()
            check(update.uri == WATCHED, "an update", update)
        log = await client.read_resource(WATCHED)
        check(log.contents[0].mime_type == "application/vnd.asyncai.events+json", "an event log", log.contents[0])
    check(True, "closed")


asyncio.run(main())
sys.exit(checks.failures)
