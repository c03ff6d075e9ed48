"""Composites, regions, partitioning and the schedule, on an imaginary accelerator for relu, tanh and add."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relaylang.interpreter import evaluate
from relaylang.ir import Call, Function, IRModule, TensorType, Var
from relaylang.ops import get
from relaylang.partition.composites import choose, composite_name
from relaylang.partition.engine import run
from relaylang.partition.entries import as_entries
from relaylang.partition.lift import regions_of
from relaylang.partition.naming import PLAIN_NAMES
from relaylang.partition.recipe import Recipe
from relaylang.partition.regions import Region
from relaylang.partition.schedule import make_schedule
from relaylang.partition.scope import scope_nodes
from relaylang.patterns import is_op, wildcard
from relaylang.syntax import astext, parse
from relaylang.transform import MergeComposite
from relaylang.typing import check

TABLE = [
    ("toy.relu_tanh", is_op("tanh")(is_op("nn.relu")(wildcard()))),
    ("toy.relu", is_op("nn.relu")(wildcard())),
    ("toy.tanh", is_op("tanh")(wildcard())),
    ("toy.add", is_op("add")(wildcard(), wildcard())),
]
X = np.linspace(-2, 2, 6, dtype="float32").reshape(2, 3)


def program(text: str) -> IRModule:
    mod = parse(text).module
    check(mod)
    return mod


RECIPE = Recipe(
    "toy",
    search="calls",
    constants_inside=True,
    tuples="users",
    merge="early",
    outputs="computed",
    unfold=True,
    naming=PLAIN_NAMES,
)


def partition(mod: IRModule, recipe: Recipe = RECIPE) -> tuple[IRModule, int]:
    done = run(mod, as_entries(TABLE), recipe, prefix="").module
    return done, len(regions_of(done, "toy"))


def by_schedule(mod: IRModule, *args: np.ndarray) -> object:
    """The partitioned module's value, step by step."""
    schedule = make_schedule(mod["main"], dict(regions_of(mod, "toy")))
    values: dict[str, object] = dict(zip(schedule.params, args))
    for step in schedule.steps:
        step_module = IRModule.from_expr(step.function)
        result = evaluate(step_module, *[values[i] for i in step.inputs])
        values.update(zip(step.outputs, result if len(step.outputs) > 1 else [result]))

    def pick(part: object) -> object:
        return tuple(pick(p) for p in part) if isinstance(part, list) else values[str(part)]

    return pick(schedule.result)


PROGRAMS = {
    "chain": ("%1 = nn.relu(%x); %2 = tanh(%1); exp(%2)", 1),
    "host between": ("%1 = nn.relu(%x); %2 = exp(%1); %3 = tanh(%2); add(%3, %3)", 2),
    "diamond through the host": ("%1 = nn.relu(%x); %2 = exp(%1); %3 = add(%1, %2); tanh(%3)", 2),
    "two outputs": ("%1 = nn.relu(%x); %2 = add(%1, %x); %3 = tanh(%1); (exp(%2), %3, sqrt(%2))", 1),
    "inputs that come late": ("%1 = nn.relu(%x); %2 = exp(%x); %3 = add(%1, %2); (%1, %3)", 1),
    "shared inner value": ("%1 = nn.relu(%x); %2 = tanh(%1); %3 = exp(%1); multiply(%2, %3)", 1),
    "nothing": ("exp(%x)", 0),
    "only the accelerator": ("tanh(nn.relu(%x))", 1),
    "parameter as result": ("(%x, nn.relu(%x))", 1),
    "lets": ("let %a = nn.relu(%x); let %b = exp(%a); let %c = tanh(%b); add(%c, %a)", 2),
    "branch": ("%1 = nn.relu(%x); %2 = if (True) { exp(%1) } else { tanh(%1) }; add(%2, %1)", 2),
    "closure": ("%1 = nn.relu(%x); %f = fn (%y: Tensor[(2, 3), float32]) { add(%y, %1) }; tanh(%f(%1))", 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_value_stays(name: str) -> None:
    body, count = PROGRAMS[name]
    text = f"def @main(%x: Tensor[(2, 3), float32]) {{ {body} }}"
    wanted = evaluate(program(text), X)
    done, regions = partition(program(text))
    assert regions == count
    for result in (evaluate(done, X), by_schedule(done, X)):
        for have, want in zip(result if isinstance(result, tuple) else [result], _fields(wanted)):
            np.testing.assert_array_equal(have, want)


def _fields(value: object) -> list:
    return list(value) if isinstance(value, tuple) else [value]


VARIANTS = {
    "TVM's steps": Recipe("toy"),
    "calls alone": Recipe("toy", merge="none", tuples="never"),
    "tuples with their users": replace(RECIPE, search="rows", constants_inside=False),
    "merged late": replace(RECIPE, merge="late", outputs="used"),
    "tanh is a reason": Recipe("toy", worth=frozenset({"tanh"})),
}
RELU_IS_NO_REASON = [replace(row, mover=row.name == "toy.relu") for row in as_entries(TABLE)]


@pytest.mark.parametrize("recipe", VARIANTS.values(), ids=VARIANTS)
def test_the_value_stays_by_every_recipe(recipe: Recipe) -> None:
    for body, _ in PROGRAMS.values():
        mod = program(f"def @main(%x: Tensor[(2, 3), float32]) {{ {body} }}")
        done, _ = partition(mod, recipe)
        for have, want in zip(_fields(evaluate(done, X)), _fields(evaluate(mod, X)), strict=True):
            np.testing.assert_array_equal(have, want)


def test_the_value_stays_where_movers_go_back() -> None:
    for body, _ in PROGRAMS.values():
        mod = program(f"def @main(%x: Tensor[(2, 3), float32]) {{ {body} }}")
        done = run(mod, RELU_IS_NO_REASON, RECIPE).module
        for have, want in zip(_fields(evaluate(done, X)), _fields(evaluate(mod, X)), strict=True):
            np.testing.assert_array_equal(have, want)


def test_movers_alone_make_no_region() -> None:
    mod = program("def @main(%x: Tensor[(2, 3), float32]) { exp(nn.relu(exp(tanh(%x)))) }")
    assert partition(mod)[1] == 2
    outcome = run(mod, RELU_IS_NO_REASON, RECIPE)
    ((_, func),) = regions_of(outcome.module, "toy")
    assert "tanh" in astext(func) and "nn.relu" not in astext(func)
    (trace,) = outcome.traces.values()
    assert [composite_name(call) for call in trace.unworthy] == ["toy.relu"]


def test_a_call_leaves_its_region() -> None:
    """`refuse` keeps a call on the host; `judge` takes one out of a region."""
    mod = program("def @main(%x: Tensor[(2, 3), float32]) { tanh(add(nn.relu(%x), %x)) }")
    refused = run(mod, as_entries(TABLE), RECIPE, refuse=lambda call: "odd" if composite_name(call) == "toy.add" else None)
    assert len(regions_of(refused.module, "toy")) == 2

    def judge(region: Region) -> tuple[Call, str] | None:
        calls = [node for node in region.nodes if isinstance(node, Call)]
        return (calls[-1], "too many") if len(calls) > 1 else None

    judged = run(mod, as_entries(TABLE), RECIPE, judge=judge)
    assert len(regions_of(judged.module, "toy")) == 1
    (trace,) = judged.traces.values()
    assert sorted(trace.reasons.values()) == ["too many", "too many"]


def test_functions_carry_tvms_attributes_and_read_back() -> None:
    done, _ = partition(program("def @main(%x: Tensor[(2, 3), float32]) { exp(tanh(nn.relu(%x))) }"))
    ((gv, func),) = regions_of(done, "toy")
    assert gv.name_hint == "toy_main_0"
    assert func.attrs == {"Inline": 1, "Compiler": "toy", "global_symbol": "toy_main_0", "Primitive": 1}
    call = func.body
    assert isinstance(call, Call) and isinstance(call.op, Function)
    assert call.op.attrs == {"PartitionedFromPattern": "nn.relu_tanh_", "Composite": "toy.relu_tanh"}
    again = parse(astext(done)).module
    np.testing.assert_array_equal(evaluate(again, X), evaluate(done, X))


def test_names_do_not_collide() -> None:
    ty = "Tensor[(2, 3), float32]"
    text = f"def @toy_main_0(%x: {ty}) {{ exp(%x) }} def @main(%x: {ty}) {{ tanh(%x) }}"
    done, _ = partition(program(text))
    assert sorted(gv.name_hint for gv in done) == ["main", "toy_main_0", "toy_main_0_1"]


def test_check_refuses_with_a_reason() -> None:
    main = program("def @main(%x: Tensor[(2, 3), float32]) { exp(tanh(%x)) }")["main"]
    table = as_entries([("toy.tanh", is_op("tanh")(wildcard()), lambda expr: False)])
    for recipe in (RECIPE, Recipe("toy")):
        chosen = choose(main, table, recipe=recipe)
        assert chosen.groups == []
        assert [refusal.reason for refusal in chosen.refusals] == ["toy.tanh does not take it"]


def test_merge_composite_is_a_pass() -> None:
    mod = MergeComposite(TABLE)(program("def @main(%x: Tensor[(2, 3), float32]) { tanh(nn.relu(%x)) }"))
    assert composite_name(mod["main"].body) == "toy.relu_tanh"


@pytest.mark.sweep
def test_long_chain_in_linear_time() -> None:
    """20 000 calls, the accelerator's and the host's in turns: no recursion, and a few seconds."""
    x = Var("x", TensorType((2, 3), "float32"))
    body = x
    for i in range(20_000):
        body = Call(get("tanh" if i % 4 < 3 else "exp"), [body])  # type: ignore[assignment]
    mod = IRModule.from_expr(Function([x], body))
    check(mod)
    done, regions = partition(mod)
    schedule = make_schedule(done["main"], dict(regions_of(done, "toy")))
    assert regions == 5_000
    assert len(schedule.steps) == 10_000
    assert len(scope_nodes(done["main"].body)) >= 10_000
