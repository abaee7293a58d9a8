"""A watch client of the official Python SDK 2: it listens on the journal's events and on a task, reads by number, and
misses nothing while the kernel's broker is killed and replaced.
watch2.py BROKER-PIDS-COMMAND SERVER [ARG...]     the command, one shell word, prints the broker's pid."""
import asyncio
import json
import os
import signal
import subprocess
import sys

from mcp import Client, StdioServerParameters

import checks
from checks import WATCHED, check

RUNS = 24


def server():
    return StdioServerParameters(command=sys.argv[2], args=sys.argv[3:], env=dict(os.environ))


def broker():
    return int(subprocess.run(["sh", "-c", sys.argv[1]], capture_output=True, check=True).stdout.split()[0])


class Watcher:
    """Reads events above the last number it has seen, until it has seen the number of the last run."""

    def __init__(self):
        self.last, self.entries, self.seqs, self.listens = None, [], [], 0
        self.task_states, self.wanted = [], asyncio.Event()
        self.goal = None

    async def read(self, client):
        truncated = True
        while truncated:
            since = "" if self.last is None else f"?since={self.last}"
            body = json.loads((await client.read_resource(WATCHED + since)).contents[0].text)
            for event in body["events"]:
                self.seqs.append(event["seq"])
                self.entries.append(event["object"]["entry_id"])
            if body["events"]:
                self.last = body["events"][-1]["seq"]
            truncated = since != "" and body["page"]["truncated"]

    async def read_task(self, client, task):
        record = json.loads((await client.read_resource(task)).contents[0].text)
        if self.task_states[-1:] != [record["state"]]:
            self.task_states.append(record["state"])

    def done(self):
        return self.goal is not None and self.goal in self.entries and self.task_states[-1:] == ["completed"]

    async def follow(self, task, ready):
        async with Client(server(), mode="2026-07-28", read_timeout_seconds=30) as client:
            while not self.done():
                try:
                    async with client.listen(resource_subscriptions=[WATCHED, task]) as stream:
                        self.listens += 1
                        await self.read(client)
                        await self.read_task(client, task)
                        ready.set()
                        if self.done():
                            return
                        async for update in stream:
                            await self.read(client)
                            await self.read_task(client, task)
                            if self.done():
                                return
                except Exception as error:
                    # The kernel is away for a moment: listen again, read on from the last number.
                    print("again:", error, flush=True)
                    await asyncio.sleep(0.05)


async def run_once(client, n):
    """One run; a call that was lost with the broker is repeated, as its answer says it may be."""
    while True:
        try:
            result = await client.call_tool("shoal_exec", {"src": f"'run {n}'"})
            if not result.is_error:
                return
        except Exception as error:
            print("repeated:", error, flush=True)
        await asyncio.sleep(0.02)


async def main():
    watcher, ready = Watcher(), asyncio.Event()
    async with Client(server(), mode="2026-07-28", read_timeout_seconds=30) as worker:
        started = await worker.call_tool("shoal_exec", {"src": "sleep 3s\n'slept'", "background": True})
        task = "shoal://task/" + started.structured_content["task"].split(":")[1]
        following = asyncio.create_task(watcher.follow(task, ready))
        await asyncio.wait_for(ready.wait(), 30)
        first = len(watcher.seqs)
        for n in range(RUNS):
            await run_once(worker, n)
            if n == RUNS // 2:
                os.kill(broker(), signal.SIGKILL)
        rows = (await worker.call_tool("shoal_journal", {"limit": 100})).structured_content["entries"]
        finished = [row["id"] for row in rows if row["kind"] == "exec" and row["src"].startswith("'run")]
        watcher.goal = max(finished)
        await asyncio.wait_for(following, 60)
    check(len(finished) >= RUNS, "every run is in the journal", finished)
    missed = [id for id in finished if id not in watcher.entries]
    check(not missed, "no run was missed", (missed, watcher.entries))
    new = watcher.seqs[first:]
    check(new == list(range(new[0], new[0] + len(new))), "numbers without a gap, each once", watcher.seqs)
    check(watcher.listens >= 2, "the stream ended with the broker and was opened again", watcher.listens)
    check(watcher.task_states[-1] == "completed", "the task was seen to its end", watcher.task_states)


asyncio.run(main())
sys.exit(checks.failures)
