"""What the Python drivers share: counting checks, and what a result has to look like."""
import json

WATCHED = "shoal://events/journal"
failures = 0


def check(ok, name, detail=""):
    global failures
    failures += not ok
    print("ok  " if ok else "FAIL", name, "" if ok else str(detail)[:400], flush=True)


def both_halves(name, structured, content):
    """Each half of a tool result tells status and address on its own."""
    summary = (structured or {}).get("summary", {})
    line = content[-1].text if content else ""
    check(summary.get("status") == "ok" and summary.get("uri"), f"{name}: structured half", structured)
    check(line.startswith("[shoal] status=ok") and f"uri={summary.get('uri')}" in line, f"{name}: text half", line)
    check(len(json.dumps(structured)) <= 48 * 1024, f"{name}: fits a model's context")
    return summary.get("uri")
