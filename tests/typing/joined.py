"""Programs with several mistakes, joined of programs with one: `python -m tests.typing.joined 3000 7`.

The mistakes are those of `malformed.txt`, `errors.txt` and the page of typical mistakes. Two or three programs stand in one text,
as functions one after the other, or as statements of one function.
Each error of a program alone must come for the text, too, at its place.
An error that no program has alone is a follow-up.
"""

from __future__ import annotations

import random
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from relaylang.cli.program import load_checked
from relaylang.diagnostics import RelayError, SourceFile
from tests.shared import ROOT

#: An error: its code, its sentence, and where it begins in the text.
Said = tuple[str, str, int]
_PAGE = re.compile(r"(?<=^```relay-wrong\n)(.*?)^```\n", re.M | re.S)
_HEAD = re.compile(r"def @\w+\((?P<params>[^{}()]*(?:\([^()]*\)[^{}()]*)*)\)(?: -> [^{]*)? \{\n(?P<body>.*)\n\}\n*", re.S)
_VARIABLE = re.compile(r"%(\w+)")
_GLOBAL = re.compile(r"(?<!\w)@(\w+)")
_TYPE = re.compile(r"^(?:extern type|type|data) (\w+)", re.M)
_CONSTRUCTOR = re.compile(r"[{,]\s*([A-Z]\w*)")
#: Mistakes that concern a whole text.
_WHOLE = ("R0106", "R0110", "R0111")


def errors(text: str) -> list[Said]:
    """The errors of a text, as `relay check` shows them."""
    try:
        load_checked(SourceFile("net.relay", text))
    except RelayError as wrong:
        return [(d.code, d.title, d.span.start if d.span is not None else -1) for d in wrong.diagnostics if d.severity == "error"]
    return []


@cache
def table() -> list[str]:
    """The programs of the tables that have mistakes of their own text."""
    malformed = (ROOT / "tests/syntax/malformed.txt").read_text("utf-8")
    programs = [re.split(r"\n! ", case.strip("\n"))[0] for case in malformed.split("\n---") if case.strip()]
    typed = (ROOT / "tests/typing/errors.txt").read_text("utf-8")
    programs += [re.sub(r"^! .*\n?", "", block, flags=re.M) for block in typed.split("\n\n")]
    programs += _PAGE.findall((ROOT / "docs/mistakes.md").read_text("utf-8"))
    kept = []
    for program in dict.fromkeys(p.strip("\n") + "\n" for p in programs):
        if (
            program.startswith(("def @", "type "))
            and not re.search(r"#\[|import|^v0|meta\[", program)
            and program.isascii()
            and _ends(program)
        ):
            said = errors(program)
            if said and not any(code in _WHOLE for code, _, _ in said):
                kept.append(program)
    return kept


def _ends(program: str) -> bool:
    """Whether its strings and comments end in it, so that another program may follow."""
    return program.count('"') % 2 == 0 and program.count("/*") == program.count("*/") and program.rstrip().endswith("}")


def renamed(program: str, number: int) -> str:
    """A program with names of its own."""
    for name in {*_TYPE.findall(program), *(_CONSTRUCTOR.findall(program) if _TYPE.search(program) else ())}:
        program = re.sub(rf"(?<![\w%@.\"]){name}(?!\w)", f"{name}{'ABC'[number]}", program)
    program = _GLOBAL.sub(lambda found: f"@{found[1]}_{'abc'[number]}", program)
    return _VARIABLE.sub(
        lambda found: f"%{number + 1}{found[1].zfill(3)}" if found[1].isdigit() else f"{found[0]}_{'abc'[number]}", program
    )


@dataclass
class Joined:
    """A text of several programs, and the errors that they have alone, at their places in it."""

    text: str = ""
    wanted: list[Said] = field(default_factory=list)

    def add(self, part: str, program: str, at: int) -> None:
        """Add a part that holds the program from its offset `at` on."""
        self.wanted += [(code, title, len(self.text) + begin - at) for code, title, begin in errors(program)]
        self.text += part


def functions(programs: list[str]) -> Joined:
    """One program after the other."""
    joined = Joined()
    for number, program in enumerate(programs):
        program = renamed(program, number)
        joined.add(program, program, 0)
    return joined


def statements(programs: list[str]) -> Joined | None:
    """The bodies of the programs as statements of one function; None where a program is more than a body, or where its
    body ends other blocks than its own."""
    heads = [_HEAD.fullmatch(renamed(program, number)) for number, program in enumerate(programs)]
    bodies = [head["body"] if head is not None else "}" for head in heads]
    if any(body.count("{") != body.count("}") or re.search(r"^(?:def|type|\})", body, re.M) for body in bodies):
        return None
    params = ", ".join(p for head in heads if head is not None and (p := head["params"].strip().rstrip(",")))
    joined = Joined(f"def @main({params}) {{\n")
    for number, head in enumerate(heads):
        assert head is not None
        alone = f"def @main({head['params'].strip()}) {{\n  let %r{number} = {{\n{head['body']}\n  }};\n  %r{number}\n}}\n"
        begin = alone.index("  let %r")
        said = errors(alone)
        if not said or any(at < begin for _, _, at in said) or any("defined" in title for _, title, _ in said):
            return None
        part = alone[begin : alone.rindex(f"  %r{number}\n")]
        joined.wanted += [(code, title, len(joined.text) + at - begin) for code, title, at in said]
        joined.text += part
    joined.text += f"  ({', '.join(f'%r{i}' for i in range(len(heads)))})\n}}\n"
    return joined


def joins(seed: int, count: int) -> Iterator[Joined]:
    """Texts with two or three mistakes."""
    rng = random.Random(seed)
    while count:
        programs = rng.sample(table(), rng.choice((2, 3)))
        joined = statements(programs) if rng.random() < 0.5 else functions(programs)
        if joined is not None:
            count -= 1
            yield joined


def measure(seed: int, count: int, show: bool = False) -> tuple[int, int, int]:
    """How many errors there are, how many of them are not found, and how many follow-ups are shown."""
    total = missed = more = 0
    for joined in joins(seed, count):
        wanted, found = Counter(joined.wanted), Counter(errors(joined.text))
        lost, new = wanted - found, found - wanted
        total += wanted.total()
        missed += lost.total()
        more += new.total()
        if show and (lost or new):
            print("-" * 60, joined.text, *(f"  missed {x}" for x in lost), *(f"  new    {x}" for x in new), sep="\n")
    return total, missed, more


if __name__ == "__main__":
    total, missed, more = measure(int(sys.argv[2]), int(sys.argv[1]), len(sys.argv) > 3)
    print(f"{total} errors: {100 * (total - missed) / total:.2f} % found, {100 * more / total:.2f} % follow-ups")
