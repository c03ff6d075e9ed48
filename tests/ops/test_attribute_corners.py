"""What the checker takes can be computed: attributes with numbers out of range are refused, and the place is theirs."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relaylang.backends.cpu import emit_c
from relaylang.diagnostics import RelayError
from relaylang.interpreter import KERNELS, evaluate
from relaylang.ir import Call, Function, IRModule, TensorType, TupleType, Type, Var, const
from relaylang.ops import OPS, make_attrs
from relaylang.ops.record import AttrError
from relaylang.syntax import parse
from relaylang.typing import infer
from tests.conformance.ours import type_of
from tests.ops.attribute_corners import calls, with_unknown_numbers
from tests.shared import check_each

#: Operators that passes make of others. Their attributes must agree with weights in a form that types do not show.
BY_PASSES = {
    "auto_scheduler_layout_transform",
    "nn.avg_pool2d_grad",
    "nn.max_pool2d_grad",
    "nn.bitpack",
    "nn.bitserial_conv2d",
    "nn.conv2d_backward_weight",
    "nn.sparse_conv2d",
    "fixed_point_multiply_per_axis",
    "vm.reshape_tensor",
}
#: Operators whose values decide, not their attributes: the arguments here are random.
BY_VALUES = {"sparse_to_dense", "stft", "collapse_sum_to"}


def left_out(op: str) -> bool:
    return op in BY_PASSES or op in BY_VALUES or op.startswith("dyn.") or "weight_transform" in op or op not in KERNELS


def value(ty: Type, rng: np.random.Generator) -> Any:
    if isinstance(ty, TupleType):
        return tuple(value(f, rng) for f in ty.fields)
    assert isinstance(ty, TensorType)
    shape = [d if isinstance(d, int) else 2 for d in ty.shape]
    dtype = np.dtype(ty.dtype)
    return (rng.integers(0, 2, shape) if dtype.kind in "biu" else rng.uniform(0.1, 1, shape)).astype(dtype)


def size(ty: Type | None) -> int:
    if isinstance(ty, TupleType):
        return sum(map(size, ty.fields))
    count = 1
    for d in ty.shape if isinstance(ty, TensorType) else ():
        count *= d if isinstance(d, int) else 2
    return count


def outcome(op: str, args: list[str], attrs: dict[str, Any]) -> str:
    """What becomes of a call: nothing where it is refused or computed, else what went wrong."""
    if op == "arange":
        bounds = {n: attrs[n] if isinstance(attrs[n], (int, float)) else 1 for n in ("start", "stop", "step") if n in attrs}
        try:
            attrs = {**attrs, **{n: const(number, attrs.get("dtype", "float32")) for n, number in bounds.items()}}
        except (OverflowError, TypeError):
            return ""
    try:
        made = make_attrs(OPS[op].attrs, attrs)  # type: ignore[arg-type]
    except AttrError:
        return ""
    types = [type_of(a) for a in args]
    params = [Var(f"p{i}", ty) for i, ty in enumerate(types)]
    function = Function(params, Call(OPS[op], params, made))
    if any(d.severity == "error" for d in infer(IRModule.from_expr(function))):
        return ""
    if size(function.body.checked_type) > 1_000_000:  # type: ignore[union-attr]
        return ""
    rng = np.random.default_rng(0)
    try:
        evaluate(function, *[value(ty, rng) for ty in types])
    except RelayError as wrong:
        said = wrong.diagnostics[0]
        return "" if said.code == "R0408" else f"{said.code} {said.title}"
    return ""


@pytest.fixture
def little_memory() -> Iterator[None]:
    """2 GB more than the process has. A larger request fails at once instead of filling the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (2 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.sweep
@pytest.mark.usefixtures("little_memory")
def test_numbers_out_of_range_are_refused_or_computed() -> None:
    wrong = []
    for op, args, attrs, odd in calls():
        if not left_out(op):
            said = outcome(op, args, attrs)
            if said:
                wrong.append(f"{op} {odd}={attrs[odd]}: {said}")
    assert wrong == []


#: Operators with a form of their own for attributes that the checker takes.
ODD = ("nn.avg_pool2d_grad", "nn.max_pool2d_grad", "nn.conv2d_backward_weight", "nn.sparse_conv2d")


@pytest.mark.sweep
@pytest.mark.parametrize("some", [True, pytest.param(False, marks=pytest.mark.sweep)], ids=["some", "every"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_the_checker_takes_becomes_code_or_a_diagnostic(some: bool) -> None:
    """No assertion and no exception of a lowering can be reached by attributes. The code is not compiled."""

    def check(case: tuple[str, list[str], dict[str, Any], str]) -> None:
        op, args, attrs, _ = case
        try:
            made = make_attrs(OPS[op].attrs, attrs)  # type: ignore[arg-type]
        except AttrError:
            return
        params = [Var(f"p{i}", type_of(a)) for i, a in enumerate(args)]
        module = IRModule.from_expr(Function(params, Call(OPS[op], params, made)))
        if any(d.severity == "error" for d in infer(module)) or size(module["main"].body.checked_type) > 1_000_000:  # type: ignore[union-attr]
            return
        try:
            emit_c(module)
        except RelayError as refused:
            assert "R0900" not in [d.code for d in refused.diagnostics]

    cases = [case for case in calls() if case[0] != "arange" and (case[0] in ODD or not some)]
    check_each(check, cases, [f"{op} {odd}={attrs[odd]}" for op, _, attrs, odd in cases])


@pytest.mark.parametrize("part", [0, *[pytest.param(i, marks=pytest.mark.sweep) for i in range(1, 10)]])
def test_an_unknown_number_in_a_list_is_refused_or_typed(part: int) -> None:
    def check(case: tuple[str, list[str], dict[str, Any], str]) -> None:
        op, args, attrs, _ = case
        try:
            made = make_attrs(OPS[op].attrs, attrs)  # type: ignore[arg-type]
        except AttrError:
            return
        params = [Var(f"p{i}", type_of(a)) for i, a in enumerate(args)]
        said = infer(IRModule.from_expr(Function(params, Call(OPS[op], params, made))))
        assert "R0900" not in [d.code for d in said]

    cases = list(with_unknown_numbers())[part::10]
    check_each(check, cases, [f"{op} {odd}={attrs[odd]}" for op, _, attrs, odd in cases])


X = "%x: Tensor[(1, 4, 8, 8), float32]"


@pytest.mark.parametrize(
    ("call", "place", "words"),
    [
        ("nn.lrn(%x, size=0)", "size=0", "size=0: 0 must be positive"),
        ("nn.lrn(%x, axis=4)", "axis=4", "axis=4 is out of range for a tensor of 4 dimensions"),
        ("cumsum(%x, axis=99)", "axis=99", "axis=99 is out of range for a tensor of 4 dimensions"),
        ("nn.softmax(%x, axis=5)", "axis=5", "axis=5 is out of range for a tensor of 4 dimensions"),
        ("sum(%x, axis=[1, /* no */ 7], keepdims=True)", "axis=[1, /* no */ 7]", "axis=7 is out of range"),
        ("expand_dims(%x, axis=0, num_newaxis=1000000000)", "num_newaxis=1000000000", "1000000000 is more than 32"),
        ("nn.max_pool2d(%x, pool_size=[2, 0])", "pool_size=[2, 0]", "0 must be positive"),
        ("nn.avg_pool2d(%x, pool_size=[2, 2], strides=[-1, 1])", "strides=[-1, 1]", "-1 must be positive"),
        ("nn.max_pool2d(%x, pool_size=[2, 2], padding=[0, -1])", "padding=[0, -1]", "-1 must not be negative"),
        ("nn.depth_to_space(%x, block_size=3)", "block_size=3", "9 does not divide the extent 4"),
        ("squeeze(sum(%x, axis=[1, 1]), axis=[0])", "axis=[1, 1]", "names a dimension twice"),
        ("topk(%x, k=9)", "k=9", "k=9 is more than the extent 8"),
        ("nn.conv2d(%x, %x, kernel_size=[8, 8], groups=0)", "groups=0", "0 must be positive"),
    ],
)
def test_the_place_is_the_attribute(call: str, place: str, words: str) -> None:
    module = parse(f'#[version = "0.0.5"]\ndef @main({X}) {{ {call} }}').module
    assert isinstance(module, IRModule)
    said = [d for d in infer(module) if d.severity == "error"]
    assert len(said) == 1 and said[0].span is not None
    assert said[0].span.text == place and words in said[0].title


def test_an_attribute_that_is_not_written_points_at_the_argument() -> None:
    module = parse("def @main(%x: float32) { nn.softmax(%x) }").module
    assert isinstance(module, IRModule)
    (said,) = [d for d in infer(module) if d.severity == "error"]
    assert said.span is not None and said.span.text == "%x" and "axis=-1 is out of range" in said.title


def test_words_that_no_text_may_say_are_refused_of_programs_made_by_hand() -> None:
    x = Var("x", TensorType((1, 4, 8, 8)))
    call = Call(OPS["nn.pad"], [x, const(0.0)], make_attrs(OPS["nn.pad"].attrs, {"pad_width": [[0, 0]] * 4, "pad_mode": "fancy"}))  # type: ignore[arg-type]
    (said,) = infer(IRModule.from_expr(Function([x], call)))
    assert said.title == '`nn.pad`: pad_mode="fancy" must be "constant", "edge" or "reflect"'
