#!/usr/bin/env python3
"""Serves a stdio MCP server over HTTP on the loopback address, for test suites that speak HTTP alone.
    bridge.py PORT SERVER [ARG...]
A client that initializes gets a server process of its own, named by `Mcp-Session-Id`; everybody else shares one, as the
2026 era has no sessions. Requests of different clients may have the same id, so each travels under an id of the bridge's
own, and so do progress tokens. What HTTP alone asks for (headers, status codes) is answered here and says nothing about
the server behind."""
import itertools
import json
import queue
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

VERSION = "io.modelcontextprotocol/protocolVersion"
STREAM = "io.modelcontextprotocol/subscriptionId"
MODERN = "2026-07-28"
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
# Errors that HTTP has a status of its own for.
STATUS = {-32601: 404, -32020: 400, -32021: 400, -32022: 400}
command = sys.argv[2:]


class Server:
    """A server process and the requests on their way through it."""

    def __init__(self):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.writing = threading.Lock()
        self.numbers = itertools.count(1)
        self.asked = {}  # our id -> (the client's id, the client's progress token, frames for the client)
        self.unasked = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def send(self, frame):
        with self.writing:
            self.process.stdin.write(json.dumps(frame).encode() + b"\n")
            self.process.stdin.flush()

    def request(self, frame):
        """Sends a request under an id of ours: that id, and where its frames will arrive, `None` after the last."""
        ours, frames = f"bridge-{next(self.numbers)}", queue.Queue()
        frame = json.loads(json.dumps(frame))
        theirs, frame["id"], token = frame["id"], ours, None
        meta = meta_of(frame)
        if "progressToken" in meta:
            token, meta["progressToken"] = meta["progressToken"], ours
        self.asked[ours] = (theirs, token, frames)
        self.send(frame)
        return ours, frames

    def forget(self, ours):
        """The client has gone away from a request."""
        if self.asked.pop(ours, None):
            self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ours}})

    def read(self):
        for line in self.process.stdout:
            frame = json.loads(line)
            params = frame.get("params", {})
            meta = params.get("_meta", {}) if "method" in frame else (frame.get("result") or {}).get("_meta", {})
            ours = frame.get("id") or meta.get(STREAM) or params.get("progressToken")
            theirs, token, frames = self.asked.get(ours, (None, None, self.unasked))
            if frames is not self.unasked:
                if STREAM in meta:
                    meta[STREAM] = theirs
                if "progressToken" in params:
                    params["progressToken"] = token
                if "method" not in frame:
                    frame["id"] = theirs
            frames.put(frame)
            if "method" not in frame and self.asked.pop(ours, None):
                frames.put(None)
        for _, _, frames in list(self.asked.values()):
            frames.put(None)


def meta_of(frame):
    params = frame.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta if isinstance(meta, dict) else {}


sessions, shared, starting = {}, [], threading.Lock()


def everybodys():
    with starting:
        if not shared or shared[-1].process.poll() is not None:
            shared.append(Server())
        return shared[-1]


def error(frame, code, message):
    return {"jsonrpc": "2.0", "id": frame.get("id"), "error": {"code": code, "message": message}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, frame=None, session=None):
        body = b"" if frame is None else json.dumps(frame).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.wfile.write(body)

    def stream(self, frames):
        """Server-sent events until the frames end or the client goes."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for frame in frames:
            self.wfile.write(b"event: message\ndata: " + json.dumps(frame).encode() + b"\n\n")
            self.wfile.flush()

    def is_local(self):
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        names = [host] + ([origin.split("//")[-1]] if origin else [])
        return all(name.rsplit(":", 1)[0] in LOOPBACK for name in names)

    def do_GET(self):
        server = sessions.get(self.headers.get("Mcp-Session-Id"))
        if server is None:
            return self.answer(405)
        try:
            self.stream(iter(server.unasked.get, None))
        except OSError:
            pass  # the client has closed its stream

    def do_DELETE(self):
        server = sessions.pop(self.headers.get("Mcp-Session-Id"), None)
        if server:
            server.process.stdin.close()
        self.answer(200 if server else 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.is_local():
            return self.answer(403, error({}, -32600, "another host's page"))
        try:
            frame = json.loads(body)
        except ValueError:
            return self.answer(400, error({}, -32700, "parse error"))
        server, session = self.server_of(frame)
        if server is None:
            return self.answer(404, error(frame, -32600, "no such session"))
        asks = "id" in frame and "method" in frame
        if not asks:
            server.send(frame)
            return self.answer(202)
        if server in shared and not self.headers_agree(frame):
            return self.answer(400, error(frame, -32020, "header mismatch"))
        self.pass_on(server, frame, session)

    def server_of(self, frame):
        """The server a request goes to, and the name of its session if it begins one."""
        session, header = self.headers.get("Mcp-Session-Id"), self.headers.get("MCP-Protocol-Version")
        if frame.get("method") == "initialize" and VERSION not in meta_of(frame) and header != MODERN:
            session = uuid.uuid4().hex
            sessions[session] = Server()
            return sessions[session], session
        return (sessions.get(session), None) if session else (everybodys(), None)

    def headers_agree(self, frame):
        version = self.headers.get("MCP-Protocol-Version")
        named = meta_of(frame).get(VERSION, version)
        return version is not None and version == named and self.headers.get("Mcp-Method", frame["method"]) == frame["method"]

    def pass_on(self, server, frame, session):
        ours, frames = server.request(frame)
        first = frames.get()
        if first is None:
            return self.answer(502, error(frame, -32603, "the server has ended"))
        if "method" not in first:
            return self.answer(self.status_of(server, first), first, session)
        try:
            self.stream(itertools.chain([first], iter(frames.get, None)))
        except OSError:
            server.forget(ours)

    @staticmethod
    def status_of(server, frame):
        if "error" not in frame or server not in shared:
            return 200
        missing_meta = "_meta" in frame["error"]["message"]
        return STATUS.get(frame["error"]["code"], 400 if missing_meta else 200)


http = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print(f"http://127.0.0.1:{http.server_port}/mcp", flush=True)
http.serve_forever()
