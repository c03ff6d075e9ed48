"""MergeComposite, AnnotateTarget, MergeCompilerRegions, PartitionGraph; the accelerators' tables; the report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Constant, Expr, Function, IRModule, TensorType, Tuple, Var, const, post_order
from relaylang.op.contrib import partition_for_ethosn
from relaylang.ops.build import op_call
from relaylang.partition import (
    PATTERN_TABLES,
    accelerators,
    get_pattern_table,
    partition,
    register_pattern_table,
)
from relaylang.partition.support import OP_SUPPORT
from relaylang.patterns import is_constant, is_op, wildcard
from relaylang.syntax import astext
from relaylang.testing.generators.programs import Programs
from relaylang.transform import (
    AnnotateTarget,
    InferType,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
    PassContext,
    Sequential,
    Verify,
)
from tests.growth import assert_linear
from tests.passes.meaning import keeps_meaning
from tests.shared import FRAGMENTS, needs_shared

TABLE = [
    ("toy.relu_add", is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))),
    ("toy.dense", is_op("clip")(is_op("nn.dense")(wildcard(), is_constant()))),
    ("other.exp", is_op("exp")(wildcard())),
]


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    """An accelerator that takes negative and multiply as they are."""
    OP_SUPPORT["toy"] = {"negative": lambda call: True, "multiply": lambda call: True, "tanh": lambda call: "too curved"}
    yield
    del OP_SUPPORT["toy"]


def steps(targets: Any = "toy", **options: Any) -> Sequential:
    return Sequential([MergeComposite(TABLE), AnnotateTarget(targets), MergeCompilerRegions(), PartitionGraph(**options)])


def module(text: str) -> IRModule:
    return InferType()(relay.parse(text))


def main(body: str) -> IRModule:
    return module(f"def @main(%x: Tensor[(2, 3), float32]) {{ {body} }}")


def regions(mod: IRModule) -> dict[str, Function]:
    return {gv.name_hint: f for gv, f in mod.functions.items() if "Compiler" in f.attrs}


@pytest.mark.sample(2)
@pytest.mark.parametrize("targets", ["toy", ["toy", "other"]])
def test_partitioned_programs_compute_the_same(targets: Any) -> None:
    found = 0
    for seed in range(12):
        with PassContext(instruments=[Verify()]):
            done = keeps_meaning(steps(targets), Programs(seed).module(18), seed)
        found += len(regions(done))
    assert found > 12


def test_regions_are_named_and_marked_as_in_tvm() -> None:
    done = steps()(main("nn.softmax(nn.relu(add(negative(%x), 1f)))"))
    (name, func), *rest = regions(done).items()
    assert rest == [] and name == "tvmgen_default_toy_main_0"
    assert func.attrs == {"Primitive": 1, "Compiler": "toy", "Inline": 1, "global_symbol": name}
    assert [p.name_hint for p in func.params] == ["toy_0_i0"]
    composite = next(n for n in post_order(func) if isinstance(n, Function) and "Composite" in n.attrs)
    assert composite.attrs == {"PartitionedFromPattern": "add_nn.relu_", "Composite": "toy.relu_add"}


def test_constants_are_bound_or_passed() -> None:
    mod = main("multiply(%x, 2f)")
    (bound,) = regions(steps()(mod)).values()
    assert len(bound.params) == 1 and any(isinstance(n, Constant) for n in post_order(bound))
    (open_one,) = regions(steps(bind_constants=False, mod_name="net")(mod)).values()
    assert len(open_one.params) == 2 and open_one.attrs["global_symbol"] == "tvmgen_net_toy_main_0"


def test_several_outputs_are_a_tuple() -> None:
    done = steps()(main("%0 = negative(%x); %1 = multiply(%0, %0); add(exp(%0), tanh(%1))"))
    (func,) = regions(done).values()
    assert isinstance(func.body, Tuple) and len(func.body.fields) == 2


def test_no_region_waits_for_itself() -> None:
    done = steps()(main("%0 = negative(%x); multiply(%0, exp(%0))"))
    assert len(regions(done)) == 2
    x = np.ones((2, 3), "float32")
    np.testing.assert_allclose(evaluate(done, x), -np.exp(-x), rtol=1e-6)


def test_a_side_branch_joins_the_later_region() -> None:
    done = steps()(main("%0 = negative(%x); %1 = multiply(exp(%0), 3f); multiply(%1, negative(abs(%x)))"))
    assert len(regions(done)) == 2


def test_tuples_between_belong_to_the_region() -> None:
    text = "%0 = (negative(%x), multiply(%x, %x)); multiply(%0.0, %0.1)"
    assert len(regions(steps()(main(text)))) == 1
    apart = Sequential([AnnotateTarget("toy", include_non_call_ops=False), MergeCompilerRegions(), PartitionGraph()])
    assert len(regions(apart(main(text)))) == 3


def test_what_no_target_takes_stays() -> None:
    mod = main("tanh(%x)")
    done = steps()(mod)
    assert regions(done) == {} and [n for n in post_order(done["main"]) if isinstance(n, Function)] == [done["main"]]


# ---- tables


@needs_shared
def test_the_tutorials_convolution_goes_to_the_ethos_n() -> None:
    """The TFLite form of the fragment, in the layout that the accelerator has."""
    x = Var("x", TensorType((1, 8, 8, 3), "uint8"))
    weight, bias = const(np.ones((3, 3, 3, 4), "int8")), const(np.ones(4, "int32"))
    padded = op_call("nn.pad", [x, const(114.0)], pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]])
    scales = [const(114), const(0), const(0.0186579), const(0.00288958)]
    options: dict[str, Any] = {"kernel_size": [3, 3], "channels": 4, "data_layout": "NHWC", "kernel_layout": "HWIO"}
    conv = op_call("qnn.conv2d", [padded, weight, *scales], out_dtype="int32", **options)
    biased = op_call("nn.bias_add", [conv, bias], axis=3)
    outs = [const(5.39136e-05), const(0), const(0.0150183), const(0)]
    root = op_call("qnn.requantize", [biased, *outs], axis=3, out_dtype="uint8")
    mod = IRModule.from_expr(Function([x], root))
    done = keeps_meaning(lambda m: partition_for_ethosn(m), mod)
    (func,) = regions(done).values()
    composite = func.body.op
    assert composite.attrs["Composite"] == "ethos-n.qnn_conv2d"
    assert composite.attrs["PartitionedFromPattern"] == "nn.pad_qnn.conv2d_nn.bias_add_qnn.requantize_"
    assert FRAGMENTS.is_dir()


def test_every_table_is_well_made() -> None:
    for name in accelerators():
        table = get_pattern_table(name)
        assert table and all(entry.name.startswith(name + ".") for entry in table)


def test_tables_are_registered_by_name() -> None:
    @register_pattern_table("toy")
    def table() -> list:
        return TABLE

    try:
        assert len(get_pattern_table("toy")) == 3
        assert len(regions(partition(main("negative(%x)"), "toy"))) == 1
    finally:
        del PATTERN_TABLES["toy"]
    for name in ("toy", "dnn"):
        with pytest.raises(RelayError) as wrong:
            get_pattern_table(name)
        assert wrong.value.diagnostics[0].code == "R0513"


def test_checks_may_say_why() -> None:
    said: list[Expr] = []

    def check(root: Expr) -> str:
        said.append(root)
        return "not today"

    mod = MergeComposite([("toy.exp", is_op("exp")(wildcard()), check)])(main("exp(%x)"))
    assert len(said) == 1 and not any(isinstance(n, Function) for n in post_order(mod["main"].body))


@pytest.mark.sweep
def test_partitioning_is_linear() -> None:
    def chain(n: int, make: Callable[[int], str]) -> IRModule:
        x = Var("x", TensorType((2, 3)))
        node: Expr = x
        for i in range(n):
            node = op_call(make(i), [node])
        return InferType()(IRModule.from_expr(Function([x], node)))

    def prepare(n: int) -> Callable[[], None]:
        mod = chain(n, lambda i: "negative" if i % 4 < 2 else "exp")

        def run() -> None:
            done = steps()(mod)
            assert len(regions(done)) == (n + 2) // 4
            assert all(isinstance(f.body, Call) for f in regions(done).values())

        return run

    assert_linear(prepare)
    prepare(5_000)()


# ---- tables and checks that are wrong


def said_by(mod: IRModule, table: Any) -> list[Any]:
    text = astext(mod)
    with pytest.raises(RelayError) as wrong:
        MergeComposite(table)(mod)
    assert astext(mod) == text
    return wrong.value.diagnostics


EXP = is_op("exp")(wildcard())


@pytest.mark.parametrize(
    "table, says",
    [
        (None, "a pattern table is a list of rows, not nothing (None)"),
        (3, "a pattern table is a list of rows, not a value of type int"),
        ([EXP], "row 1 of the pattern table is a value of type CallPattern"),
        ([("toy.exp",)], "row 1 of the pattern table has 1 parts"),
        ([("toy.exp", EXP), (EXP, "toy.exp")], "row 2 of the pattern table has a value of type CallPattern for its name"),
        ([("toy.exp", "exp")], "row 1 of the pattern table (toy.exp) has a value of type str for its pattern"),
        ([("toy.exp", EXP, True)], "row 1 of the pattern table (toy.exp) has a value of type bool for its check"),
    ],
)
def test_a_table_of_wrong_rows_is_told(table: Any, says: str) -> None:
    (said,) = said_by(main("exp(%x)"), table)
    assert said.code == "R0519" and said.title == says


def test_a_check_that_raises_is_told_with_its_line_and_the_place() -> None:
    def check_exp(root: Expr) -> bool:
        return root.attrs.axis == 1  # type: ignore[attr-defined]

    (said,) = said_by(main("exp(%x)"), [("toy.exp", EXP, check_exp)])
    assert said.code == "R0502" and said.title.startswith("the check of toy.exp raised AttributeError")
    assert "return root.attrs.axis" in said.labels[0].span.source.line(said.labels[0].span.line)
    assert said.labels[1].text == "it was asked about this"


def test_answers_of_checks() -> None:
    """A true answer accepts, a false one refuses; None refuses, too."""
    mod = main("exp(%x)")
    for answer, taken in [(True, 1), (np.True_, 1), (1, 1), (False, 0), (np.False_, 0), (None, 0), ("no", 0)]:
        done = MergeComposite([("toy.exp", EXP, lambda root, answer=answer: answer)])(mod)
        assert sum(isinstance(n, Function) for n in post_order(done["main"].body)) == taken, answer


# ---- the report, as somebody reads it


def test_what_is_annotated_for_the_host_stays() -> None:
    """Annotations of the host draw no region for PartitionGraph."""
    begin, end = 'annotation.compiler_begin({}, compiler="{}")', 'annotation.compiler_end({}, compiler="{}")'
    relu = f"%0 = {begin.format('%x', 'toy')}; %1 = nn.relu(%0); %2 = {end.format('%1', 'toy')};"
    rest = f"%3 = {begin.format('%2', 'default')}; %4 = abs(%3); {end.format('%4', 'default')}"
    alone = f"%0 = {begin.format('%x', 'default')}; %1 = abs(%0); {end.format('%1', 'default')}"
    head = "def @main(%x: Tensor[(2), float32])"
    mod = InferType()(relay.parse(f"{head} {{ {relu} {rest} }}"))
    for passes in ([PartitionGraph()], [MergeCompilerRegions(), PartitionGraph()]):
        made = mod
        for item in passes:
            made = item(made)
        assert [f.attrs.get("Compiler") for f in made.functions.values()] == [None, "toy"]
        assert "annotation" not in made.astext() and "abs(%0)" in made.astext()
    made = PartitionGraph()(InferType()(relay.parse(f"{head} {{ {alone} }}")))
    assert relay.ir.structural_equal(InferType()(made), InferType()(relay.parse(f"{head} {{ abs(%x) }}")))


def annotated(body: str) -> str:
    """A function of one tensor, with `[target] (` for compiler_begin and `)[target]` for compiler_end."""
    body = re.sub(r"begin\((\S+), (\w+)\)", r'annotation.compiler_begin(\1, compiler="\2")', body)
    body = re.sub(r"end\((\S+), (\w+)\)", r'annotation.compiler_end(\1, compiler="\2")', body)
    return f"def @main(%x: Tensor[(2, 3), float32]) {{ {body} }}"


@pytest.mark.parametrize(
    "body, calls_only, expected",
    [
        (
            "tanh(negative(%x))",
            True,
            "%0 = begin(%x, toy); %1 = negative(%0); %2 = end(%1, toy); %3 = begin(%2, default); %4 = tanh(%3); end(%4, default)",
        ),
        (
            "%0 = negative(%x); (%0, multiply(%0, %0))",
            True,
            "%0 = begin(%x, toy); %1 = negative(%0); %2 = end(%1, toy); %3 = end(%1, toy); %4 = end(%1, toy); %5 = begin(%3, toy);"
            " %6 = begin(%4, toy); %7 = multiply(%5, %6); %8 = end(%7, toy); (%2, %8)",
        ),
        (
            "%0 = (negative(%x), %x); %0.0",
            False,
            "%0 = begin(%x, toy); %1 = negative(%0); %2 = end(%1, toy); %3 = begin(%2, default); %4 = begin(%x, default);"
            " %5 = (%3, %4); %6 = end(%5, default); %7 = begin(%6, default); %8 = %7.0; end(%8, default)",
        ),
        (
            "ref_write(ref(%x), negative(%x))",
            False,
            "%0 = begin(%x, default); %1 = ref(%0); %2 = end(%1, default); %3 = begin(%2, default); %4 = begin(%x, toy);"
            " %5 = negative(%4); %6 = end(%5, toy); %7 = begin(%6, default); %8 = ref_write(%3, %7); end(%8, default)",
        ),
        (
            "if (True) { negative(%x) } else { tanh(%x) }",
            True,
            "if (True) { %0 = begin(%x, toy); %1 = negative(%0); end(%1, toy) }"
            " else { %2 = begin(%x, default); %3 = tanh(%2); end(%3, default) }",
        ),
    ],
)
def test_every_use_has_annotations_of_its_own(body: str, calls_only: bool, expected: str) -> None:
    made = AnnotateTarget("toy", include_non_call_ops=not calls_only)(main(body))
    again = AnnotateTarget("toy", include_non_call_ops=not calls_only)(made)
    for found in (made, again):
        assert relay.ir.structural_equal(InferType()(found), module(annotated(expected))), found.astext()


def test_regions_grow_from_the_first() -> None:
    """What could join the regions on both sides joins the first, as in TVM, but waits where nothing holds it."""
    mod = AnnotateTarget("toy")(main("%0 = negative(%x); multiply(negative(%0), tanh(%0))"))
    first, last = regions(PartitionGraph()(MergeCompilerRegions()(mod))).values()
    assert isinstance(first.body, Tuple) and len(first.params) == 1 and len(last.params) == 2
    mod = AnnotateTarget("toy")(main("multiply(negative(negative(%x)), tanh(%x))"))
    assert len(regions(PartitionGraph()(MergeCompilerRegions()(mod)))) == 1


def test_regions_of_the_host_are_merged() -> None:
    merged = MergeCompilerRegions()(AnnotateTarget("toy")(main("negative(tanh(exp(%x)))")))
    wanted = "%0 = begin(%x, default); %1 = exp(%0); %2 = tanh(%1); %3 = end(%2, default); %4 = begin(%3, toy);"
    assert relay.ir.structural_equal(InferType()(merged), module(annotated(f"{wanted} %5 = negative(%4); end(%5, toy)")))


def test_outputs_come_in_the_order_of_their_uses() -> None:
    """And a tuple among several outputs gives its fields."""
    done = steps()(main("%0 = negative(%x); %1 = multiply(%0, %0); add(tanh(%1), exp(%0))"))
    (func,) = regions(done).values()
    assert [n.op.name for n in func.body.fields] == ["multiply", "negative"]
    OP_SUPPORT["toy"]["split"] = lambda call: True
    done = steps()(main("%0 = split(%x, indices_or_sections=3, axis=1); %1 = negative(%0.0); (concatenate(%0, axis=1), tanh(%1))"))
    (func,) = regions(done).values()
    assert repr(func.ret_type) == f"({', '.join(['Tensor[(2, 1), float32]'] * 4)})"
    x = np.arange(6, dtype="float32").reshape(2, 3)
    whole, part = evaluate(done, x)
    assert (whole == x).all() and part.shape == (2, 1)


@pytest.mark.parametrize(
    "text",
    [
        "type L { C(Tensor[(2), float32], L), N } def @main(%x: Tensor[(2), float32]) { %0 = C(negative(%x), N); "
        "match? (%0) { C(%a, _) => negative(%a) } }",
        "def @main(%x: Tensor[(2), float32]) { let %f = fn(%a: Tensor[(2), float32]) { negative(%a) }; (%f, %f(tanh(%x))) }",
        'def @main(%x: Tensor[(2), float32]) { %0 = if (any(cast(%x, dtype="bool"))) { negative(%x) } else { %x }; tanh(%0) }',
        "def @f(%x: Tensor[(2), float32]) { negative(%x) } "
        'def @main(%x: Tensor[(2), float32]) { @f(zeros(shape=[2], dtype="float32")) }',
        "def @main(%x: Tensor[(2), float32]) { let %r = ref(negative(%x)); ref_write(%r, tanh(%x)); (ref_read(%r), ()) }",
    ],
)
def test_annotated_programs_of_all_kinds_of_nodes(text: str) -> None:
    """They mean what they did, and no annotation is left behind partitioning."""
    mod = module(text)
    x = np.array([1, 2], "float32")
    for options in ({}, {"include_non_call_ops": False}):
        marks = AnnotateTarget("toy", **options)(mod)
        merged = MergeCompilerRegions()(marks)
        done = PartitionGraph()(merged)
        assert "annotation" not in done.astext() and len(regions(done)) >= 1
        for made in (marks, merged, done):
            with PassContext(instruments=[Verify()]):
                assert str(evaluate(InferType()(made), x)) == str(evaluate(mod, x)) or "fn" in text
