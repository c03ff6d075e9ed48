"""relay test: RUN and CHECK lines, expected diagnostics, parts, --update, reports."""

from __future__ import annotations

import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from relaylang.runtime.trust import MADE
from relaylang.testing.directives import read_test
from tests.cli.command import Ran, one_diagnostic, relay
from tests.shared import PATIENCE, few, wait_for_work

pytest.importorskip("filecheck", reason="relay test needs filecheck: pip install 'relaylang[golden]'")

Caps = pytest.CaptureFixture[str]
PRINT = "// RUN: relay print %s --no-types\n"
VERIFY = "// RUN: relay check %s --verify-diagnostics\n"
TWO = "%x = add(1, 2);\nmultiply(%x, 3)\n"


def run(capsys: Caps, folder: Path, *arguments: str, **files: str) -> Ran:
    for name, text in files.items():
        (folder / f"{name}.relay").write_text(text)
    return relay(capsys, "test", folder, *arguments)


def test_passes_fails_and_reports(capsys: Caps, tmp_path: Path) -> None:
    junit = tmp_path / "out.xml"
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "no_test.relay").write_text("1")
    ran = run(
        capsys,
        tmp_path,
        "--junit",
        str(junit),
        good=PRINT + "// CHECK: add(1, 2)\n// CHECK-NEXT: multiply\n// CHECK-NOT: subtract\n" + TWO,
        bad=PRINT + "// CHECK: add(1, 2)\n// CHECK: divide\n" + TWO,
    )
    assert ran.status == 1
    assert f"FAILED {tmp_path}/bad.relay" in ran.out and "good.relay" not in ran.out
    assert ran.out.splitlines()[-1].startswith("1 passed, 1 failed in ")
    assert f"{tmp_path}/bad.relay:3:11: error[R0760]" in ran.err and "divide" in ran.err and "relay print" in ran.err
    suite = ET.parse(junit).getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert [(c.get("name"), len(c)) for c in suite] == [("bad.relay", 1), ("good.relay", 0)]


@pytest.mark.sweep
def test_pipes_prefixes_not_and_merged_errors(capsys: Caps, tmp_path: Path) -> None:
    text = (
        "// RUN: relay print %s | relay print - --anf --no-types | \\\n"
        "// RUN:   filecheck %s --check-prefix=ANF\n"
        "// RUN: not relay print %S/inputs/wrong.relay 2>&1\n"
        "// ANF: let %[[A:[a-z_0-9]+]] = add(\n"
        "// ANF: multiply(%[[A]],\n"
        "// CHECK: error[R0202]\n" + TWO
    )
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "wrong.relay").write_text("nn.rellu(1f)")
    ran = run(capsys, tmp_path, "-v", a=text)
    assert ran.status == 0, ran
    assert ran.out.startswith("passed ")


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("text", "code", "says"),
    [
        (PRINT + TWO, "R0761", "checks nothing"),
        (VERIFY + TWO, "R0761", "checks nothing"),
        ("// CHECK: add\n" + TWO, "R0761", "no RUN line"),
        ("// RUN: rm -r %s\n// CHECK: a\n1", "R0762", "calls `relay VERB ...`, not `rm -r %s`"),
        ("// RUN: relay print %s > x\n// CHECK: a\n1", "R0762", "has no `>`"),
        ("// RUN: relay print %s | FileCheck %s\n// CHECK: a\n1", "R0762", "leave it out: the output is compared with the checks"),
        ("// RUN: relay print %s\n// CHEK: 1\n1", "R0762", "2:4: error[R0762]: there is no check `CHEK:`"),
        ("// RUN: relay print %s\n// CHECK: 1\n// CHCEK-NOT: 2\n1", "R0762", "did you mean `CHECK`?"),
        ("// RUN: relay print %s | filecheck --check-prefix=OUT\n// OTU: 1\n1", "R0762", "did you mean `OUT`?"),
        ("// RUN: relay print %s\n// CHECK: {{[}}\n1", "R0760", "2:13: error[R0760]: `{{[}}` holds no regular expression"),
        ("// RUN: relay print '%s\n// CHECK: a\n1", "R0762", "no closing quotation"),
        ("// RUN: relay print %s \\\n1", "R0762", "no RUN line follows"),
        (VERIFY + "// expected-eror@+1 {{x}}\n1", "R0762", "cannot be read"),
        ("// RUN: relay print %s\n// CHECK: 1\n// CHECK-NXT: }\n1", "R0762", "there is no check `CHECK-NXT:`"),
        ("// RUN: relay print %s\n// CHECK: 1\n// CHECK-COUNT: }\n1", "R0762", "there is no check `CHECK-COUNT:`"),
        ("// RUN: relay print %s\n// CHECK: 1\n// CHECK-NEXT-NOT: }\n1", "R0762", "there is no check `CHECK-NEXT-NOT:`"),
        (VERIFY + "// expected-error@+1 {{}}\n1", "R0761", "no text"),
        (PRINT + "// CHECK: {{(}}\n1", "R07", ""),
        (PRINT + "// CHECK:\n1", "R0760", "empty check"),
        ("// RUN: relay check %s\n" + "// CHECK: ok\nnn.rellu(1f)", "R0760", "ended with status 1"),
        (PRINT.replace("relay", "not relay") + "// CHECK: 1\n1", "R0760", "the call succeeds"),
    ],
)
def test_wrong_tests(capsys: Caps, tmp_path: Path, text: str, code: str, says: str) -> None:
    ran = run(capsys, tmp_path, a=text)
    assert ran.status == 1 and "1 failed" in ran.out
    assert f"error[{code}" in ran.err and says in ran.err.lower() + ran.err and "Traceback" not in ran.err, ran.err


def test_wrong_calls(capsys: Caps, tmp_path: Path) -> None:
    one_diagnostic(relay(capsys, "test", tmp_path), 2, "R0700")
    one_diagnostic(relay(capsys, "test", tmp_path, "-j", "0"), 2, "R0700")
    one_diagnostic(relay(capsys, "test", tmp_path / "none.relay"), 2, "R0001")
    (tmp_path / "a.relay").write_bytes(b"\xff// RUN:")
    ran = relay(capsys, "test", tmp_path)
    assert ran.status == 1 and "error[R0003]" in ran.err


def test_without_filecheck_the_command_to_install_it(capsys: Caps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.relay").write_text(PRINT + "// CHECK: 1\n1\n")
    monkeypatch.setitem(sys.modules, "filecheck.finput", None)
    ran = relay(capsys, "test", tmp_path)
    one_diagnostic(ran, 2, "R0763")
    assert "pip install 'relaylang[golden]'" in ran.err


EXPECTED = """\
// RUN: relay check %s --verify-diagnostics
// expected-error@+1 {{no operator}}
nn.rellu(1f)
// -----
// expected-error-re@below {{R0202: .*{{rel+u}}}}
nn.rellu(2f)
// -----
add(1, 2)
"""


@pytest.mark.sweep
def test_expected_diagnostics(capsys: Caps, tmp_path: Path) -> None:
    first = run(capsys, tmp_path, "--update", a=EXPECTED)
    assert first.status == 0 and "1 updated" in first.out
    text = (tmp_path / "a.relay").read_text()
    assert text.count("// expected-error@+1 {{") == 2 and "no operator}}" not in text
    assert run(capsys, tmp_path).out.startswith("1 passed")
    elsewhere = run(capsys, tmp_path, a=text.replace("@+1", "@+0", 1))
    assert elsewhere.status == 1
    assert "expected error did not come, at line 2" in elsewhere.err and "unexpected error: R0202" in elsewhere.err
    assert "a.relay:3:1" in elsewhere.err


@pytest.mark.sweep
def test_update_writes_checks_and_keeps_everything_else(capsys: Caps, tmp_path: Path) -> None:
    text = "// What it is about.\n" + PRINT + "// CHECK: wrong\n// CHECK-NEXT: too\n// A remark.\n" + TWO
    other = tmp_path / "other.txt"
    other.write_text("stays")
    ran = run(capsys, tmp_path, "--update", a=text, b=PRINT + TWO, c="// RUN: relay check %s\n// CHECK: a\nnn.rellu(1f)")
    assert ran.status == 1 and "2 updated, 1 failed" in ran.out
    wanted = "// CHECK: %0 = add(1, 2);\n// CHECK-NEXT: multiply(%0, 3)\n"
    assert (tmp_path / "a.relay").read_text() == "// What it is about.\n" + PRINT + wanted + "// A remark.\n" + TWO
    assert (tmp_path / "b.relay").read_text() == PRINT + wanted + "\n" + TWO
    assert (tmp_path / "c.relay").read_text().endswith("nn.rellu(1f)") and other.read_text() == "stays"
    before = (tmp_path / "a.relay").stat().st_mtime_ns
    assert run(capsys, tmp_path, "-k", "/a.relay", "--update").status == 0
    assert (tmp_path / "a.relay").stat().st_mtime_ns == before


@pytest.mark.sweep
def test_parts_are_run_on_their_own(capsys: Caps, tmp_path: Path) -> None:
    text = PRINT + "%x = add(1, 2);\n%x\n// -----\n%x = multiply(3, 4);\n%x\n"
    assert run(capsys, tmp_path, "--update", a=text).status == 0
    first, _, second = (tmp_path / "a.relay").read_text().partition("// -----\n")
    assert "// CHECK: add(1, 2)" in first and second.startswith("// CHECK: multiply(3, 4)")
    assert run(capsys, tmp_path).status == 0


@pytest.mark.sweep
def test_a_call_that_does_not_end(capsys: Caps, tmp_path: Path) -> None:
    loop = "def @f(%n: int32) -> int32 { @f(%n) }\ndef @main() -> int32 { @f(1) }\n"
    ran = run(capsys, tmp_path, "--timeout", "2", a="// RUN: relay run %s\n// CHECK: 1\n" + loop)
    assert ran.status == 1 and "longer than 2 s" in ran.err


@pytest.mark.sweep
def test_ctrl_c_ends_what_is_running(tmp_path: Path) -> None:
    loop = "// RUN: relay run %s\n// CHECK: 1\ndef @f(%n: int32) -> int32 { @f(%n) }\ndef @main() -> int32 { @f(1) }\n"
    for name in "abc":
        (tmp_path / f"{name}.relay").write_text(loop)
    command = [sys.executable, "-m", "relaylang", "test", str(tmp_path), "-j", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    wait_for_work(process.pid, 0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130 and b"interrupted" in err and b"Traceback" not in err


@pytest.mark.sweep
def test_a_terminal_shows_how_many_tests_have_ended(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / f"{name}.relay").write_text(PRINT + ("// CHECK: divide\n" if name == "a" else "// CHECK: add\n") + TWO)
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "relaylang", "test", str(tmp_path), "-j", "1"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "60"}
    ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=slave, text=True, env=env)
    os.close(slave)
    seen = os.read(master, 100_000).decode()
    os.close(master)
    assert ran.returncode == 1 and ran.stdout.splitlines()[-1].startswith("2 passed, 1 failed in ")
    assert re.search(r"\x1b\[K[12]/3, 1 failed \[", seen)  # a quick machine ends some tests between two drawings


@pytest.mark.sweep
def test_an_update_that_breaks_another_run_line_is_taken_back(capsys: Caps, tmp_path: Path) -> None:
    text = PRINT + "// RUN: relay print %s --no-types --anf\n// CHECK: multiply(%0, 7)\n" + TWO
    ran = run(capsys, tmp_path, "--update", a=text)
    assert ran.status == 1 and "1 failed" in ran.out
    assert (tmp_path / "a.relay").read_text() == text


def test_parts_keep_their_lines(tmp_path: Path) -> None:
    file = tmp_path / "a.relay"
    file.write_text(EXPECTED)
    test = read_test(str(file))
    assert [(p.first, p.last, [e.line for e in p.expected]) for p in test.parts] == [(1, 3, [3]), (5, 6, [6]), (8, 8, [])]
    assert test.part_text(test.parts[2]) == "\n" * 7 + "add(1, 2)\n"


def test_check_and_opt_verify_diagnostics_themselves(capsys: Caps, tmp_path: Path) -> None:
    file = tmp_path / "a.relay"
    wrong = "// expected-error@+1 {{R0202}}\nnn.rellu(1f)\n"
    file.write_text(wrong + "// -----\nadd(1, 2)\n")
    assert relay(capsys, "check", file, "--verify-diagnostics") == (0, f"{file}: ok (as expected)\n", "")
    ran = relay(capsys, "opt", file, "--passes", "FoldConstant", "--no-types", "--verify-diagnostics")
    assert (ran.status, ran.err) == (0, "") and "  3\n" in ran.out
    file.write_text(wrong.replace("R0202", "R0301"))
    for verb in (["check"], ["opt", "--passes", "FoldConstant"]):
        ran = relay(capsys, *verb, file, "--verify-diagnostics")
        assert ran.status == 1 and ran.out == ""
        assert ":1:1: error[R0760]: expected error did not come" in ran.err
        assert ":2:1: error[R0760]: unexpected error: R0202" in ran.err
    file.write_text("add(1, 2)\n")
    one_diagnostic(relay(capsys, "check", file, "--verify-diagnostics"), 1, "R0761")
    one_diagnostic(relay(capsys, "check", tmp_path / "no.relay", "--verify-diagnostics"), 2, "R0001")


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("checks", "wanted"),
    [
        ("// CHECK: %0 = add\n// CHECK: multiply(%0, 7)\n", "// CHECK: %0 = add\n// CHECK: multiply(%0, 3)\n"),
        (
            "// CHECK: {{%[0-9]+}} = add\n// CHECK-NEXT: multiply(%0, 7)\n",
            "// CHECK: {{%[0-9]+}} = add\n// CHECK-NEXT: multiply(%0, 3)\n",
        ),
    ],
)
def test_update_writes_the_nearest_line(capsys: Caps, tmp_path: Path, checks: str, wanted: str) -> None:
    assert run(capsys, tmp_path, "--update", a=PRINT + checks + TWO).status == 0
    assert (tmp_path / "a.relay").read_text() == PRINT + wanted + TWO


@pytest.mark.sweep
def test_update_finds_a_part_of_a_long_line(capsys: Caps, tmp_path: Path) -> None:
    text = "// RUN: relay print %s\n// CHECK: add(1, 7)\n// CHECK-NOT: divide\n" + TWO
    assert run(capsys, tmp_path, "--update", a=text).status == 0
    assert "// CHECK: add(1 /* ty=int32 */, 2 /* ty=int32 */)\n" in (tmp_path / "a.relay").read_text()


@pytest.mark.sweep
def test_update_leaves_bad_checks(capsys: Caps, tmp_path: Path) -> None:
    text = PRINT + "// CHECK: add(\n// CHECK: {{(}}\n" + TWO
    assert run(capsys, tmp_path, "--update", a=text).status == 1
    assert (tmp_path / "a.relay").read_text() == text


@pytest.mark.sweep
def test_an_update_in_the_wrong_order_fails(capsys: Caps, tmp_path: Path) -> None:
    ran = run(capsys, tmp_path, "--update", a=PRINT + "// CHECK: multiply(%0, 3)\n// CHECK: add(1, 7)\n// CHECK-NOT: x\n" + TWO)
    assert ran.status == 1 and "error[R0760]" in ran.err


@pytest.mark.sweep
def test_a_test_does_not_run_itself(capsys: Caps, tmp_path: Path) -> None:
    ran = run(capsys, tmp_path, a="// RUN: relay test %s\n// CHECK: 1\n1\n")
    assert ran.status == 1 and "a RUN line runs no tests" in ran.err


@pytest.mark.sweep
def test_update_keeps_checks_that_choose_lines(capsys: Caps, tmp_path: Path) -> None:
    text = PRINT + "// CHECK: add(1, 7)\n// CHECK-NOT: divide\n" + TWO
    ran = run(capsys, tmp_path, "--update", a=text)
    assert ran.status == 0 and "1 updated" in ran.out
    assert (tmp_path / "a.relay").read_text() == PRINT + "// CHECK: add(1, 2)\n// CHECK-NOT: divide\n" + TWO
    assert run(capsys, tmp_path).status == 0
    far = PRINT + "// CHECK-DAG: @nowhere_at_all\n" + TWO
    ran = run(capsys, tmp_path, "--update", a=far)
    assert ran.status == 1 and "change them by hand" in ran.err
    assert (tmp_path / "a.relay").read_text() == far


@pytest.mark.parametrize(
    "check",
    few(
        ["CHECK: {{[}}", "CHECK: [[X", "CHECK: [[#Y+]]", "CHECK: [[X:(]]", "CHECK: {{(?P<a>}}", "CHECK-COUNT-0: 1"],
        "CHECK: {{[}}",
    ),
)
def test_a_bad_check_is_one_failed_test(capsys: Caps, tmp_path: Path, check: str) -> None:
    ran = run(capsys, tmp_path, a=f"{PRINT}// {check}\n{TWO}", b=PRINT + "// CHECK: add(1, 2)\n" + TWO)
    assert ran.status == 1 and "1 passed, 1 failed" in ran.out
    assert "R0900" not in ran.err and "Traceback" not in ran.err


#: Calls that would run code of a file.
CODE = [
    "opt %s --load %S/evil.py --passes FuseOps",
    "tvm %S/evil.py",
    "compile %s --cc %S/evil.sh -o %t.so",
    'run %s --target "c -cc=%S/evil.sh"',
    'run %s --target "c -cflags=-fplugin=%S/evil.so"',
    "run %S/net.so",
]


def test_no_code_of_a_file_runs_unless_the_tests_are_trusted(capsys: Caps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(mark)!r}, 'w')")
    (tmp_path / "evil.sh").write_text(f"#!/bin/sh\ntouch {mark}\n")
    (tmp_path / "evil.sh").chmod(0o755)
    (tmp_path / "net.so").write_bytes(b"\x7fELF")
    (tmp_path / "own.relay").write_text("add(1, 2)\n")
    monkeypatch.setenv(MADE, str(tmp_path / "made"))
    for line in CODE:
        words = line.replace("%s", f"{tmp_path}/own.relay").replace("%S", str(tmp_path)).replace("%t", f"{tmp_path}/t")
        ran = relay(capsys, *shlex.split(words))
        assert ran.status in (1, 2) and ran.err.startswith("error[R0764]") and ran.out == "", ran
    monkeypatch.delenv(MADE)
    line = "// RUN: not relay opt %s --load %S/evil.py --passes FuseOps 2>&1\n// CHECK: R0764\nadd(1, 2)\n"
    assert run(capsys, tmp_path, own=line).status == 0 and not mark.exists()
    trusted = tmp_path / "trusted"
    trusted.mkdir()
    own = "// RUN: not relay opt %s --load %S/../evil.py --passes FuseOps 2>&1\n// CHECK: evil.py\nadd(1, 2)\n"
    assert run(capsys, trusted, "--trust", own=own).status == 0 and mark.exists()


@pytest.mark.sweep
def test_a_test_runs_the_program_that_it_compiles(capsys: Caps, tmp_path: Path) -> None:
    text = "// RUN: relay compile %s -o %t.so | relay run %t.so\n// CHECK: 3\nadd(1, 2)\n"
    assert run(capsys, tmp_path, own=text).status == 0
