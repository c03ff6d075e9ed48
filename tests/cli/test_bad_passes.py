"""Wrong passes, callbacks, lists of passes and patterns.

Each has an error with its name and place, and none of the user's objects change.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import relaylang as relay
from relaylang.dataflow_pattern import DFPatternCallback, is_op, rewrite, wildcard
from relaylang.diagnostics import RelayError
from relaylang.passes.manager import Pass
from relaylang.plugins.files import Passes
from relaylang.transform import PASSES, InferType, Sequential
from tests.cli.command import relay as call_relay

NET = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) {
  %0 = exp(%x);
  nn.relu(nn.relu(%0))
}
"""
CODE = """
import numpy as np
import relaylang as relay
from relaylang.dataflow_pattern import DFPatternCallback, is_op, wildcard
from relaylang.transform import function_pass, module_pass


class Relu(DFPatternCallback):
    def __init__(self, rewrite_once=False):
        super().__init__(rewrite_once=rewrite_once)
        self.x = wildcard()
        self.pattern = is_op("nn.relu")(self.x)

    def callback(self, pre, post, node_map):
        return self.make(post, node_map)


def of(make, **options):
    class Made(Relu):
        def __init__(self):
            super().__init__(**options)
    Made.make = lambda self, post, node_map: make(self, post, node_map)
    Made.__module__ = __name__
    return Made


ReturnsNone = of(lambda self, post, m: None)
ReturnsInt = of(lambda self, post, m: 3)
OtherType = of(lambda self, post, m: relay.cast(post, dtype="int8"), rewrite_once=True)
OtherShape = of(lambda self, post, m: relay.reshape(post, newshape=[6]), rewrite_once=True)
Forever = of(lambda self, post, m: relay.nn.relu(post))
Grows = of(lambda self, post, m: relay.nn.relu(relay.add(post, post)))
AsksWrong = of(lambda self, post, m: m["nothing"])
Raises = of(lambda self, post, m: post.args[7])
Stray = of(lambda self, post, m: relay.var("stray", shape=(2, 3)))
IllTyped = of(lambda self, post, m: relay.add(m[self.x][0], relay.const(np.zeros((7, 7), "float32"))))
Deep = of(lambda self, post, m: self.make(post, m))


class NoPattern(DFPatternCallback):
    def callback(self, pre, post, node_map):
        return post


class TextPattern(DFPatternCallback):
    def __init__(self):
        super().__init__()
        self.pattern = "nn.relu"


class NoCallback(Relu):
    callback = DFPatternCallback.callback


class NoSuper(DFPatternCallback):
    def __init__(self):
        self.pattern = is_op("nn.relu")(wildcard())

    def callback(self, pre, post, node_map):
        return post.args[0]


@function_pass(opt_level=1)
def RaisePass(f, mod, ctx):
    return f.body.args[9]


@function_pass(opt_level=1)
def NonePass(f, mod, ctx):
    f


@module_pass(opt_level=1)
def TextPass(mod, ctx):
    return "mod"


@module_pass(opt_level=1)
def IllTypedPass(mod, ctx):
    f = mod["main"]
    wrong = relay.add(f.body, relay.const(np.zeros((7, 7), "float32")))
    return relay.IRModule.from_expr(relay.Function(f.params, wrong))
"""

#: The pass, its code, and the message. The message has the pass's name, and the place in the program or in the pass.
BAD = {
    "ReturnsNone": ("R0521", ["returned nothing (None), not an expression", "net.relay:4:11", "in the pass ReturnsNone"]),
    "ReturnsInt": ("R0521", ["returned a int, not an expression", "net.relay:4:11"]),
    "OtherType": ("R0522", ["changed the type of @main", "int8"]),
    "OtherShape": ("R0522", ["changed the type of @main"]),
    "Forever": ("R0523", ["does not end", "net.relay:2:1", "matches its callback's result"]),
    "Grows": ("R0523", ["does not end"]),
    "AsksWrong": ("R0520", ["node_map: 'nothing' is no part of the pattern", "matched here"]),
    "Raises": ("R0502", ["raised IndexError", "bad.py:", "post.args[7]", "matched here"]),
    "Stray": ("R0522", ["not well-typed", "nothing binds the variable `%stray`"]),
    "IllTyped": ("R0522", ["not well-typed", "net.relay:4:11", "does not broadcast"]),
    "Deep": ("R0502", ["raised RecursionError", "bad.py:"]),
    "NoPattern": ("R0520", ["NoPattern has no pattern"]),
    "TextPattern": ("R0520", ["the pattern of TextPattern is a value of type str"]),
    "NoCallback": ("R0520", ["NoCallback has no method callback"]),
    "RaisePass": ("R0502", ["the pass RaisePass raised IndexError", "return f.body.args[9]"]),
    "NonePass": ("R0503", ["the pass NonePass returned nothing (None) for @main", "net.relay:2:1"]),
    "TextPass": ("R0503", ["the pass TextPass returned a value of type str"]),
    "IllTypedPass": ("R0504", ["the pass IllTypedPass made a program that is not well-typed", "net.relay:4:3"]),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.relay").write_text(NET)
    (tmp_path / "bad.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_bad_passes_are_named_with_a_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, (code, says) in BAD.items():
        ran = call_relay(capsys, "opt", "net.relay", "--load", "bad.py", "--passes", f"FoldConstant,{name}", "--no-types")
        assert ran.status in (1, 2) and f"error[{code}]" in ran.err and ran.out == "", (name, ran.err)
        said = ran.err.replace("Made", name)
        assert all(text in said for text in says), (name, ran.err)
        assert (folder / "net.relay").read_text() == NET


def test_the_users_module_stays_as_it_was(folder: Path) -> None:
    mod = InferType()(relay.parse(NET))
    text, body = relay.astext(mod), mod["main"].body
    registry = Passes(PASSES, ["bad.py"])
    for name in BAD:
        maker = registry[name]
        with pytest.raises(RelayError):
            Sequential([maker if isinstance(maker, Pass) else maker()])(mod)
        assert relay.astext(mod) == text and mod["main"].body is body, name


def test_a_callback_without_super_works(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran = call_relay(capsys, "opt", "net.relay", "--load", "bad.py", "--passes", "NoSuper", "--no-types")
    assert ran.status == 0 and "nn.relu" not in ran.out


LISTS = {
    "FoldConstant,,FuseOps": ("R0507", "<passes>:1:14"),
    "FoldConstant FuseOps": ("R0507", "forgot a comma"),
    "FuseOps(": ("R0507", "<passes>:1:8"),
    "FuseOps(fuse_opt_level='x')": ("R0501", "fuse_opt_level of FuseOps is a whole number, not 'x'"),
    "FuseOps(True)": ("R0501", "is a whole number, not True"),
    "FuseOps(2, 3)": ("R0501", "FuseOps(fuse_opt_level): too many positional arguments"),
    "FuseOps(fuse_opt_levl=1)": ("R0501", "did you mean fuse_opt_level?"),
    "FusOps": ("R0505", "did you mean FuseOps?"),
    "EliminateCommonSubexpr(fskip=3)": ("R0501", "None or a function, which a list of passes cannot give, not 3"),
    "AnnotateTarget(3)": ("R0501", "targets of AnnotateTarget is a text or a list, not 3"),
    "PartitionGraph(mod_name=3)": ("R0501", "mod_name of PartitionGraph is a text, not 3"),
    "MergeComposite": ("R0501", "missing a required argument: 'pattern_table'"),
    "MergeComposite([('a', 3)])": ("R0519", "row 1 of the pattern table (a) has a value of type int for its pattern"),
    "lambda x: x": ("R0507", "a pass is a name"),
}


def test_wrong_lists_of_passes_are_told_at_their_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, (code, says) in LISTS.items():
        ran = call_relay(capsys, "opt", "net.relay", "--passes", text)
        assert ran.status in (1, 2) and f"error[{code}]" in ran.err and says in ran.err, (text, ran.err)
        assert "<passes>:1:" in ran.err or code == "R0519", text


PATTERNS = {
    "nn.relu(": "1:9: error[R0525]: a pattern is wanted, and here is the end",
    "nn.rellu(_)": "did you mean nn.relu?",
    "nn.relu(_, groups=1)": "nn.relu has no attribute groups",
    "nn.relu(_, _, _)": "1:12: error[R0525]: nn.relu takes 1 argument, not 3",
    "nn.dense(_)": "1:10: error[R0525]: nn.dense takes 2 arguments, not 1",
    "nn.batch_norm(_)": "`...` matches further ones: `nn.batch_norm(_, ...)`",
    "nn.relu()": "`...` matches further ones: `nn.relu(...)`",
    "*": "`_` matches anything, `...` any further arguments",
    "nn.relu(*)": "`_` matches anything, `...` any further arguments",
    "nn.relu(?)": "`_` matches anything",
    "is_op('nn.relu')(wildcard())": "is_op makes patterns in Python, and this one is a text",
    'is_op("nn.relu")(wildcard())': "a call is written as in a program: `nn.relu(_)`",
    "nn.relu(wildcard())": "1:9: error[R0525]: wildcard makes patterns in Python, and this one is a text",
    "nn.dense(_, is_constant())": "`const` matches a constant",
    "_ : int99": "1:5: error[R0525]: an element type, or Tensor[...], is wanted, and here is `int99`",
    "add(_, ..., _)": "`...` stands behind the arguments",
    "(exp | 1f)(_)": "1:11: error[R0525]: the pattern should end",
    "if (_) { _ }": "`else` is wanted",
}


def test_wrong_patterns_are_told_at_their_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, says in PATTERNS.items():
        ran = call_relay(capsys, "match", text, "net.relay")
        assert ran.status == 2 and says in ran.err, (text, ran.err)
    assert call_relay(capsys, "match", "(exp | log)(_)", "net.relay", "--count").out == "1\n"


def test_unknown_accelerators_have_a_suggestion(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, near in [("ethosu", "ethos-u"), ("Ethos-U", "ethos-u"), ("dnn", "dnnl"), ("cmsisnn", "cmsis-nn")]:
        ran = call_relay(capsys, "partition", "net.relay", "--target", name)
        assert ran.status == 2 and f"did you mean {near}?" in ran.err


def test_rewriting_an_expression_leaves_it_alone() -> None:
    class Drop(DFPatternCallback):
        def __init__(self) -> None:
            super().__init__()
            self.x = wildcard()
            self.pattern = is_op("nn.relu")(self.x)

        def callback(self, pre: relay.Expr, post: relay.Expr, node_map: object) -> relay.Expr:
            return relay.negative(post)

    body = relay.parse(NET)["main"].body
    text = relay.astext(body)
    with pytest.raises(RelayError):
        rewrite(Drop(), body)
    assert relay.astext(body) == text


def test_targets_of_partition(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    targets = [
        "ethos-u -accelerator=ethos-u55-256, c",
        "ethos-u, c",
        "ethosu, c -num-threads=2",
        "cmsis-nn, c",
        "ethos-u, cmsis-nn, c",
    ]
    for text in targets:
        ran = call_relay(capsys, "partition", "net.relay", "--target", text)
        assert ran.status == 0 and "goes to" in ran.err and "quantise the network first" in ran.err, (text, ran)
    ran = call_relay(capsys, "partition", "net.relay", "--target", "ethos-u -acelerator=x, c")
    assert ran.status == 2 and "did you mean -accelerator?" in ran.err
    ran = call_relay(capsys, "partition", "net.relay", "--target", "nothing, here")
    assert ran.status == 2 and "error[R0513]" in ran.err
