"""Writes docs/diagnostics.md: wrong programs with the answers of TVM 0.16 and of relaylang.

Usage:

    scripts/diagnostics_page.py                          runs relaylang; TVM's answers come from diagnostics_tvm.json
    scripts/diagnostics_page.py --oracle PYTHON FOLDER   also runs TVM: a Python with TVM, and the folder of x86.py
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

from relaylang.diagnostics import Diagnostic, RelayError, render
from relaylang.diagnostics.export import as_json
from relaylang.ir import IRModule
from relaylang.syntax import parse
from relaylang.typing import infer

ROOT = Path(__file__).resolve().parent.parent
RECORD = Path(__file__).with_name("diagnostics_tvm.json")
PAGE = ROOT / "docs" / "diagnostics.md"
HEADER = '#[version = "0.0.5"]\n'

PROGRAMS: list[tuple[str, str]] = [
    ("A bracket is missing", "def @main(%x: int32 {\n  add(%x, 1)\n}"),
    ("A comma is missing", "def @main(%x: int32) {\n  add(%x 1)\n}"),
    ("A misspelt operator", "def @main(%x: Tensor[(1, 3), float32]) {\n  nn.rellu(%x)\n}"),
    (
        "A misspelt attribute",
        "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {\n  nn.conv2d(%x, %w, stride=[2, 2])\n}",
    ),
    ("An unknown variable", "def @main(%image: Tensor[(1, 3), float32]) {\n  nn.relu(%imgae)\n}"),
    ("A parameter twice", "def @main(%x: int32, %x: float32) {\n  %x\n}"),
    (
        "A graph binding from the other branch",
        "def @main(%c: bool) {\n  if (%c) {\n    let %a = 1;\n    %0 = add(%a, 2);\n    %0\n  } else {\n    %0\n  }\n}",
    ),
    ("A name that two functions use", "def @f() {\n  %0 = add(1, 2);\n  %0\n}\n\ndef @g() {\n  %0\n}"),
    ("A number that does not fit", "def @main() {\n  add(1i64, 99999999999999999999i64)\n}"),
    ("A string that is never closed", 'def @main(%x: float32) {\n  cast(%x, dtype="int8)\n}'),
    ("An element type that does not exist", "def @main(%x: Tensor[(2, 3), f32]) {\n  %x\n}"),
    ("`=` for `==`", "def @main(%n: int32) {\n  if (%n = 0) { 1 } else { 2 }\n}"),
    ("An `if` without an `else`", "def @main(%c: bool) {\n  if (%c) { 1 }\n}"),
    ("A clause is missing", "type Num { One, Two }\n\ndef @main(%n: Num[]) {\n  match (%n) {\n    One => 1,\n  }\n}"),
    (
        "A weight that does not fit",
        "def @main(%x: Tensor[(1, 8), float32], %w: Tensor[(4, 7), float32]) {\n  nn.dense(%x, %w, units=4)\n}",
    ),
    ("A function that the text does not have", "def @main() {\n  @helpr(1)\n}\n\ndef @helper(%n: int32) {\n  %n\n}"),
    ("A dimension that is negative", "def @main(%x: Tensor[(2, -3), float32]) {\n  %x\n}"),
    ("Three errors", "def @f(%x: int32) {\n  add(%x 1)\n}\n\ndef @g() {\n  let y = 5;\n  %y\n}\n\ndef @h() {\n  nn.relu(1f\n}"),
]

#: Runs in a Python that has TVM, one program a process: it may crash.
_WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
import x86
from tvm import relay
relay.transform.InferType()(relay.fromtext(sys.stdin.read()))
print("accepted")
"""


def ours(text: str) -> list[Diagnostic]:
    """The diagnostics of relaylang for a program."""
    try:
        result = parse(HEADER + text, "net.relay")
        return infer(result.value, fragment=not isinstance(result.value, IRModule))
    except RelayError as wrong:
        return wrong.diagnostics


def theirs(python: str, folder: str, text: str) -> dict[str, object]:
    """TVM's answer as short facts: its kind, its place, the beginning of its message."""
    try:
        run = subprocess.run([python, "-c", _WORKER, folder], input=HEADER + text, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return {"kind": "no answer in two minutes"}
    said = run.stderr + run.stdout
    if run.returncode < 0:
        return {"kind": f"the process dies (signal {-run.returncode})"}
    if "accepted" in run.stdout:
        return {"kind": "accepts it"}
    place = re.search(r"--> [^\s:]+:(\d+):(\d+)", said)
    plain = re.search(r"^\s*(?:\x1b\[[0-9;]*m)*error(?:\x1b\[[0-9;]*m)*: (.*)$", said, re.M)
    raised = re.findall(r"^(?:[\w.]*Error|tvm): :?((?!Traceback).+)$", said, re.M)
    message = plain[1] if plain else raised[-1] if raised else ""
    return {
        "kind": "an error" if plain else "an exception",
        "place": f"{int(place[1]) - 1}:{place[2]}" if place else None,
        "says": re.sub(r"\s+", " ", re.sub(r"\x1b\[[0-9;]*m", "", message)).strip()[:70],
    }


def page(record: dict[str, dict[str, object]]) -> str:
    """The text of docs/diagnostics.md."""
    out = [INTRODUCTION, SCHEMA, "## TVM and relaylang compared\n", BEFORE]
    for title, text in PROGRAMS:
        out.append(f"### {title}\n")
        out.append(f"```\n{text}\n```\n")
        out.append(_their_half(record[title]))
        said = "\n".join(render(d) for d in ours(text))
        out.append(f"relaylang:\n\n```\n{_moved(said)}\n```\n")
    return "\n".join(out)


def _moved(said: str) -> str:
    """The text with line numbers that do not count the header of both readers."""
    said = re.sub(r"^(net\.relay:)(\d+)", lambda m: m[1] + str(int(m[2]) - 1), said, flags=re.M)
    return re.sub(r"^( *)(\d+) \| ", lambda m: f"{int(m[2]) - 1:5d} | ", said, flags=re.M)


def _their_half(fact: dict[str, object]) -> str:
    if "place" not in fact:
        return f"TVM 0.16 {fact['kind']}.\n" if fact["kind"] == "accepts it" else f"TVM 0.16: {fact['kind']}.\n"
    where = f" at {fact['place']}" if fact["place"] else " without a place"
    says = f': "{fact["says"]}"' if fact["says"] else ""
    return f"TVM 0.16: {fact['kind']}{where}{says}.\n"


INTRODUCTION = """# Diagnostics

Every failure that input can cause is a diagnostic. It has a code, a message, labelled places and notes. Many have a repair
that a tool can apply. `relay explain R0102` explains a code, with an example and its repair; `relay explain` lists all
codes, and [codes](codes.md) has all these pages. [Typical mistakes](mistakes.md) shows the messages of wrong programs.
The exit status is 0 for success, 1 for a wrong program, 2 for a wrong call.

    FILE:LINE:COL: error[R0102]: this `(` is never closed

The reader continues after an error. After an uncertain guess it ignores the rest of the line, so that one slip gives one
error. In every format, relay shows the first twenty errors of a file, and a note (`R0090`) counts the others.

| option of every verb | effect |
|---|---|
| `--color auto`, `always`, `never` | `auto` colours on a terminal, unless NO_COLOR is set |
| `--format text`, `json`, `sarif` | text for people, one JSON object in each line, or one SARIF 2.1.0 log |
| `--report FILE` | writes to a file (`-`: stdout) instead of stderr; not of `relay compile` and `relay partition` |

`relay match` also writes its matches as diagnostics. `--format json` prints one object in each line on stdout;
`--format sarif` puts them into the results of the log.

In Python, `RelayError.diagnostics` has the values. `relaylang.diagnostics.render`, `relaylang.diagnostics.export.as_json`
and `as_sarif` convert them. `Fix.apply(text)` applies a repair.
"""

SCHEMA = f"""## The JSON objects

Each line has one object, for one diagnostic. Later versions may add fields. A changed or removed field raises `version`.

```
{json.dumps(as_json(ours("def @main() { add(1 2) }")[0]), indent=1, ensure_ascii=False)}
```

`severity` is `error`, `warning` or `note`. The first label with `primary` is the place of the diagnostic. `labels` is empty
if it has none. Lines and columns count from 1, offsets from 0. Columns and offsets count Unicode code points. `end` is the
place after the last character. `fix` is null or an edit that replaces a span by `replacement`.

The SARIF log has a run with a rule for each code and a result for each diagnostic. Other labels are `relatedLocations`, and
repairs are `fixes`. Code hosts show them in place: `relay check net.relay --format sarif --report net.sarif`.
"""

BEFORE = """`scripts/diagnostics_page.py` records the answers of TVM 0.16 and of relaylang to wrong programs.
"""


def main() -> None:
    if "--oracle" in sys.argv:
        python, folder = sys.argv[sys.argv.index("--oracle") + 1 :][:2]
        record = {title: theirs(python, folder, text) for title, text in PROGRAMS}
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    PAGE.write_text(page(json.loads(RECORD.read_text())))


if __name__ == "__main__":
    main()
