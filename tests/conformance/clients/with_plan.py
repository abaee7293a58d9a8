#!/usr/bin/env python3
"""Stands between a client and shoal-mcp for drivers that apply a plan by a name they made up, `plan:1`.
    with_plan.py SERVER [ARG...]
A plan has a name only after it was made, so this makes one on a connection of its own (a source that policy asks about)
whenever such a call comes, and puts its name in the place of `plan:1`, also when the client repeats the call with an
answer. Every other byte passes as it is. The kernel's policy has to say `opaque = "ask"` and `approve = "client"`."""
import json, subprocess, sys, threading

NAME = b'"plan:1"'
made = {}


def make_plan():
    """Plans over a second facade, so that the client's own connection carries its own frames alone."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    call = {"_meta": meta, "name": "shoal_plan", "arguments": {"src": "sh { true }"}}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    facade = subprocess.run(sys.argv[1:], input=json.dumps(frame).encode() + b"\n", stdout=subprocess.PIPE, check=True)
    answer = json.loads(facade.stdout.splitlines()[0])
    plan = answer["result"]["structuredContent"]
    assert plan["verdict"] == "approval_required", plan
    return json.dumps(plan["plan_ref"]).encode()


def named(line):
    """The line with a real plan; a call that brings an answer is about the plan it was asked about."""
    if NAME not in line or b'"shoal_apply"' not in line:
        return line
    if b'"inputResponses"' not in line:
        made["plan"] = make_plan()
    return line.replace(NAME, made["plan"])


def pass_on(source, target, change=lambda line: line):
    try:
        # A longer line passes in parts: it is no call to look into.
        for line in iter(lambda: source.readline(65536), b""):
            target.write(change(line))
            target.flush()
        target.close()
    except BrokenPipeError:
        pass


server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
answers = threading.Thread(target=pass_on, args=(server.stdout, sys.stdout.buffer), daemon=True)
answers.start()
pass_on(sys.stdin.buffer, server.stdin, named)
server.wait()
answers.join()
