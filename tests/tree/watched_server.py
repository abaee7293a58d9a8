"""A small watchable MCP server (2026-07-28) for tests: `memo://log` is an event log that a FIFO feeds, `memo://state` a
state. OLD in its environment makes it one of the older kind."""
import json, os, sys, threading

VERSION = "2026-07-28"
feed, state = sys.argv[1], {"events": [], "listens": {}}
lock = threading.Lock()


def send(frame):
    sys.stdout.write(json.dumps(frame) + "\n")
    sys.stdout.flush()


def result(id, **members):
    send({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", **members}})


def push():
    """Each line of the FIFO is one event."""
    while True:
        with open(feed) as lines:
            for line in lines:
                with lock:
                    seq = len(state["events"]) + 1
                    state["events"].append({"seq": seq, **json.loads(line)})
                    for id, uris in state["listens"].items():
                        for uri in uris:
                            meta = {"io.modelcontextprotocol/subscriptionId": id}
                            send({"jsonrpc": "2.0", "method": "notifications/resources/updated",
                                  "params": {"uri": uri, "_meta": meta}})


def listed():
    return [{"uri": "memo://log", "name": "log", "description": "Memos.\nExample: watch_start(name: \"m\", uri: \"memo://log\")",
             "mimeType": "application/vnd.asyncai.events+json"}]


def answer(method, id, params):
    if os.environ.get("OLD"):
        if method == "initialize":
            return result(id, protocolVersion="2025-06-18", capabilities={"resources": {"subscribe": True}}, serverInfo={"name": "old", "version": "1"})
        if method not in ("resources/list", "resources/read"):
            return send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "no such method"}})
    if method == "server/discover":
        return result(id, supportedVersions=[VERSION], capabilities={"resources": {"subscribe": True}, "tools": {}}, ttlMs=0, cacheScope="private")
    if method == "resources/list":
        return result(id, resources=listed(), ttlMs=0, cacheScope="private")
    if method == "resources/templates/list":
        return result(id, resourceTemplates=[], ttlMs=0, cacheScope="private")
    if method == "tools/list":
        tools = [{"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
                 {"name": "touch", "inputSchema": {"type": "object"}}]
        return result(id, tools=tools, ttlMs=0, cacheScope="private")
    if method == "tools/call":
        return result(id, content=[], structuredContent={"seen": params["arguments"].get("what")}, isError=False)
    if method == "resources/read" and params["uri"] == "memo://log":
        text = json.dumps({"events": state["events"]})
        mime = "application/vnd.asyncai.events+json"
        return result(id, contents=[{"uri": "memo://log", "mimeType": mime, "text": text}], ttlMs=0, cacheScope="private")
    if method == "subscriptions/listen":
        uris = [uri for uri in params["notifications"].get("resourceSubscriptions", []) if uri == "memo://log"]
        state["listens"][id] = uris
        meta = {"io.modelcontextprotocol/subscriptionId": id}
        return send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                     "params": {"notifications": {"resourceSubscriptions": uris}, "_meta": meta}})
    send({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": f"no {method} of {params.get('uri')}"}})


threading.Thread(target=push, daemon=True).start()
for line in sys.stdin:
    frame = json.loads(line)
    with lock:
        if "id" in frame and "method" in frame:
            answer(frame["method"], frame["id"], frame.get("params") or {})
        elif frame.get("method") == "notifications/cancelled":
            state["listens"].pop(frame["params"]["requestId"], None)
