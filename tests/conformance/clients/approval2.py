"""Approval by a form, with the official Python SDK 2: accepted, declined, and a client without forms.
approval2.py SERVER [ARG...]     The kernel's policy says `opaque = "ask"` and `approve = "client"`. The last plan, which
nobody is asked about, is printed as `PENDING plan:…`; a line on stdin says that somebody approved it elsewhere."""
import asyncio
import os
import sys

import mcp_types
from mcp import Client, StdioServerParameters

import checks
from checks import check

SOURCE = "sh { echo approved-$((40 + 2)) }"


def server():
    return StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))


async def plan(client):
    made = (await client.call_tool("shoal_plan", {"src": SOURCE})).structured_content
    check(made["verdict"] == "approval_required" and made["summary"]["status"] == "pending", "a plan that waits", made)
    return made["plan_ref"]


async def asked(action, content):
    """A client whose person answers so; what they were shown."""
    shown = []

    async def answer(context, params):
        shown.append(params.message)
        return mcp_types.ElicitResult(action=action, content=content)

    async with Client(server(), mode="2026-07-28", read_timeout_seconds=30, elicitation_callback=answer) as client:
        ref = await plan(client)
        result = await client.call_tool("shoal_apply", {"plan_ref": ref})
        return shown, result, ref


async def main():
    shown, result, ref = await asked("accept", {"ok": True})
    check(len(shown) == 1 and SOURCE in shown[0] and "opaque" in shown[0], "the person sees source and effects", shown)
    check(not result.is_error and "approved-42" in result.content[0].text, "an accepted plan runs", result)

    shown, result, ref = await asked("accept", {"ok": False})
    check(result.is_error and result.structured_content["code"] == -32011, "a no in the form is a no", result)
    shown, result, ref = await asked("decline", None)
    refused = result.structured_content
    check(result.is_error and refused["code"] == -32011 and ref in str(refused["summary"]["next"]), "declined", refused)

    async with Client(server(), mode="2026-07-28", read_timeout_seconds=30) as client:
        ref = await plan(client)
        filed = (await client.call_tool("shoal_cap_request", {"plan_ref": ref})).structured_content
        check(filed["grant"] == "approval_pending", "without forms the request is filed", filed)
        check("shoal approvals approve" in str(filed["summary"]["next"]), "and says who decides", filed)
        print("PENDING", ref, flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        result = await client.call_tool("shoal_apply", {"plan_ref": ref})
        check(not result.is_error and "approved-42" in result.content[0].text, "approved elsewhere, it runs", result)


asyncio.run(main())
sys.exit(checks.failures)
