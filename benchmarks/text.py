"""How fast Relay text is read, beside TVM 0.16's C++ parser, both in one run.

    RELAY_ORACLE=/path/to/python python benchmarks/text.py [--rounds N] [--write]

RELAY_ORACLE is a Python that has TVM 0.16 (the wheel `hhb-tvm` 3.2.3 holds one). Without it our own figures are shown alone.
The programs come from TVM's model zoo and from loops below. Each round times both sides one after the other; the least of all
rounds counts. TVM's parser alone is `relay.parser.ParseExpr` on the same text with `fn` in place of `def @main`, which builds
the same IR and does not check types; `parse + check` is `relay.parse`, which cannot be told to leave the check out.
`--write` puts the table into benchmarks/results/text.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "text.md"

#: Runs in the other Python: prints the models' texts, then answers each line (a file's name) with two times.
_PEER = r"""
import gc, json, sys, time
import tvm
from tvm import relay
from tvm.relay import testing
texts = {}
for name, (mod, _) in {
    "resnet50": testing.resnet.get_workload(num_layers=50),
    "resnet18": testing.resnet.get_workload(num_layers=18),
    "mobilenet": testing.mobilenet.get_workload(),
}.items():
    texts[name] = relay.transform.InferType()(mod).astext()
print(json.dumps(texts), flush=True)
parse_expr = tvm.get_global_func("relay.parser.ParseExpr")
def timed(f):
    gc.collect()
    start = time.perf_counter()
    f()
    return time.perf_counter() - start
for line in sys.stdin:
    text = open(line.strip()).read()
    alone = text.replace("def @main", "fn ", 1)
    print(json.dumps([timed(lambda: parse_expr("bench", alone)), timed(lambda: relay.parse(text))]), flush=True)
"""


def loops() -> dict[str, str]:
    """Programs of many like lines."""
    head = '#[version = "0.0.5"]\ndef @main(%x: Tensor[(10), float32]) -> Tensor[(10), float32] {\n'
    chain = "".join(f"  %{i + 1} = add(%{i}, %x);\n" for i in range(10_000)).replace("%0,", "%x,")
    lets = {n: "".join(f"  let %v{i} = add(%x, %x);\n" for i in range(n)) for n in (1_000, 10_000)}
    made = {"chain of 10 000 adds": f"{head}{chain}  %10000\n}}\n"}
    for count, lines in lets.items():
        made[f"{count} lets"] = f"{head}{lines}  %v0\n}}\n"
    return made


def timed(f: Callable[[], object]) -> float:
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def fresh(code: str, **environment: str) -> float:
    """The least time in ms that `code` says it took, of five new processes."""
    runs = []
    for _ in range(5):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, **environment}, check=True, capture_output=True, text=True
        )
        runs.append(float(done.stdout))
    return min(runs)


_TABLES = (
    "import time, relaylang.syntax.reader as r; t = time.perf_counter(); r.tables(); print((time.perf_counter() - t) * 1e3)"
)
_IMPORT = "import time; t = time.perf_counter(); import relaylang.syntax; print((time.perf_counter() - t) * 1e3)"


def start_up() -> list[str]:
    """What the first text costs a new process."""
    with tempfile.TemporaryDirectory() as empty:
        cached = fresh(_TABLES)
        imported = fresh(_IMPORT)
        built = []
        for i in range(3):
            built.append(
                float(
                    subprocess.run(
                        [sys.executable, "-c", _TABLES],
                        env={**os.environ, "RELAYLANG_CACHE": f"{empty}/{i}"},
                        check=True,
                        capture_output=True,
                        text=True,
                    ).stdout
                )
            )
    return [
        f"- import of `relaylang.syntax`: {imported:.0f} ms",
        f"- the parser's tables from the cache: {cached:.1f} ms",
        f"- the parser's tables built by Lark, once per machine: {min(built):.0f} ms",
    ]


def measure(rounds: int) -> list[str]:
    """The table's lines."""
    from relaylang.syntax import parse

    oracle = os.environ.get("RELAY_ORACLE")
    texts: dict[str, str] = {}
    peer = None
    if oracle:
        peer = subprocess.Popen(
            [oracle, "-c", _PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert peer.stdin is not None and peer.stdout is not None
        texts.update(json.loads(peer.stdout.readline()))
    else:
        print("RELAY_ORACLE names no Python with TVM 0.16: our own figures only, on the programs made here.")
    texts.update(loops())
    lines = [
        "| program | kB | ours, parse (ms) | TVM 0.16, parse (ms) | ratio | TVM 0.16, parse + check (ms) |",
        "|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in texts.items():
            path = Path(folder) / "text.relay"
            path.write_text(text)
            ours, alone, checked = [], [], []
            for _ in range(rounds if len(text) < 100_000 else max(3, rounds // 5)):
                ours.append(timed(lambda text=text: parse(text)))
                if peer is not None:
                    assert peer.stdin is not None and peer.stdout is not None
                    peer.stdin.write(f"{path}\n")
                    peer.stdin.flush()
                    first, second = json.loads(peer.stdout.readline())
                    alone.append(first)
                    checked.append(second)
            mine = min(ours) * 1e3
            theirs = (
                f"{min(alone) * 1e3:.2f} | {min(ours) / min(alone):.2f} | {min(checked) * 1e3:.1f}" if alone else "- | - | -"
            )
            lines.append(f"| {name} | {len(text) / 1000:.0f} | {mine:.2f} | {theirs} |")
            print(lines[-1], flush=True)
    if peer is not None:
        assert peer.stdin is not None
        peer.stdin.close()
        peer.wait()
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    lines = measure(options.rounds)
    begin = start_up()
    print("\n".join(begin))
    if options.write:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(
            "\n".join(
                [
                    "# Reading Relay text",
                    "",
                    *lines,
                    "",
                    *begin,
                    "",
                    "The least of several rounds, both sides in turn in one run. Reproduce with",
                    "`RELAY_ORACLE=/path/to/python/with/tvm python benchmarks/text.py --write` (see the head of that file);",
                    f"this table: Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores.",
                    "",
                ]
            )
        )


if __name__ == "__main__":
    main()
