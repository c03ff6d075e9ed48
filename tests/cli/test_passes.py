"""relay opt, relay match, relay partition."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command import relay
from tests.shared import ROOT

NET = """\
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = add(multiply(%x, 1f), add(1f, 2f));
  nn.relu(nn.relu(%0))
}
"""
BROKEN = """\
from relaylang.transform import function_pass
from relaylang.dataflow_pattern import DFPatternCallback, is_op, wildcard

class DropRelu(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.x = wildcard()
        self.pattern = is_op("nn.relu")(self.x)

    def callback(self, pre, post, node_map):
        return node_map[self.x][0]

@function_pass(opt_level=0)
def Raises(func, mod, ctx):
    raise KeyError("boom")
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    file = tmp_path / "net.relay"
    file.write_text(NET)
    return file


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    file = tmp_path / "mine.py"
    file.write_text(BROKEN)
    return file


def test_opt_prints_the_result(capsys: pytest.CaptureFixture[str], net: Path, tmp_path: Path) -> None:
    ran = relay(capsys, "opt", net, "--passes", "SimplifyExpr,FoldConstant", "--no-types", "--verify")
    assert ran.status == 0 and "multiply" not in ran.out and "add(%x, 3f)" in ran.out
    out = tmp_path / "out.relay"
    assert relay(capsys, "opt", net, "--passes", "FuseOps", "-o", out).status == 0
    assert "Primitive=1" in out.read_text()


def test_opt_without_passes_runs_those_of_a_build(capsys: pytest.CaptureFixture[str], net: Path) -> None:
    ran = relay(capsys, "opt", net)
    said, _, names = ran.err.partition(" --passes ")
    assert (ran.status, said) == (0, "runs") and "FoldConstant" in names and "FastMath" not in names
    again = relay(capsys, "opt", net, "--passes", names.strip())
    assert (again.status, again.out, again.err) == (0, ran.out, "")
    few = relay(capsys, "opt", net, "--opt-level", "1", "--disable", "SimplifyExpr").err
    assert few == "runs --passes RemoveUnusedFunctions,SimplifyInference,FlattenAtrousConv\n"
    assert relay(capsys, "opt").status == 2


def test_opt_says_what_passes_did(capsys: pytest.CaptureFixture[str], net: Path) -> None:
    ran = relay(capsys, "opt", net, "--passes", "FoldConstant,Inline", "--print-changed", "--time")
    assert "after FoldConstant" in ran.err and "Inline: nothing changed" in ran.err and " ms" in ran.err
    ran = relay(capsys, "opt", net, "--passes", "FoldConstant", "--print-before", "--print-after")
    assert ran.err.count("def @main") == 2


def test_opt_lists_passes(capsys: pytest.CaptureFixture[str], mine: Path) -> None:
    ran = relay(capsys, "opt", "--list", "--load", mine)
    assert ran.status == 0 and "FuseOps(fuse_opt_level: int = -1)" in ran.out and "DropRelu" in ran.out


def test_opt_finds_the_pass_that_changes_the_result(capsys: pytest.CaptureFixture[str], net: Path, mine: Path) -> None:
    passes = "FoldConstant,DropRelu,FuseOps"
    ran = relay(capsys, "opt", net, "--load", mine, "--passes", passes, "--bisect", "--input", "x=-9")
    ran = relay(capsys, "opt", net, "--load", mine, "--passes", passes, "--bisect", "--random-params", "1")
    if ran.status == 0:  # every number was positive
        ran = relay(capsys, "opt", net, "--load", mine, "--passes", passes, "--bisect", "--random-params", "2")
    assert "pass 1, FoldConstant, keeps the result" in ran.err
    good = relay(capsys, "opt", net, "--passes", "FoldConstant,FuseOps", "--bisect")
    assert good.status == 0 and "no pass changes the result" in good.err


@pytest.mark.parametrize(
    "arguments, status, says",
    [
        (("--passes", "Fold"), 2, "there is no pass Fold"),
        (("--passes", "FuseOps(x=1)"), 2, "has no option x"),
        (("--passes", "FoldConstant", "--load", "absent.py"), 2, "cannot read absent.py"),
        (("--passes", "FoldConstant", "--config", "relay.FuseOps.max_dept=1"), 2, "there is no configuration"),
        (("--passes", "FoldConstant", "--config", "x"), 2, "KEY=VALUE"),
    ],
)
def test_wrong_calls_of_opt(capsys: pytest.CaptureFixture[str], net: Path, arguments: tuple[str, ...], status: int, says: str) -> None:
    ran = relay(capsys, "opt", net, *arguments)
    assert (ran.status, ran.out) == (status, "") and says in ran.err


def test_a_pass_that_raises_is_shown_with_its_line(capsys: pytest.CaptureFixture[str], net: Path, mine: Path) -> None:
    ran = relay(capsys, "opt", net, "--load", mine, "--passes", "Raises")
    assert ran.status == 1 and "the pass Raises raised KeyError" in ran.err and 'raise KeyError("boom")' in ran.err
    assert "Traceback" not in ran.err


def test_match_shows_places(capsys: pytest.CaptureFixture[str], net: Path) -> None:
    ran = relay(capsys, "match", "nn.relu(_)", net)
    assert ran.status == 0 and ran.out.count("note[R0526]") == 2 and "net.relay:3:3" in ran.out
    assert relay(capsys, "match", "nn.relu(_)", net, "--count").out == "2\n"
    ran = relay(capsys, "match", "nn.relu(nn.relu(tanh(_)))", net, "--explain")
    assert ran.status == 1 and "a call of tanh is wanted as data of nn.relu, and it is a call of add" in ran.out
    assert relay(capsys, "match", "nn.rel(_)", net).status == 2


def test_partition_prints_regions_or_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    file = ROOT / "examples" / "quantized.relay"
    ran = relay(capsys, "partition", file, "--target", "ethos-u", "--random-params", "0", "--report")
    assert ran.status == 0 and "5 of 7 calls go to ethos-u, in 1 region" in ran.out
    assert "ethos-u.table: its input is float32" in ran.out
    ran = relay(capsys, "partition", file, "--target", "ethos-n", "--random-params", "0")
    assert ran.status == 0 and "tvmgen_default_ethos_n_main_0" in ran.out
    ran = relay(capsys, "partition", file, "--target", "ethos-x")
    assert ran.status == 2 and "there is no accelerator ethos-x" in ran.err
