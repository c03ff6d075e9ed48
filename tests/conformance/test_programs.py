"""Small programs, one point of the type system each, with TVM 0.16's answers.

programs.txt holds each program on a line, with indented lines below it. `tvm:` has the type that TVM gives `@main`,
`refused`, or `crashed`. If our answer is another, `ours:` has it and `why:` the reason.
"""

from __future__ import annotations

from pathlib import Path

from relaylang.diagnostics import RelayError
from relaylang.ir import IRModule
from relaylang.syntax import parse
from relaylang.typing import infer
from tests.shared import check_each

FILE = Path(__file__).parent / "programs.txt"


def programs() -> list[tuple[str, dict[str, str]]]:
    made: list[tuple[str, dict[str, str]]] = []
    for line in FILE.read_text().splitlines():
        if line.startswith("  "):
            who, _, what = line.strip().partition(":")
            made[-1][1][who] = what.strip()
        else:
            made.append((line, {}))
    return made


def answer(program: str) -> str:
    try:
        module = parse('#[version = "0.0.5"]\n' + program).module
        assert isinstance(module, IRModule)
        if any(d.severity == "error" for d in infer(module)):
            return "refused"
    except RelayError as problem:
        assert all(d.span is not None for d in problem.diagnostics)
        return "refused"
    return repr(module["main"].checked_type)


def agrees(program: str, answers: dict[str, str]) -> None:
    assert answer(program) == answers.get("ours", answers["tvm"])
    assert ("ours" in answers) == ("why" in answers)
    assert answers.get("ours") != answers["tvm"]


def test_program() -> None:
    check_each(lambda pair: agrees(*pair), programs())
