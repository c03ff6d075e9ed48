"""Every pass beside TVM: `python -m tests.conformance.passes.record` (`make pass-conformance`).

`RELAY_ORACLE` names the Python that has TVM. `RELAY_ORACLE_PATH` is a folder with `ethosu` (ethos-u-vela 3.8), which
TVM's table for the Ethos-U imports. Each pass is run on generated programs and on the golden networks, on both sides.
The results are compared (`compare.py`). Unequal programs are run on numbers: both by our interpreter, and TVM's by its
own, too. Writes table.md, and recorded.json.gz for the tests that run without TVM. Fails where a difference has no
reason in `reasons.py`.

    --only NAME     passes whose names begin so; nothing is written
    --programs N    generated programs of each pass, divided among its kinds (40)
    --rows FILE     keep what was found, a line each pass, and take from there what it has
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relaylang.cli.bisect import difference
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import IRModule
from relaylang.ir.structural import structural_hash
from relaylang.ops.record import AttrError
from relaylang.syntax import fromtext
from relaylang.testing.generators.programs import inputs
from relaylang.transform import InferType
from tests.conformance.passes import analyses, specs
from tests.conformance.passes.compare import numbered, plain, same, typed
from tests.conformance.passes.graph import array, array_row, module, written
from tests.conformance.passes.reasons import reason
from tests.conformance.passes.specs import Spec
from tests.shared import GOLDEN, SHARED

HERE = Path(__file__).parent
FILE = HERE / "recorded.json.gz"
TABLE = HERE / "table.md"
#: How many results of a pass TVM runs.
RUNS = 5
#: Networks that are small enough to be run.
RUN = ("mlp", "dqn", "synthetic")


@dataclass
class Case:
    """One program of one pass, what TVM said, and how ours is beside it."""

    spec: Spec
    kind: str
    seed: int
    program: IRModule
    said: dict[str, Any] = field(default_factory=dict)
    verdict: str = ""
    detail: str = ""
    theirs: IRModule | None = None

    @property
    def name(self) -> str:
        return f"{self.kind} {self.seed}" if self.kind != "network" else list(networks())[self.seed]

    @property
    def given(self) -> list[np.ndarray]:
        return inputs(self.seed, self.program["main"])


def networks() -> dict[str, Path]:
    return {p.name.split(".")[0]: p for p in sorted(GOLDEN.glob("*.typed.relay"))}


def cases(programs: int, only: str = "", golden: bool = True) -> list[Case]:
    """The programs of passes whose names begin so; at least three of each kind."""
    made = []
    nets = [InferType()(fromtext(p.read_text())) for p in networks().values()] if golden else []
    for spec in specs.SPECS:
        if not spec.name.startswith(only):
            continue
        for kind in spec.kinds:
            seeds = max(3, -(-programs // len(spec.kinds)))
            made += [Case(spec, kind, seed, spec.ready(specs.program(kind, seed))) for seed in range(seeds)]
        if spec.networks:
            made += [Case(spec, "network", i, spec.ready(net)) for i, net in enumerate(nets)]
    return made


# ---- TVM's side


def ask(oracle: str, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """TVM's answers, one for each request."""
    with tempfile.TemporaryDirectory() as folder:
        gradient = HERE.parent.parent.parent / "relaylang" / "stdlib" / "gradient.relay"
        (Path(folder) / "gradient.rly").write_text(gradient.read_text())
        done = subprocess.run(
            [oracle, str(HERE / "worker.py"), str(SHARED / "oracle"), folder],
            env={**os.environ, "PYTHONPATH": os.environ.get("RELAY_ORACLE_PATH", "")},
            input="\n".join(map(json.dumps, requests)),
            capture_output=True,
            text=True,
            check=True,
            timeout=3000,
        )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(requests), (len(answers), len(requests), done.stderr[-500:])
    return answers


def request(case: Case, run: bool = False) -> dict[str, Any]:
    asked = {"graph": written(case.program), "pass": case.spec.theirs, "level": case.spec.level}
    if run:
        asked["inputs"] = [array_row(a) for a in case.given]
    return asked


# ---- beside each other


def judge(case: Case) -> None:
    """Say how ours is beside TVM's."""
    said, spec = case.said, case.spec
    try:
        mine = spec.run(case.program)
    except RelayError as problem:
        here = problem.diagnostics[0].title
        both = "refused" in said or "crashed" in said
        case.verdict, case.detail = ("both refuse" if both else "refused here"), here
        return
    if "graph" not in said:
        case.verdict, case.detail = "TVM refuses", said.get("refused", "it ended")
        return
    try:
        case.theirs = theirs = module(said["graph"])
    except (AttrError, ValueError) as problem:
        case.verdict, case.detail = "unlike ours", str(problem)
        return
    wrong = typed(theirs)
    if wrong:
        case.verdict, case.detail = "TVM's is ill-typed", wrong[0]
        return
    case.verdict, case.detail = same(mine, theirs)  # type: ignore[assignment]
    if case.verdict != "other":
        return
    if case.kind == "network" and case.name not in RUN:
        equal = mine["main"].checked_type == theirs["main"].checked_type
        case.verdict = "type" if equal else "different"
        return
    finish = spec.finish or (lambda mod: mod)
    ours = evaluate(finish(mine), *case.given)
    try:
        other = evaluate(finish(theirs), *case.given)
    except RelayError as problem:
        case.verdict, case.detail = "TVM's does not run", problem.diagnostics[0].title
        return
    apart = difference(other, ours)
    case.verdict = "meaning" if apart is None else "different"
    if apart is not None:
        case.detail = f"{apart} ({case.detail})"
        before = evaluate(case.program, *case.given)
        if spec.keeps:
            case.detail += "" if difference(before, ours) is None else " OURS IS WRONG"
        elif off(before, ours) <= off(before, other):
            case.detail += " nearer"


def off(before: Any, after: Any) -> float:
    """How far a result is from that of the program, at the most; infinitely, where it is of another form."""
    if isinstance(before, tuple) and isinstance(after, tuple):
        return max([off(b, a) for b, a in zip(before, after)], default=0.0)
    if getattr(before, "shape", None) != getattr(after, "shape", ()):
        return float("inf")
    return float(np.abs(before.astype("float64") - after.astype("float64")).max(initial=0.0))


def value(row: Any) -> Any:
    """A result as TVM's side writes it."""
    if isinstance(row, dict):
        return tuple(value(v) for v in row.get("tuple", row.get("fields", ())))
    return array(row)


def fields(result: Any) -> Any:
    """Our result as `value` makes it."""
    if isinstance(result, tuple):
        return tuple(fields(v) for v in result)
    return tuple(fields(v) for v in result.fields) if hasattr(result, "constructor") else result


def run_there(oracle: str, found: list[Case]) -> dict[str, Counter[str]]:
    """TVM runs what it made where that is not our program: how often it has our numbers."""
    asked = [c for c in found if c.verdict in ("meaning", "different") and c.kind != "network" and c.spec.finish is None]
    asked = asked[:RUNS]
    counts: dict[str, Counter[str]] = {}
    for case, said in zip(asked, ask(oracle, [request(c, run=True) for c in asked])):
        count = counts.setdefault(case.spec.name, Counter())
        if "result" not in said:
            count["not"] += 1
            continue
        ours = fields(evaluate(case.spec.run(case.program), *case.given))
        count["ran"] += 1
        count["same"] += difference(value(said["result"]), ours) is None
    return counts


SAME = ("same", "names", "written")


def row(case: Case) -> dict[str, Any]:
    """A case's row of the table."""
    number = signature(case.theirs, case.verdict) if case.theirs is not None and case.verdict in SAME else ""
    return {
        "pass": case.spec.name,
        "kind": case.kind,
        "seed": case.seed,
        "name": case.name,
        "verdict": case.verdict,
        "detail": case.detail or "",
        "changed": bool(case.said.get("changed")),
        "signature": number,
    }


def table(found: list[dict[str, Any]], there: dict[str, Counter[str]]) -> str:
    out = [HEAD]
    out.append(
        "| pass | programs | TVM changes | same program | same but for names | same as written otherwise | "
        "same meaning | different | TVM refuses | TVM runs its own: as ours |"
    )
    out.append("|---|---|---|---|---|---|---|---|---|---|")
    why: dict[str, Counter[str]] = {}
    total: Counter[str] = Counter()
    for spec in specs.SPECS:
        rows = [c for c in found if c["pass"] == spec.name]
        if not rows:
            continue
        count = Counter(c["verdict"] for c in rows)
        changed = sum(c["changed"] for c in rows)
        refused = sum(count[v] for v in ("TVM refuses", "both refuse", "TVM's is ill-typed", "TVM's does not run", "unlike ours"))
        ran = there.get(spec.name, Counter())
        runs = f"{ran['same']} of {ran['ran']}" if ran["ran"] else "-"
        cells = [
            len(rows),
            changed,
            count["same"],
            count["names"],
            count["written"],
            count["meaning"] + count["type"],
            count["different"] + count["refused here"],
            refused,
            runs,
        ]
        out.append(f"| {spec.name.replace('|', '/')} | " + " | ".join(str(c) if c else "" for c in cells) + " |")
        total.update({"programs": len(rows), "changed": changed, "refused": refused, **count})
        for case in rows:
            if case["verdict"] not in ("same", "names"):
                told = f"{LABEL[case['verdict']]}: {reason(case) or 'NO REASON: ' + case['name']}"
                why.setdefault(spec.name, Counter())[told] += 1
    cells = [
        total["programs"],
        total["changed"],
        total["same"],
        total["names"],
        total["written"],
        total["meaning"] + total["type"],
        total["different"] + total["refused here"],
        total["refused"],
        "",
    ]
    out.append("| **all** | " + " | ".join(f"**{c}**" if c else "" for c in cells) + " |")
    out.append("\n## What differs, and why\n")
    for name, lines in why.items():
        out.append(f"**{name}**\n")
        out += [f"- {many} × {line}" for line, many in lines.most_common()]
        out.append("")
    return "\n".join(out)


LABEL = {
    "written": "written otherwise",
    "meaning": "same meaning",
    "type": "same type",
    "different": "different",
    "refused here": "refused here",
    "TVM refuses": "TVM refuses",
    "both refuse": "both refuse",
    "TVM's is ill-typed": "TVM's result has no type",
    "TVM's does not run": "TVM's result does not run",
    "unlike ours": "TVM's result does not read",
}

HEAD = """# Passes beside TVM 0.16

Made by `make pass-conformance` (`tests/conformance/passes/record.py`). Every pass on the golden networks and on generated
programs of the kinds that give it something to do; how many of them TVM changes is in the second column. *Same program*:
structurally equal, types of results and of lets aside. *Same but for names*: but for the names of functions of the module.
*Same as written otherwise*: but for which equal values are one node, lets in the values of lets, and second names.
*Same meaning*: another program that gives the same numbers (our interpreter, random inputs; of large networks the types are
compared). The last column: how often TVM's own interpreter gives for TVM's result what ours gives for ours, of the first few
that are not the same program; where it does not, the result is a *different* one below, or (qnn.sqrt of a negative number) a
NaN as an integer, which is what the machine makes of it.
"""


# ---- recorded answers


def signature(mod: IRModule, verdict: str) -> str:
    """A program's hash: as it is, but for the names of functions, or for how it is written down."""
    form = plain(mod, verdict == "written")
    return f"{structural_hash(form if verdict == 'same' else numbered(form)):016x}"


def recorded(found: list[dict[str, Any]]) -> list[Any]:
    return [
        [c["pass"], c["kind"], c["seed"], c["verdict"], c["signature"]] for c in found if c["kind"] != "network" and c["signature"]
    ]


def judged(oracle: str, found: list[Case]) -> tuple[list[dict[str, Any]], dict[str, Counter[str]]]:
    """A row for each case, and how often TVM's interpreter has our numbers."""
    for case, said in zip(found, ask(oracle, [request(c) for c in found])):
        case.said = said
        judge(case)
    return [row(c) for c in found], run_there(oracle, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--rows", type=Path)
    args = parser.parse_args()
    oracle = os.environ.get("RELAY_ORACLE")
    if not oracle:
        sys.exit("RELAY_ORACLE names no Python with TVM")
    found: list[dict[str, Any]] = []
    there: dict[str, Counter[str]] = {}
    kept = {}
    if args.rows is not None and args.rows.exists():
        kept = {line[0]: line[1:] for line in map(json.loads, args.rows.read_text().splitlines())}
    for name in dict.fromkeys(s.name for s in specs.SPECS if s.name.startswith(args.only)):
        if name in kept:
            rows, runs = kept[name]
        else:
            rows, runs = judged(oracle, [c for c in cases(args.programs, name) if c.spec.name == name])
            if args.rows is not None:
                with args.rows.open("a") as file:
                    file.write(json.dumps([name, rows, runs]) + "\n")
        found += rows
        there.update({k: Counter(v) for k, v in runs.items()})
        print(name, dict(Counter(r["verdict"] for r in rows)), file=sys.stderr, flush=True)
    text = table(found, there)
    missing = [r for r in found if r["verdict"] not in ("same", "names") and not reason(r)]
    if args.only:
        print(text)
    else:
        beside = analyses.compare(oracle)
        TABLE.write_text(text + "\n" + analyses.table(beside))
        answers = {"passes": recorded(found), "analyses": analyses.recorded(beside)}
        FILE.write_bytes(gzip.compress(json.dumps(answers, separators=(",", ":")).encode(), 9, mtime=0))
    for r in missing[:60]:
        print(f"no reason: {r['pass']} | {r['name']} | {r['verdict']} | {r['detail'][:300]}", file=sys.stderr)
    sys.exit(bool(missing))


if __name__ == "__main__":
    main()
