"""Writes docs/diagnostics.md: wrong programs, what TVM 0.16 answers, and what relaylang says.

    scripts/diagnostics_page.py                          our half anew, TVM's as recorded in diagnostics_tvm.json
    scripts/diagnostics_page.py --oracle PYTHON FOLDER   TVM's half anew: a Python that has TVM, and the folder of x86.py
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
        "def @main(%x: Tensor[(1, 3, 8, 8), float32], %w: Tensor[(4, 3, 3, 3), float32]) {\n"
        "  nn.conv2d(%x, %w, stride=[2, 2])\n}",
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
    """What relaylang says of a program."""
    try:
        result = parse(HEADER + text, "net.relay")
        return infer(result.value, fragment=not isinstance(result.value, IRModule))
    except RelayError as wrong:
        return wrong.diagnostics


def theirs(python: str, folder: str, text: str) -> dict[str, object]:
    """What TVM answers, as short facts: the kind of answer, its place, the beginning of its message."""
    try:
        run = subprocess.run(
            [python, "-c", _WORKER, folder], input=HEADER + text, capture_output=True, text=True, timeout=120
        )
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
    out = [INTRODUCTION, SCHEMA, "## Before and after\n", BEFORE]
    for title, text in PROGRAMS:
        out.append(f"### {title}\n")
        out.append(f"```\n{text}\n```\n")
        out.append(_their_half(record[title]))
        said = "\n".join(render(d) for d in ours(text))
        out.append(f"relaylang:\n\n```\n{_moved(said)}\n```\n")
    return "\n".join(out)


def _moved(said: str) -> str:
    """Lines counted without the header that both readers were given."""
    said = re.sub(r"^(net\.relay:)(\d+)", lambda m: m[1] + str(int(m[2]) - 1), said, flags=re.M)
    return re.sub(r"^( *)(\d+) \| ", lambda m: f"{int(m[2]) - 1:5d} | ", said, flags=re.M)


def _their_half(fact: dict[str, object]) -> str:
    if "place" not in fact:
        return f"TVM 0.16 {fact['kind']}.\n" if fact["kind"] == "accepts it" else f"TVM 0.16: {fact['kind']}.\n"
    where = f" at {fact['place']}" if fact["place"] else " without a place"
    says = f': "{fact["says"]}"' if fact["says"] else ""
    return f"TVM 0.16: {fact['kind']}{where}{says}.\n"


INTRODUCTION = """# What relaylang says about wrong programs

Every failure that input can cause is a diagnostic: a code, one sentence, labelled places, notes, and where it is known a
repair that a tool can make. `relay explain R0102` prints what a code means, with an example and its repair;
`relay explain` lists all codes. Exit status: 0 all is well, 1 the program is wrong, 2 the call is wrong.

    FILE:LINE:COL: error[R0102]: this `(` is never closed

The reader goes on after an error and shows up to twenty, and counts the others. A first guess that was uncertain silences
what comes behind it on the line, so that one slip is one error.

| option, for every verb | |
|---|---|
| `--color auto`, `always`, `never` | colour on a terminal (auto), unless NO_COLOR is set |
| `--format text`, `json`, `sarif` | for people, one JSON object a line, or one SARIF 2.1.0 log |
| `--report FILE` | to a file (`-`: stdout) instead of stderr |

Of a file's errors the first twenty are shown, in every format; a note (`R0090`) counts the others. `relay match` writes its
matches as diagnostics, too: with `--format json` an object a line on stdout, with `sarif` as the log's results.

In Python, `RelayError.diagnostics` are the values; `relaylang.diagnostics.render`, `relaylang.diagnostics.export.as_json` and
`as_sarif` show them; `Fix.apply(text)` makes a repair.
"""

SCHEMA = f"""## The JSON objects

One object a line for each diagnostic. Fields may be added; `version` is raised where one changes or goes.

```
{json.dumps(as_json(ours("def @main() { add(1 2) }")[0]), indent=1, ensure_ascii=False)}
```

`severity` is `error`, `warning` or `note`. The first label with `primary` is the diagnostic's place; `labels` is empty
where it has none. Lines and columns count from 1, columns and offsets (from 0) in Unicode code points; `end` is the place
behind the stretch. `fix` is null or an edit: the stretch's text becomes `replacement`.

The SARIF log has a run with a rule for each code, a result for each diagnostic, `relatedLocations` for its other labels and
`fixes`, so that code hosts show them in place: `relay check net.relay --format sarif --report net.sarif`.
"""

BEFORE = """What TVM 0.16's reader and type checker answer to wrong programs, recorded by `scripts/diagnostics_page.py`, and what
relaylang says.
"""


def main() -> None:
    if "--oracle" in sys.argv:
        python, folder = sys.argv[sys.argv.index("--oracle") + 1 :][:2]
        record = {title: theirs(python, folder, text) for title, text in PROGRAMS}
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
    PAGE.write_text(page(json.loads(RECORD.read_text())))


if __name__ == "__main__":
    main()
