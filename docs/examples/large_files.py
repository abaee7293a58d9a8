"""Lists a directory's files larger than 10 kB through shoal-mcp: what an agent does, in forty lines of plain Python.

    python3 large_files.py PATH/TO/shoal-mcp DIRECTORY
"""
import json
import os
import subprocess
import sys
import tempfile

PROGRAM = """
glob("**/*").expand()
  .filter(p => p.is_file() && !p.str().starts_with("target/"))
  .map(p => {name: p.str(), size: p.size()})
  .where(.size > 10kb)
  .sort_by(.size).reverse()
"""


def main():
    facade, directory = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory(prefix="shoal") as place:
        socket = os.path.join(place, "k.sock")
        env = dict(os.environ, SHOAL_SOCKET=socket, SHOAL_STATE_DIR=os.path.join(place, "state"))
        mcp = subprocess.Popen([facade], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=directory, env=env, text=True)

        def send(message):
            mcp.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            mcp.stdin.flush()

        def call(number, method, params):
            send({"id": number, "method": method, "params": params})
            for line in mcp.stdout:
                answer = json.loads(line)
                if answer.get("id") == number:
                    return answer["result"]
            raise SystemExit("shoal-mcp ended without an answer")

        call(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                               "clientInfo": {"name": "large-files", "version": "1"}})
        send({"method": "notifications/initialized"})
        result = call(2, "tools/call", {"name": "shoal_exec", "arguments": {"src": PROGRAM}})
        print(result["content"][0]["text"])
        mcp.stdin.close()
        mcp.wait(timeout=10)
        stop = os.path.join(os.path.dirname(facade), "shoal")
        subprocess.run([stop, "kernel", "stop"], env=env, check=True, stdout=subprocess.DEVNULL)
    return 1 if result.get("isError") else 0


sys.exit(main())
