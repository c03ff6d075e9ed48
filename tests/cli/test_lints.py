"""`relay check --lint` and `--fix`: files, folders, settings, wrong calls."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from relaylang.lsp import features
from relaylang.lsp.analysis import Analysis
from tests.cli.command import relay
from tests.shared import ROOT

Caps = pytest.CaptureFixture[str]
HEADER = '#[version = "0.0.5"]\n'
UNUSED = HEADER + "def @main(%x: Tensor[(2), float32]) {\n  let %y = exp(%x);\n  nn.relu(nn.relu(%x))\n}\n"
REPAIRED = HEADER + "def @main(%x: Tensor[(2), float32]) {\n  nn.relu(%x)\n}\n"


def test_a_folder(tmp_path: Path, capsys: Caps) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below/a.relay").write_text(UNUSED)
    (tmp_path / "b.relay").write_text(REPAIRED)
    plain = relay(capsys, "check", str(tmp_path))
    assert plain.status == 0 and plain.out.count(": ok (1 function, ") == 2 and plain.err == ""
    found = relay(capsys, "check", "--lint", str(tmp_path))
    assert found.status == 1
    assert f"{tmp_path}/below/a.relay: ok (1 function, 3 calls; 2 findings)" in found.out
    assert f"{tmp_path}/b.relay: ok (1 function, 1 call)\n" in found.out
    assert found.err.count("warning[R1001]") == found.err.count("warning[R1007]") == 1


def test_repairs_are_written(tmp_path: Path, capsys: Caps) -> None:
    file = tmp_path / "net.relay"
    file.write_text(UNUSED)
    assert relay(capsys, "check", "--fix", str(file)).status == 0
    assert file.read_text() == REPAIRED
    before = file.stat().st_mtime_ns
    assert relay(capsys, "check", "--fix", str(file)).status == 0
    assert file.stat().st_mtime_ns == before


def test_a_wrong_program_stays_as_it_is(tmp_path: Path, capsys: Caps) -> None:
    file = tmp_path / "net.relay"
    file.write_text(wrong := UNUSED.replace("exp(%x)", "exp(%x, %x)"))
    ran = relay(capsys, "check", "--fix", str(file))
    assert ran.status == 1 and "R1001" not in ran.err and file.read_text() == wrong


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        (["--select", "R1001"], {"R1001"}),
        (["--select", "R10"], {"R1001", "R1007"}),
        (["--ignore", "R1001"], {"R1007"}),
        (["--select", "R1001,R1007", "--ignore", "R1007"], {"R1001"}),
    ],
)
def test_a_call_chooses(tmp_path: Path, capsys: Caps, options: list[str], codes: set[str]) -> None:
    file = tmp_path / "net.relay"
    file.write_text(UNUSED)
    err = relay(capsys, "check", "--lint", *options, str(file)).err
    assert {code for code in ("R1001", "R1007") if code in err} == codes


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 reads no TOML without a package")
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('[tool.relay]\nignore = ["R1001"]\n', "R1007"),
        ('[tool.relay]\nselect = ["R1001"]\n', "R1001"),
        ("[tool.other]\nx = 1  # tool.relay\n", "R1001"),
        ("[tool.relay.per-file-ignores]\n\"models/*.relay\" = ['R1001']\n", "R1007"),
        ("[tool.relay.per-file-ignores]\n\"net.relay\" = ['R1001']\n'*.py' = ['R1007']\n", "R1007"),
        ("[tool.relay.per-file-ignores]\n\"other/*\" = ['R1007']\n'b*' = ['R1001']\n", "R1001"),
        ('[tool.relay]\nselct = ["R1001"]\n', "{file}:2:1: error[R0710]: [tool.relay] has no key selct"),
        ('[tool.relay]\nselect = "R1001"\n', "{file}:2:1: error[R0710]: select is no list of codes"),
        ('# R1999\n[tool.relay]\nselect = ["R1999"]\n', "{file}:3:12: error[R0710]: 'R1999' is the code of no lint"),
        ('[tool.relay]\nper-file-ignores = ["R1001"]\n', "{file}:2:1: error[R0710]: per-file-ignores is no table of patterns"),
        ("[tool]\nrelay = 1  # tool.relay\n", "{file}:1:2: error[R0710]: tool.relay is no table"),
        ("[tool.relay\n", "{file}:1:12: error[R0710]: this file is no TOML: "),
    ],
)
def test_a_project_chooses(tmp_path: Path, capsys: Caps, table: str, said: str) -> None:
    (tmp_path / "models").mkdir()
    file = tmp_path / "models/net.relay"
    file.write_text(UNUSED)
    (tmp_path / "pyproject.toml").write_text(table)
    ran = relay(capsys, "check", "--lint", str(file))
    assert said.format(file=tmp_path / "pyproject.toml") in ran.err
    assert ran.status == (2 if "R0710" in said else 1)
    if "R0710" not in said:
        other = relay(capsys, "check", "--lint", "--select", "R1009", str(file))
        assert other.status == 0 and other.err == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--verify-diagnostics", "--lint", "a.relay"], "lints have no --verify-diagnostics"),
        (["--select", "R1001", "a.relay"], "--select is about lints: add --lint"),
        (["--fix", "-"], "the standard input cannot be repaired with --fix"),
    ],
)
def test_wrong_calls(capsys: Caps, options: list[str], said: str) -> None:
    ran = relay(capsys, "check", *options)
    assert ran.status == 2 and said in ran.err


def test_editors_get_findings_and_repairs() -> None:
    analysis = Analysis(UNUSED, "net.relay")
    assert [d.code for d in analysis.findings] == ["R1001", "R1007"]
    (action,) = features.actions(analysis, UNUSED.index("%y"), UNUSED.index("%y"))
    assert action.title == "remove the binding" and action.fix.apply(UNUSED) == UNUSED.replace("  let %y = exp(%x);\n", "")
    assert Analysis(UNUSED.replace("exp(%x)", "exp(%z)"), "net.relay").findings == []
    assert Analysis("nn.relu(nn.relu(1f))", "net.relay").findings[0].code == "R1007"


def test_a_network_has_no_findings(capsys: Caps) -> None:
    pytest.importorskip("onnx")
    ran = relay(capsys, "check", "--lint", str(ROOT / "examples/digits.onnx"))
    assert ran.status == 0
    assert "note[R0710]: lints need Relay text" in ran.err and "digits.onnx -o digits.relay writes the text" in ran.err


def test_editors_offer_no_repair_that_needs_another_one() -> None:
    text = HEADER + "def @main(%x: Tensor[(2), float32]) {\n  let %y = exp(%x);\n  let %z = exp(%y);\n  %x\n}\n"
    analysis = Analysis(text, "net.relay")
    assert [d.span.text for d in analysis.findings if d.span is not None] == ["%y", "%z"]
    assert features.actions(analysis, text.index("%y"), text.index("%y")) == []
    assert len(features.actions(analysis, text.index("%z"), text.index("%z"))) == 1
    assert features.repaired(analysis) == HEADER + "def @main(%x: Tensor[(2), float32]) {\n  %x\n}\n"
