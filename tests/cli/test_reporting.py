"""--format, --color, --report and NO_COLOR, for every verb; wrong calls said in words."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from relaylang.cli.command import VERBS, make_parser
from relaylang.cli.reporting import OWN_REPORT, given_early
from tests.cli.command import relay, relay_process
from tests.cli.test_bad_input import VERB_CALLS, Caps
from tests.diagnostics.test_value import check_sarif
from tests.shared import ROOT

MLP = ROOT / "examples" / "mlp.relay"
WRONG = "def @main(%x: int32 {\n  nn.relu(%x)\n}\n"
CALLS = {**{verb: call for verb, call in VERB_CALLS.items() if verb != "repl"}, "fmt": ["fmt", "--check"]}


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    (tmp_path / "f.relay").write_text(WRONG)
    return tmp_path / "f.relay"


@pytest.mark.parametrize("verb", list(CALLS))
def test_json_for_every_verb(capsys: Caps, wrong: Path, verb: str) -> None:
    ran = relay(capsys, *CALLS[verb], wrong, "--format", "json")
    said = [json.loads(line) for line in ran.err.splitlines()]
    assert ran.status == 1 and ran.out == ""
    assert [d["code"] for d in said if d["severity"] == "error"] == ["R0102"]
    assert said[0]["labels"][0]["start"] == {"line": 1, "column": 10, "offset": 9}


@pytest.mark.parametrize("verb", list(CALLS))
def test_sarif_for_every_verb(capsys: Caps, wrong: Path, verb: str) -> None:
    ran = relay(capsys, *CALLS[verb], wrong, "--format=sarif")
    log = json.loads(ran.err)
    check_sarif(log)
    assert [r["ruleId"] for r in log["runs"][0]["results"]] == ["R0102"]
    assert log["runs"][0]["invocations"] == [{"executionSuccessful": False, "exitCode": ran.status}]


def test_a_right_program_gives_an_empty_log_and_its_result(capsys: Caps) -> None:
    ran = relay(capsys, "check", MLP, "--format", "sarif")
    assert ran.status == 0 and json.loads(ran.err)["runs"][0]["results"] == []
    assert ran.out.endswith("ok (1 function, 10 calls)\n")
    assert relay(capsys, "check", MLP, "--format", "json").err == ""


def test_several_files_are_one_log(capsys: Caps, wrong: Path) -> None:
    again = wrong.with_name("again.relay")
    again.write_text(wrong.read_text())
    ran = relay(capsys, "check", wrong, MLP, again, "--format", "sarif")
    assert len(json.loads(ran.err)["runs"][0]["results"]) == 2


def test_a_report_goes_to_its_file(capsys: Caps, wrong: Path, tmp_path: Path) -> None:
    ran = relay(capsys, "check", wrong, "--format", "sarif", "--report", tmp_path / "r.sarif", "--color", "always")
    assert (ran.status, ran.err) == (1, "")
    check_sarif(json.loads((tmp_path / "r.sarif").read_text()))
    ran = relay(capsys, "check", wrong, "--report", "-", "--color=always")
    assert ran.out.startswith(f"{wrong}:1:10: error[R0102]: ") and ran.err == ""
    ran = relay(capsys, "check", wrong, "--report", tmp_path / "no" / "r.txt")
    assert ran.status == 2 and "error[R0704]: cannot write the report" in ran.err


@pytest.mark.parametrize("verb", VERBS)
def test_reports_of_verbs_take_no_file(verb: str) -> None:
    parser: Any = make_parser(verb)
    own = parser._subparsers._group_actions[0].choices[verb]._option_string_actions["--report"].metavar != "FILE"
    assert own == (verb in OWN_REPORT)
    assert given_early([verb, "net.relay", "--report", "-o"])["report"] == (None if own else "-o")


def test_wrong_calls_are_reported_in_the_form_that_is_asked_for(capsys: Caps) -> None:
    ran = relay(capsys, "check", "--format", "json", MLP, "--frobnicate")
    assert ran.status == 2 and json.loads(ran.err)["code"] == "R0700"
    assert relay(capsys, "check", MLP).err == ""  # nothing is kept from one call to the next


def test_colour(capsys: Caps, wrong: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[" not in relay(capsys, "check", wrong).err
    assert "\x1b[1;31merror" in relay(capsys, "check", wrong, "--color", "always").err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[1;31merror" in relay(capsys, "check", wrong, "--color", "always").err
    assert "\x1b" not in relay(capsys, "check", wrong, "--color", "never").err


@pytest.mark.sweep
@pytest.mark.parametrize(("variable", "painted"), [(None, True), ("NO_COLOR", False)])
def test_colour_on_a_terminal(wrong: Path, variable: str | None, painted: bool) -> None:
    mine, theirs = pty.openpty()
    env = {k: v for k, v in os.environ.items() if k != "NO_COLOR"} | {"TERM": "xterm"} | ({variable: "1"} if variable else {})
    run = subprocess.Popen([sys.executable, "-m", "relaylang", "check", wrong], stderr=theirs, stdout=-3, env=env, cwd="/")
    os.close(theirs)
    said = b""
    try:
        while piece := os.read(mine, 4096):
            said += piece
    except OSError:
        pass
    os.close(mine)
    assert run.wait(60) == 1
    assert b"R0102" in said and (b"\x1b[1;31m" in said) == painted


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (["chek", "f"], "relay has no verb `chek`; did you mean `relay check`?"),
        (["zzz"], "relay has no verb `zzz`; there are check, print"),
        (["check", "f", "--frmat", "json"], "relay check: there is no option --frmat; did you mean --format?"),
        (["check", "f", "--format", "jsn"], "relay check: --format cannot be `jsn`; did you mean json?"),
        (["check", "f", "--color", "purple"], "--color cannot be `purple`; it is one of auto, always, never"),
        (["print", "f", "--style", "lossles"], "--style cannot be `lossles`; did you mean lossless?"),
        (["run", "f", "--random-params", "many"], "relay run: --random-params wants a whole number, not `many`"),
        (["run"], "relay run: FILE is missing"),
        (["print", "a", "b"], "relay print: `b` is one argument too many"),
        (["print", "a", "-o"], "relay print: -o/--output wants a value behind it"),
    ],
)
def test_wrong_calls_in_words(capsys: Caps, call: list[str], says: str) -> None:
    ran = relay(capsys, *call)
    assert ran.status == 2 and ran.out == ""
    assert ran.err.startswith("error[R0700]: ") and says in ran.err


def test_stdin_has_a_name(tmp_path: Path) -> None:
    ran = relay_process("check", "-", stdin=WRONG)
    assert ran.err.startswith("<stdin>:1:10: error[R0102]: ") and ran.status == 1


@pytest.mark.parametrize("line", ["add(1, 2f)", "%no", "nosuch(1)"])
def test_twenty_errors_of_a_file_in_every_format(capsys: Caps, tmp_path: Path, line: str) -> None:
    path = tmp_path / "many.relay"
    lines = ",\n".join([line.replace("no", f"no{i}") for i in range(30)])
    path.write_text(f'#[version = "0.0.5"]\ndef @f() {{\n  ({lines})\n}}\n')
    text = relay(capsys, "check", path).err
    said = [json.loads(line) for line in relay(capsys, "check", path, "--format", "json").err.splitlines()]
    log = json.loads(relay(capsys, "check", path, "--format", "sarif").err)
    check_sarif(log)
    assert text.count("error[R0") == sum(d["severity"] == "error" for d in said) == 20
    assert [r["ruleId"] for r in log["runs"][0]["results"]] == [d["code"] for d in said]
    assert said[-1]["code"] == "R0090" and "R0090" in text


def test_matches_in_every_format(capsys: Caps) -> None:
    ran = relay(capsys, "match", "nn.dense(...)", MLP, "--format", "json")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.status == 0 and ran.err == "" and [d["code"] for d in found] == ["R0526"] * len(found) != []
    log = json.loads(relay(capsys, "match", "nn.dense(...)", MLP, "--format", "sarif").err)
    check_sarif(log)
    assert len(log["runs"][0]["results"]) == len(found)
    none = relay(capsys, "match", "nn.conv2d(...)", MLP, "--format", "json")
    assert none.status == 1 and none.out == ""
