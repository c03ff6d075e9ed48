"""The checks of test files: the nearest text for one that fails, and what an update rewrites."""

from __future__ import annotations

from pathlib import Path

import pytest

from relaylang.testing.directives import Found, read_test
from relaylang.testing.matching import diagnose

pytest.importorskip("filecheck", reason="relay test needs filecheck: pip install 'relaylang[golden]'")

from relaylang.testing.matching import FileCheck
from relaylang.testing.update import Checks, with_expectations

RUN = "// RUN: relay print %s\n"
OUTPUT = """\
#[version = "0.0.5"]
%0 = add(1, 2);
%1 = multiply(%0, 3);
%2 = nn.relu(%1);
tanh(%2)
"""


def said(tmp_path: Path, checks: str, output: str = OUTPUT) -> list[str]:
    """The diagnostic for a file with these checks, its title and its lines about the output."""
    file = tmp_path / "a.relay"
    file.write_text(RUN + checks + "1\n")
    test = read_test(str(file))
    miss = FileCheck().miss(test.source.text, [str(file)], output)
    if miss is None:
        return []
    lines = str(diagnose(miss, test, test.runs[0], output)).splitlines()
    title = lines[0].partition("error[R0760]: ")[2]
    about = lines.index(next((line for line in lines if line.startswith("  in <output>")), lines[-1]))
    return [title, *(line.strip() for line in lines[about:] if "ran: relay" not in line)]


CASES = [
    ("// CHECK: add(1, 2)\n// CHECK-NEXT: multiply\n// CHECK-NOT: tan(\n", []),
    (
        "// CHECK: multiply(%0, 7)\n",
        [
            "no text in the rest of the output fits this check",
            "in <output>:3:19:",
            "3 | %1 = multiply(%0, 3);",
            "|                   - the check has `7` here",
        ],
    ),
    (
        "// CHECK: %[[A:[0-9]+]] = add\n// CHECK-NEXT: %[[B:[0-9]+]] = subtract(%[[A]], 3);\n",
        [
            "the next line of the output does not fit this check",
            "in <output>:3:6:",
            "3 | %1 = multiply(%0, 3);",
            "|      -------- the check has `subtract` here",
        ],
    ),
    (
        "// CHECK: %[[A:[0-9]+]] = add\n// CHECK: nn.relu(%[[A]])\n",
        [
            "no text in the rest of the output fits this check",
            "in <output>:4:15:",
            "4 | %2 = nn.relu(%1);",
            "|               - the check has `[[A]]` here",
        ],
    ),
    (
        "// CHECK: add(\n// CHECK-NEXT: nn.relu(\n",
        [
            "the next line of the output does not fit this check",
            "in <output>:3:1:",
            "3 | %1 = multiply(%0, 3);",
            "| --------------------- the search looks at this line alone",
            "4 | %2 = nn.relu(%1);",
            "|      -------- this fits, at another line",
        ],
    ),
    (
        "// CHECK: nn.relu\n// CHECK: multiply(\n",
        [
            "no text in the rest of the output fits this check",
            "in <output>:3:6:",
            "3 | %1 = multiply(%0, 3);",
            "|      --------- this fits, but stands before the match of an earlier check",
        ],
    ),
    (
        "// CHECK: add\n// CHECK-NOT: nn.{{[a-z]+}}\n// CHECK: tanh\n",
        [
            "the output has a text that this check excludes",
            "in <output>:4:6:",
            "4 | %2 = nn.relu(%1);",
            "|      ------- this is excluded",
        ],
    ),
    (
        "// CHECK: nn.relu\n// CHECK-NEXT: @elsewhere\n",
        [
            "the next line of the output does not fit this check",
            "in <output>:5:1:",
            "5 | tanh(%2)",
            "| -------- the search begins here",
            "= note: no line of the output is like this check",
        ],
    ),
    (
        "// CHECK: tanhh\n",
        ["no text in the rest of the output fits this check", "in <output>:5:1:", "5 | tanh(%2)", "| ---- the check has `tanhh` here"],
    ),
    (
        "// CHECK: nn.rellu(%\n",
        [
            "no text in the rest of the output fits this check",
            "in <output>:4:6:",
            "4 | %2 = nn.relu(%1);",
            "|      ------- the check has `nn.rellu` here",
        ],
    ),
    (
        "// CHECK: multiply(%[[B]], 3)\n",
        ["`[[B]]` has no value here: write `[[B:regular expression]]` in a check above"],
    ),
    (
        "// CHECK-COUNT-2: nn.relu(\n",
        [
            "too few texts of the output fit this check",
            "in <output>:4:6:",
            "4 | %2 = nn.relu(%1);",
            "|      -------- this fits, and more are wanted",
        ],
    ),
    (
        "// CHECK: nn.relu\n// CHECK-EMPTY:\n",
        [
            "the next line of the output is not empty",
            "in <output>:5:1:",
            "5 | tanh(%2)",
            "| -------- the search looks at this line alone",
        ],
    ),
]


@pytest.mark.parametrize(("checks", "wanted"), CASES)
def test_a_failed_check_shows_its_nearest_text(tmp_path: Path, checks: str, wanted: list[str]) -> None:
    assert said(tmp_path, checks) == wanted


def test_an_empty_output(tmp_path: Path) -> None:
    assert said(tmp_path, "// CHECK: add\n", "")[0] == "the output is empty"


def test_a_long_output_is_searched_once(tmp_path: Path) -> None:
    output = "".join(f"%{i} = add(%{i - 1}, %x);\n" for i in range(1, 30_000)) + "%z = nn.softmax(%y, axis=1);\n"
    assert said(tmp_path, "// CHECK: nn.softmax(%y, axis=2)\n", output)[-1].endswith("- the check has `2` here")


def update(tmp_path: Path, checks: str, output: str = OUTPUT) -> str | None:
    """The checks of a file after an update."""
    file = tmp_path / "a.relay"
    file.write_text(RUN + checks + "1\n")
    test = read_test(str(file))
    engine = FileCheck()
    rewriting = Checks(
        test.lines,
        ["CHECK"],
        [(test.parts[0], output, [])],
        lambda text: engine.miss(text, [str(file)], output),
        lambda text: engine.checks(text, [str(file)]),
    )
    lines = rewriting.updated()
    return None if lines is None else "".join(f"{line}\n" for line in lines[1:-1])


UPDATES = [
    # a text, its letters that changed
    ("// CHECK: multiply(%0, 7)\n", "// CHECK: multiply(%0, 3)\n"),
    ("  //  CHECK:   multiply(%0, 7)\n// CHECK: tanh\n", "  //  CHECK:   multiply(%0, 3)\n// CHECK: tanh\n"),
    # captures stay, and the text around them changes
    (
        "// CHECK: %[[A:[0-9]+]] = add(1, 9);\n// a remark\n// CHECK: nn.relu(%{{[0-9]+}}, 7)\n// CHECK-NOT: nn.gelu\n",
        "// CHECK: %[[A:[0-9]+]] = add(1, 2);\n// a remark\n// CHECK: nn.relu(%{{[0-9]+}})\n// CHECK-NOT: nn.gelu\n",
    ),
    # a captured variable that has another value now becomes text
    (
        "// CHECK: %[[A:[0-9]+]] = add(\n// CHECK: tanh(%[[A]])\n",
        "// CHECK: %[[A:[0-9]+]] = add(\n// CHECK: tanh(%2)\n",
    ),
    # lines that select a part of the output stay that part
    (
        "// CHECK: [[A:%[0-9]+]] = add(1\n// CHECK-NEXT: multiplied([[A]], {{[0-9]+}}, 4)\n",
        "// CHECK: [[A:%[0-9]+]] = add(1\n// CHECK-NEXT: multiply([[A]], {{[0-9]+}})\n",
    ),
    ("// CHECK: nn.rellu(%\n", "// CHECK: nn.relu(%\n"),
    # lines that cover the output: one more, in its place, between remarks
    (
        "// CHECK: %[[A:[0-9]+]] = add(1, 2);\n// the product:\n// CHECK-NEXT: %[[B:[0-9]+]] = multiply(%[[A]], 3);\n"
        "// its tanh:\n// CHECK-NEXT: tanh(%2)\n",
        "// CHECK: %[[A:[0-9]+]] = add(1, 2);\n// the product:\n// CHECK-NEXT: %[[B:[0-9]+]] = multiply(%[[A]], 3);\n"
        "// its tanh:\n// CHECK-NEXT: %2 = nn.relu(%1);\n// CHECK-NEXT: tanh(%2)\n",
    ),
    # one line less
    (
        "// CHECK: %0 = add(1, 2);\n// CHECK-NEXT: %1 = multiply(%0, 3);\n// CHECK-NEXT: nn.gelu(@far)\n"
        "// CHECK-NEXT: %2 = nn.relu(%1);\n// CHECK-NEXT: tanh(%2)\n",
        "// CHECK: %0 = add(1, 2);\n// CHECK-NEXT: %1 = multiply(%0, 3);\n// CHECK-NEXT: %2 = nn.relu(%1);\n// CHECK-NEXT: tanh(%2)\n",
    ),
    # no change of a text makes these fit
    ("// CHECK-NOT: tanh\n", None),
    ("// CHECK: tanh\n// CHECK: add(1, 7)\n", None),
    ("// CHECK-DAG: @nowhere_at_all\n", None),
    ("// CHECK: {{(}}\n", None),
]


@pytest.mark.parametrize(("checks", "wanted"), UPDATES)
def test_update_rewrites_what_does_not_fit(tmp_path: Path, checks: str, wanted: str | None) -> None:
    assert update(tmp_path, checks) == wanted


def test_update_keeps_expectations_that_fit(tmp_path: Path) -> None:
    file = tmp_path / "a.relay"
    file.write_text(
        "// RUN: relay check %s --verify-diagnostics\n"
        "// expected-error@+2 {{R0202}}\n"
        "// expected-error@below {{gone}}\n"
        "nn.rellu(1f)\n"
        "nn.tahn(1f) // expected-error-re {{R0202: {{.*tah+n}}}}\n"
        "// expected-error@-2 {{R0202}}\n"
    )
    test = read_test(str(file))
    found = [
        Found("error", "R0202", "unknown operator `nn.rellu`", 4),
        Found("error", "R0301", "another one", 4),
        Found("error", "R0202", "unknown operator `nn.tahn`", 5),
    ]
    lines = with_expectations(test, [(test.parts[0], "", found)])
    assert lines == [
        "// RUN: relay check %s --verify-diagnostics",
        "// expected-error@+2 {{another one}}",
        "// expected-error@+1 {{R0202}}",
        "nn.rellu(1f)",
        "nn.tahn(1f) // expected-error-re {{R0202: {{.*tah+n}}}}",
    ]
