#!/usr/bin/env python3
"""Times in Python what `cargo bench -p shoal-eval --bench against_python` times in Shoal, and prints both.

Run the bench first, then this on the same machine. It reads criterion's samples from target/criterion (or the folder
given as argument) and prints a table of the least times: what other work on the machine costs falls on either side by
chance. A ratio above 1 means that Shoal is faster.
"""

import json
import pathlib
import sys
import time

# With a second argument, so many items and the results instead of times: what the test of the programs expects.
N = int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000
CALLS = N // 100
INTS = [i * 7919 % 1000003 for i in range(N)]
WORDS = [f"w{i}" for i in INTS]
ROWS = [{"id": i, "group": i % 10, "name": f"n{i % 1000}"} for i in INTS]
TEXT = json.dumps(ROWS[: N // 4], separators=(",", ":"))
PARSED = json.loads(TEXT)

# The sources run at the top level of a program, as those of Shoal do.
SOURCES = {
    "while loop": "s = 0\ni = 0\nwhile i < N:\n    s += i\n    i += 1\nresult = s",
    "for loop": "s = 0\nfor i in range(N):\n    s += i\nresult = s",
    "loop in a function": "result = total(N)",
    "calls of a function": "s = 0\nfor i in range(CALLS):\n    s = add(s, i)\nresult = s",
    "recursive calls": "result = fib(19)",
    "chain over ints": "result = sum([x + 1 for x in [x for x in [x * 2 for x in INTS] if x % 3 == 0]])",
    "chain over texts": "result = len([w.upper() for w in [w for w in WORDS if len(w) > 5]])",
    "fold": "result = functools.reduce(lambda acc, x: acc + x, INTS, 0)",
    "table filter": "result = len([r for r in ROWS if r['id'] > 500000])",
    "table filter of two fields": "result = len([r for r in ROWS if r['group'] == 3 and r['id'] > 500000])",
    "table column": "result = sum([r['id'] for r in ROWS])",
    "rows made": "result = len([{'id': r['id'], 'double': r['id'] * 2} for r in ROWS])",
    "sort by a field": "result = len(sorted(ROWS, key=lambda r: r['id']))",
    "group by a field": "groups = {}\nfor r in ROWS:\n    groups.setdefault(r['group'], []).append(r)\nresult = len(groups)",
    "json read": "result = len(json.loads(TEXT))",
    "json written": "result = len(json.dumps(PARSED, separators=(',', ':')))",
}

PRELUDE = """
import functools, json
def add(a, b):
    return a + b
def fib(k):
    return k if k < 2 else fib(k - 1) + fib(k - 2)
def total(n):
    s = 0
    i = 0
    while i < n:
        if i % 3 == 0:
            s += i
        i += 1
    return s
"""


def prepared():
    names = dict(N=N, CALLS=CALLS, INTS=INTS, WORDS=WORDS, ROWS=ROWS, TEXT=TEXT, PARSED=PARSED)
    exec(PRELUDE, names)
    return names


def results():
    for name, source in SOURCES.items():
        names = prepared()
        exec(source, names)
        print(f'    ("{name}", "{names["result"]}"),')


def seconds(source):
    """Least of eleven runs."""
    names = prepared()
    code = compile(source, "work", "exec")
    times = []
    for _ in range(11):
        start = time.perf_counter()
        exec(code, names)
        times.append(time.perf_counter() - start)
    return min(times)


def main():
    criterion = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "target/criterion")
    print("| work | ours | python3 | ratio |")
    print("|---|---|---|---|")
    for name, source in SOURCES.items():
        sample = json.loads((criterion / "python" / name / "new" / "sample.json").read_text())
        ours = min(time / runs for time, runs in zip(sample["times"], sample["iters"])) / 1e9
        theirs = seconds(source)
        print(f"| {name} | {ours * 1e3:.1f} ms | {theirs * 1e3:.1f} ms | {theirs / ours:.1f} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        results()
    else:
        main()
