"""Names in attributes: a call computes with the extents that its function's parameters have in the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter import evaluate
from relaylang.ir import Call, Function, IRModule, TensorType, TypeVar, Var
from relaylang.ir.extents import combine
from relaylang.ops import OPS, make_attrs
from relaylang.ops.record import _EXTENTS
from relaylang.passes.normal_forms.extents_as_operands import extents_as_operands
from relaylang.rules.static_to_dynamic import RULES
from relaylang.syntax import parse
from relaylang.typing import check
from tests.backends.vm.agree import assert_same

Run = Callable[..., Any]
HEAD = '#[version = "0.0.5"]\n'
RUNS: dict[str, Run] = {
    "interpreter": lambda mod, *args: evaluate(mod, *args),
    "vm": lambda mod, *args: compile_vm(mod).run(*args),
}
DATA = np.arange(48, dtype="float32").reshape(6, 8)
PLACES = np.asarray([[0, 1], [4, 7]], "int64")
#: A program of `b`, and the same of numbers.
BODIES = {
    "reshape": "reshape(%x, newshape=[b, 2, 4])",
    "reshape, one extent left": "reshape(%x, newshape=[2, b, -1])",
    "reshape, copied extents": "reshape(%x, newshape=[b, 0])",
    "contrib_reverse_reshape": "contrib_reverse_reshape(%x, newshape=[b, -1, 4])",
    "broadcast_to": "broadcast_to(1f, shape=[b, 4])",
    "zeros": 'add(%x, zeros(shape=[b, 8], dtype="float32"))',
    "ones": 'ones(shape=[b, b], dtype="int8")',
    "full": 'full(2f, shape=[3, b], dtype="int64")',
    "sparse_to_dense": "sparse_to_dense(%at, 2f, 0f, output_shape=[b, 8])",
    "image.resize2d": "image.resize2d(reshape(%x, newshape=[1, 1, b, 8]), size=[b, 3], roi=[0f, 0f, 0f, 0f])",
}


def program(body: str, signature: str = "[b](%x: Tensor[(b, 8), float32], %at: Tensor[(2, 2), int64])") -> IRModule:
    mod = parse(f"{HEAD}def @main{signature} {{ {body} }}").module
    check(mod)
    return mod


def test_all_operators_that_have_a_dynamic_form() -> None:
    assert {name.split(",")[0] for name in BODIES} == set(RULES)
    static = {op.of for op in OPS.values() if op.name.startswith("dyn.")}
    taken = {n for n in static if n is not None and OPS[n].attrs is not None and _EXTENTS & set(OPS[n].schema)}
    assert taken <= set(RULES)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
@pytest.mark.parametrize("extent", [6, 1])
def test_numbers_of_a_run(run: Run, body: str, extent: int) -> None:
    data, places = DATA[:extent], PLACES % [extent, 8]
    if extent == 1:
        places = np.asarray([[0, 1], [0, 7]], "int64")
    number = body.replace("b,", f"{extent},").replace("b]", f"{extent}]")
    wanted = evaluate(program(number, f"(%x: Tensor[({extent}, 8), float32], %at: Tensor[(2, 2), int64])"), data, places)
    assert_same(run(program(body), data, places), wanted, 0, 0)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    "body", ["reshape(%x, newshape=[b, 2, 4])", 'zeros(shape=[b, 3], dtype="int8")', "broadcast_to(1f, shape=[2, b])"]
)
def test_an_extent_of_0(run: Run, body: str) -> None:
    shape = {"r": (0, 2, 4), "z": (0, 3), "b": (2, 0)}[body[0]]
    assert run(program(body), DATA[:0], PLACES).shape == shape


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    ("body", "shape"),
    [
        # a name of an inner function, in a tuple
        (
            'let %f = fn [t](%p: (int32, Tensor[(2, t), float32])) { ones(shape=[t, b], dtype="float32") };\n'
            "%f((1, transpose(reshape(%x, newshape=[-1, 2]))))",
            (24, 6),
        ),
        # one vector in both branches
        (
            'if (less(sum(%x), 0f)) { zeros(shape=[b, 8], dtype="float32") } else { add(%x, ones(shape=[b, 8], dtype="float32")) }',
            (6, 8),
        ),
    ],
)
def test_scopes(run: Run, body: str, shape: tuple[int, ...]) -> None:
    value = run(program(body), DATA, PLACES)
    assert value.shape == shape
    assert_same(value, (DATA + 1 if shape == (6, 8) else np.ones(shape, "float32")), 0, 0)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
def test_computed_extents(run: Run) -> None:
    n = TypeVar("n", "ShapeVar")
    x = Var("x", TensorType([n, 8], "float32"))
    shape = [
        combine("tir.Add", combine("tir.Mul", n, 2), 3),
        combine("tir.FloorDiv", n, 4),
        combine("tir.Max", combine("tir.Sub", n, 9), 1),
    ]
    mod = IRModule.from_expr(
        Function([x], Call(OPS["ones"], [], make_attrs(OPS["ones"].attrs, {"shape": shape, "dtype": "int8"})), None, [n])
    )
    check(mod)
    assert run(mod, DATA).shape == (15, 1, 1)


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ('zeros(shape=[c, 8], dtype="int8")', "zeros: the numbers of shape=[c, 8] are not known"),
        ('zeros(shape=[?, 8], dtype="int8")', "zeros: the numbers of shape=[?, 8] are not known"),
        (
            "nn.adaptive_avg_pool1d(expand_dims(%x, axis=0), output_size=[b])",
            "nn.adaptive_avg_pool1d: the numbers of output_size=[b] are not known",
        ),
    ],
)
def test_extents_that_no_parameter_has(run: Run, body: str, said: str) -> None:
    with pytest.raises(RelayError) as failed:
        run(program(body, "[b, c](%x: Tensor[(b, 8), float32], %at: Tensor[(2, 2), int64])"), DATA, PLACES)
    (only,) = failed.value.diagnostics
    assert (only.code, only.title) == ("R0404", said)
    assert only.span is not None


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    ("signature", "extents", "shapes", "wanted"),
    [
        ("[b](%x: Tensor[(2 * b), int8])", "b, 2 * b", [(6,)], (3, 6)),
        ("[b](%x: Tensor[(3 * b + 2), int8])", "b + 1", [(8,)], (3,)),
        ("[b](%x: Tensor[(9 - 2 * b), int8])", "b", [(3,)], (3,)),
        ("[b, t](%x: Tensor[(b + t), int8], %y: Tensor[(t), int8])", "b, t", [(7,), (3,)], (4, 3)),
        # each name after the one before it
        (
            "[a, b, c](%x: Tensor[(a + b), int8], %y: Tensor[(b + c), int8], %z: Tensor[(2 * c), int8])",
            "a, b",
            [(9,), (8,), (6,)],
            (4, 5),
        ),
        # an extent that tells no name, as a whole
        ("[b, t](%x: Tensor[(b * t, 2), int8])", "2, b * t", [(6, 2)], (2, 6)),
        ("[b](%x: (Tensor[(b / 2), int8], int8))", "b / 2", [((3,), ())], (3,)),
    ],
)
def test_names_that_stand_in_computed_extents_alone(
    run: Run, signature: str, extents: str, shapes: list[Any], wanted: tuple[int, ...]
) -> None:
    def of(shape: Any) -> Any:
        return tuple(map(of, shape)) if shape and isinstance(shape[0], tuple) else np.zeros(shape, "int8")

    mod = program(f'ones(shape=[{extents}], dtype="int8")', signature)
    assert run(mod, *map(of, shapes)).shape == wanted


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    ("signature", "extents", "names"),
    [
        ("[b, t](%x: Tensor[(b * t), int8])", "b, 2", "b"),
        ("[b](%x: Tensor[(b / 2), int8])", "b", "b"),
        ("[b](%x: Tensor[(b * b + b), int8])", "2 * b", "b"),
    ],
)
def test_names_that_no_shape_tells(run: Run, signature: str, extents: str, names: str) -> None:
    with pytest.raises(RelayError) as failed:
        run(program(f'ones(shape=[{extents}], dtype="int8")', signature), np.zeros(6, "int8"))
    (only,) = failed.value.diagnostics
    assert (only.code, only.title) == ("R0404", f"ones: the numbers of shape=[{extents}] are not known")
    assert list(only.notes) == [f"no parameter's shape tells `{names}`"]


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("reshape(%y, newshape=[b, 8])", "reshape: 5 elements do not fit into the shape (6, 8)"),
        ("broadcast_to(%y, shape=[b, 8])", "broadcast_to: a tensor of shape (5,) cannot be broadcast to (6, 8)"),
        ('zeros(shape=[b - 8], dtype="int8")', "zeros: the shape (-2,) has a negative extent"),
    ],
)
def test_errors_of_a_run_name_the_operator_of_the_text(run: Run, body: str, said: str) -> None:
    with pytest.raises(RelayError) as failed:
        run(program(body, "[b](%x: Tensor[(b, 8), float32], %y: Tensor[(?), float32])"), DATA, DATA[0, :5])
    (only,) = failed.value.diagnostics
    assert (only.code, only.title) == ("R0404", said)
    assert only.span is not None and only.span.text == body


def test_compiled_code_needs_numbers() -> None:
    with pytest.raises(RelayError) as failed:
        compile_module(program(BODIES["zeros"]))
    assert {d.code for d in failed.value.diagnostics} == {"R0634"}


def test_functions_with_one_text_have_names_of_their_own() -> None:
    body = '[n](%x: Tensor[(n), float32]) { add(%x, zeros(shape=[n], dtype="float32")) }'
    mod = parse(f"{HEAD}def @f{body}\ndef @g{body}").module
    check(mod)
    calls = [mod[name].body.args[1] for name in ("f", "g")]
    assert [call.attrs.shape[0] is mod[name].type_params[0] for call, name in zip(calls, "fg")] == [True, True]


def test_a_function_without_names_stays() -> None:
    main = program("nn.relu(%x)")["main"]
    assert extents_as_operands(main) is main
