"""The main job, driven by the official Python MCP client: two clients, one session, one cold kernel.   main_job.py SERVER [ARG...]"""
import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


def server():
    return StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ), cwd=os.getcwd())


async def call(session, name, **arguments):
    result = await session.call_tool(name, arguments)
    text = "\n".join(c.text for c in result.content if c.type == "text")
    assert text.strip(), f"{name}: the text half is empty"
    assert result.structuredContent is not None, f"{name}: the structured half is missing"
    return result, result.structuredContent, text


async def main():
    async with stdio_client(server()) as (r1, w1), stdio_client(server()) as (r2, w2):
        async with ClientSession(r1, w1) as one, ClientSession(r2, w2) as two:
            await one.initialize()
            tools = {t.name for t in (await one.list_tools()).tools}
            assert len(tools) == 13 and {"shoal_exec", "shoal_get"} <= tools, tools
            await two.initialize()

            _, got, text = await call(one, "shoal_exec", src="(ls .).where(.type == 'file').map(.name)")
            assert "a.txt" in text and "b.txt" in json.dumps(got), (got, text)

            await call(one, "shoal_exec", src="let shared = {answer: 42}")
            _, got, text = await call(two, "shoal_exec", src="shared.answer")
            assert "42" in text, (got, text)

            result, got, text = await call(one, "shoal_exec", src="^false")
            assert '"ok"' in json.dumps(got), got

            result, got, text = await call(one, "shoal_exec", src="range(0, 100000).collect()")
            ref = got["ref"]
            assert got["summary"]["cut"], got
            result, got, text = await call(one, "shoal_get", ref=ref, slice=[99998, 100000])
            assert "99999" in text and "99999" in json.dumps(got), (got, text)

            result, got, text = await call(one, "shoal_exec", src="sh { exit 7 }")
            assert "7" in text and "7" in json.dumps(got), (got, text)

            result, got, text = await call(one, "shoal_exec", src="let = 3")
            assert result.isError, got
            assert "span" in json.dumps(got), got
    print("ok   all good")


asyncio.run(main())
