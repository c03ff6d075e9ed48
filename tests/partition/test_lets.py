"""Partitioning programs with lets, effects, branches and functions; the order of effects; regions drawn by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import relaylang as relay
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Expr, Function, IRModule, Let, TensorType, Tuple, Var, post_order
from relaylang.ir.structural import structural_equal
from relaylang.ops.build import op_call
from relaylang.partition import partition, prepare
from relaylang.partition.lets import effects_of, place_lets
from relaylang.partition.support import OP_SUPPORT
from relaylang.patterns import is_op, wildcard
from relaylang.syntax import astext
from relaylang.testing.generators.graphs import effectful
from relaylang.testing.generators.programs import Programs
from relaylang.transform import (
    AnnotateTarget,
    InferType,
    MergeCompilerRegions,
    MergeComposite,
    PartitionGraph,
    PassContext,
    Sequential,
    ToANormalForm,
    Verify,
)
from tests.growth import assert_linear
from tests.passes.meaning import keeps_meaning
from tests.shared import SHARED, needs_shared

TABLE = [
    ("toy.relu_add", is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))),
    ("toy.dense", is_op("clip")(is_op("nn.dense")(wildcard(), wildcard()))),
]


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    """Two accelerators: one takes negative and multiply as they are, the other tanh and negative."""
    OP_SUPPORT["toy"] = {"negative": lambda call: True, "multiply": lambda call: True}
    OP_SUPPORT["other"] = {"tanh": lambda call: True, "negative": lambda call: True}
    yield
    del OP_SUPPORT["toy"], OP_SUPPORT["other"]


STEPS = Sequential([MergeComposite(TABLE), AnnotateTarget("toy"), MergeCompilerRegions(), PartitionGraph()])


def main(body: str, params: str = "%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]") -> IRModule:
    return InferType()(relay.parse(f"def @main({params}) {{ {body} }}"))


def regions(mod: IRModule) -> list[Function]:
    return [f for f in mod.functions.values() if "Compiler" in f.attrs]


GRAPHS = {
    "composite": "%0 = add(%x, %y); %1 = nn.relu(%0); exp(%1)",
    "shared": "%0 = negative(%x); %1 = multiply(%0, %y); (%1, exp(%0), tanh(%1))",
    "through the host": "%0 = negative(%x); %1 = exp(%0); %2 = multiply(%1, %0); negative(%2)",
    "tuple": "%0 = (negative(%x), multiply(%x, %y)); multiply(%0.0, %0.1)",
    "inner value used outside": "%0 = add(%x, %y); %1 = nn.relu(%0); multiply(%0, %1)",
    "closure": "%0 = negative(%x); %1 = fn (%z: Tensor[(2, 3), float32]) { multiply(%z, %0) }; %1(%0)",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_program_of_lets_partitions_as_its_graph(name: str) -> None:
    graph = main(GRAPHS[name])
    lets = InferType()(ToANormalForm()(graph))
    assert any(isinstance(n, Let) for n in post_order(lets["main"]))
    done = STEPS(lets)
    assert regions(done)
    assert structural_equal(done, STEPS(graph)), astext(done)


def test_random_programs_of_lets_partition_as_their_graphs() -> None:
    """With branches and closures, too: as many regions, and the same results."""
    found = 0
    for seed in range(8):
        graph = Programs(seed + 100).module(14)
        lets = InferType()(ToANormalForm()(graph))
        with PassContext(instruments=[Verify()]):
            done = keeps_meaning(STEPS, lets, seed)
        assert len(regions(done)) <= len(regions(STEPS(graph)))
        found += len(regions(done))
    assert found > 8


@pytest.mark.parametrize("seed", range(10))
def test_the_order_of_effects_stays(seed: int) -> None:
    ty = "Tensor[(2, 3), float32]"
    text = f"def @twice(%a: {ty}) {{ negative(negative(%a)) }} def @main(%x: {ty}, %y: {ty}) {{ {effectful(seed)} }}"
    mod = InferType()(relay.parse(text))
    with PassContext(instruments=[Verify()]):
        done = STEPS(mod)
    assert regions(done)
    x, y = (np.random.default_rng(seed).uniform(-2, 2, (2, 2, 3))).astype("float32")
    for have, want in zip(evaluate(done, x, y), evaluate(mod, x, y)):
        np.testing.assert_allclose(have, want, rtol=1e-5)


def test_effects_in_operands_keep_their_place() -> None:
    """A region may not take the read in front of the write that stands before it."""
    body = "let %r = ref(%x); %0 = negative(%y); (%0, ref_write(%r, %y), multiply(%0, ref_read(%r))).2"
    mod = main(body)
    x, y = np.ones((2, 3), "float32"), np.full((2, 3), 3, "float32")
    done = STEPS(mod)
    np.testing.assert_array_equal(evaluate(done, x, y), evaluate(mod, x, y))
    np.testing.assert_array_equal(evaluate(done, x, y), -9 * x)


def test_what_only_a_branch_needs_stays_outside_of_it() -> None:
    """A let that would move into a loop or a branch stays, and so does one with an effect."""
    body = "let %a = exp(%x); let %f = fn () { negative(%a) }; let %b = abs(%y); let %c = tanh(%b); (%f(), %c)"
    mod = main(body)
    placed = place_lets(mod["main"], effects_of(mod))
    assert [n.variable.name_hint for n in post_order(placed) if isinstance(n, Let)] == ["a"]
    assert place_lets(placed, effects_of(mod)) is placed


def test_a_recursive_function_stays_a_let() -> None:
    ty = "Tensor[(2, 3), float32]"
    body = (
        f"let %f = fn (%n: int32, %z: {ty}) -> {ty} {{ if (%n <= 0) {{ negative(%z) }} else {{ let %q = negative(%z);"
        "  let %p = multiply(%q, %x); %f(%n - 1, %p) } }; %f(3, %x)"
    )
    mod = main(body, f"%x: {ty}")
    done = STEPS(mod)
    assert len(regions(done)) == 2
    x = np.full((2, 3), 2, "float32")
    np.testing.assert_array_equal(evaluate(done, x), evaluate(mod, x))


def test_regions_grow_inside_branches() -> None:
    body = "if (less(sum(%x), 0f)) { %0 = negative(%x); multiply(%0, %y) } else { exp(negative(negative(%y))) }"
    done = STEPS(main(body))
    assert sorted(sum(isinstance(n, Call) for n in post_order(f)) for f in regions(done)) == [2, 2]


def test_programs_without_regions_are_left_alone() -> None:
    mod = main("let %a = exp(%x); let %b = tanh(%a); %b")
    assert STEPS(mod) is mod or structural_equal(STEPS(mod), mod)
    assert MergeComposite(TABLE)(mod) is mod and structural_equal(PartitionGraph()(AnnotateTarget("toy")(mod)), mod)


# ---- annotations


def test_several_runs_are_as_one_with_several_targets() -> None:
    """What the first run has annotated stays its own."""
    mod = main("%0 = negative(%x); %1 = tanh(%0); negative(exp(multiply(%1, %0)))")
    rest = [MergeCompilerRegions(), PartitionGraph()]
    once = Sequential([AnnotateTarget(["toy", "other"]), *rest])(mod)
    twice = Sequential([AnnotateTarget("toy"), AnnotateTarget("other"), *rest])(mod)
    assert structural_equal(once, twice)
    assert sorted(f.attrs["Compiler"] for f in regions(once)) == ["other", "toy", "toy", "toy"]
    first = Sequential([AnnotateTarget("other"), AnnotateTarget("toy"), *rest])(mod)
    assert sum(f.attrs["Compiler"] == "other" for f in regions(first)) == 2


def test_a_second_run_of_the_same_target_changes_nothing() -> None:
    mod = AnnotateTarget("toy")(main("multiply(negative(%x), tanh(%y))"))
    assert structural_equal(AnnotateTarget("toy")(mod), mod)


def test_tuples_that_leave_a_region_are_made_outside() -> None:
    """The region has the fields as results, not a tuple of tuples."""
    done = STEPS(main("%0 = negative(%x); ((%0, multiply(%0, %y)), %y)"))
    (func,) = regions(done)
    assert isinstance(func.body, Tuple) and not any(isinstance(f, Tuple) for f in func.body.fields)
    x = np.ones((2, 3), "float32")
    (a, b), c = evaluate(done, x, 2 * x)
    assert (a == -1).all() and (b == -2).all() and (c == 2).all()
    alone = Sequential([AnnotateTarget("toy"), PartitionGraph()])(main("(negative(%x), negative(%y))"))
    assert len(regions(alone)) == 2


def test_a_value_used_twice_is_one_result() -> None:
    done = STEPS(main("%0 = negative(%x); (%0, %0, exp(%0))"))
    (func,) = regions(done)
    assert isinstance(func.body, Call)


BEGIN, END = 'annotation.compiler_begin({}, compiler="toy")', 'annotation.compiler_end({}, compiler="toy")'


def test_a_region_that_waits_for_itself_is_told() -> None:
    """Drawn by hand: negative and multiply in one region, with exp between them outside."""
    inner = f"%0 = negative({BEGIN.format('%x')}); %1 = exp({END.format('%0')});"
    mod = main(f"{inner} {END.format('%2')}".replace("%2", f"multiply(%0, {BEGIN.format('%1')})"))
    for step in (MergeCompilerRegions(), PartitionGraph()):
        with pytest.raises(RelayError) as wrong:
            step(mod)
        (said,) = wrong.value.diagnostics
        assert said.code == "R0518" and "through a call of exp" in said.title
        assert said.labels and said.labels[0].span is not None


# ---- size


def deep(n: int, lets: bool) -> IRModule:
    """n calls, the target's and the host's in turns, in lets or as one chain."""
    x = Var("x", TensorType((2, 3)))
    node: Expr = x
    bound: list[tuple[Var, Expr]] = []
    for i in range(n):
        node = op_call("negative" if i % 4 < 2 else "exp", [node])
        if lets:
            bound.append((Var(f"v{i}"), node))
            node = bound[-1][0]
    for var, value in reversed(bound):
        node = Let(var, value, node)
    return InferType()(IRModule.from_expr(Function([x], node)))


@pytest.mark.sweep
@pytest.mark.parametrize("lets", [False, True])
def test_every_step_is_linear(lets: bool) -> None:
    def prepare(n: int) -> Callable[[], object]:
        mod = deep(n, lets)
        return lambda: STEPS(mod)

    assert_linear(prepare)
    assert len(regions(STEPS(deep(4_000, lets)))) == 1_000


@pytest.mark.sweep
def test_kept_lets_are_linear() -> None:
    """A list of writes: every let stays, and opens a scope."""

    def prepare(n: int) -> Callable[[], object]:
        writes = " ".join(f"let %w{i} = ref_write(%r, negative(ref_read(%r)));" for i in range(n))
        mod = main(f"let %r = ref(%x); {writes} negative(ref_read(%r))")
        return lambda: STEPS(mod)

    assert_linear(prepare, small=100)


# ---- networks


@needs_shared
@pytest.mark.parametrize("network", ["dqn", "mlp", "synthetic"])
@pytest.mark.parametrize("target", ["arm_compute_lib", "dnnl"])
def test_networks_partition_the_same_in_a_normal_form(network: str, target: str) -> None:
    mod = InferType()(relay.parse((SHARED / "golden" / f"{network}.typed.relay").read_text()))
    ready = prepare(mod, target)
    done = partition(ready, target)
    assert regions(done)
    assert structural_equal(partition(InferType()(ToANormalForm()(ready)), target), done)
