"""A kernel of another time: it says its version, and refuses what it does not know. SIGTERM ends it."""
import json
import os
import signal
import socket
import sys
import threading

with open("/proc/self/comm", "w") as name:
    name.write("shoal-kernel")
path = sys.argv[1]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.chmod(path, 0o600)
listener.listen(16)


def end(*_):
    os.unlink(path)
    os._exit(0)


signal.signal(signal.SIGTERM, end)


def serve(client):
    for line in client.makefile("r"):
        request = json.loads(line)
        answer = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] == "kernel.version":
            answer["result"] = {"server": "shoal-kernel", "protocol": 0, "build": "0.0.9+old", "ast_version": 1}
        else:
            data = {"param": "create", "reason": "unknown_member", "nearest": None}
            answer["error"] = {"code": -32602, "message": "unknown member `create`", "data": data}
        client.sendall((json.dumps(answer) + "\n").encode())


while True:
    client, _ = listener.accept()
    threading.Thread(target=serve, args=(client,), daemon=True).start()
