"""Each trait against what the operators with it compute, or against their records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.interpreter.kernels import KERNELS
from relaylang.ops import OPS, Trait, get, having, make_attrs
from relaylang.ops.traits import Fact
from relaylang.repl.opdoc import example

RNG = np.random.default_rng(7)
#: Where functions of one element are defined.
DOMAINS = {"acosh": (1, 9), "asin": (-1, 1), "acos": (-1, 1), "atanh": (-0.9, 0.9)}
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt")
WHOLE = ("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "fixed_point_multiply")
ATTRS: dict[str, dict[str, Any]] = {
    "clip": {"a_min": -0.5, "a_max": 0.7},
    "cast": {"dtype": "int32"},
    "reinterpret": {"dtype": "int32"},
    "nn.leaky_relu": {"alpha": 0.1},
    "fixed_point_multiply": {"multiplier": 1 << 30, "shift": 1},
}


def attrs_of(name: str) -> Any:
    op = get(name)
    return make_attrs(op.attrs, ATTRS.get(name, {})) if op.attrs is not None else None


def numbers(name: str, *shape: int) -> np.ndarray:
    """Elements for which an operator is defined, in its element type."""
    if name in WHOLE:
        return RNG.integers(1, 8, shape).astype("int32")
    if name.startswith("logical"):
        return RNG.integers(0, 2, shape).astype(bool)
    low, high = DOMAINS.get(name, (0.1, 4) if name in POSITIVE else (-4, 4))
    return RNG.uniform(low, high, shape).astype("float32")


def value(name: str, *arrays: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.asarray(KERNELS[name](attrs_of(name), *arrays))


def call(name: str) -> tuple[Any, list[np.ndarray], Any]:
    """The example of an operator, arguments for it and its value."""
    shown = example(get(name))
    assert shown is not None
    arrays = [RNG.integers(0, 3, p.checked_type.shape).astype(p.checked_type.dtype) for p in shown.function.params]
    return shown, arrays, relay.evaluate(shown.function, *arrays)


@pytest.mark.parametrize("name", having(Trait.UNARY))
def test_unary_is_a_function_of_each_element(name: str) -> None:
    x = numbers(name, 3, 4)
    whole = value(name, x)
    assert whole.shape == x.shape
    parts = np.asarray([value(name, x[i : i + 1, j : j + 1]) for i in range(3) for j in range(4)])
    np.testing.assert_allclose(whole.ravel(), parts.ravel(), rtol=1e-5)


@pytest.mark.parametrize("name", having(Trait.BINARY))
def test_binary_broadcasts(name: str) -> None:
    x, y = numbers(name, 2, 3), numbers(name, 3)
    np.testing.assert_allclose(value(name, x, y), value(name, x, np.stack([y, y])), rtol=1e-6)
    assert Trait.BROADCAST in get(name).traits


@pytest.mark.parametrize("name", having(Trait.COMPARISON))
def test_comparison_gives_truth_values(name: str) -> None:
    assert value(name, numbers(name, 3), numbers(name, 3)).dtype == bool


@pytest.mark.parametrize("name", having(Trait.COMMUTATIVE))
def test_commutative(name: str) -> None:
    x, y = numbers(name, 50), numbers(name, 50)
    np.testing.assert_array_equal(value(name, x, y), value(name, y, x))


@pytest.mark.parametrize("name", [name for name in having(Trait.BINARY) if Trait.COMMUTATIVE not in get(name).traits])
def test_what_is_not_commutative(name: str) -> None:
    x, y = numbers(name, 50), numbers(name, 50)
    assert (value(name, x, y) != value(name, y, x)).any()


@pytest.mark.parametrize("name", having(Trait.ASSOCIATIVE))
def test_associative(name: str) -> None:
    dtype = bool if name.startswith("logical") else "int32"
    x, y, z = (RNG.integers(0, 2 if dtype is bool else 100, 50).astype(dtype) for _ in range(3))
    np.testing.assert_array_equal(value(name, value(name, x, y), z), value(name, x, value(name, y, z)))


@pytest.mark.parametrize("name", having(Trait.MONOTONE))
def test_monotone(name: str) -> None:
    assert (np.diff(value(name, np.sort(numbers(name, 500)))) >= 0).all()


@pytest.mark.parametrize("name", having(Trait.IDEMPOTENT))
def test_idempotent(name: str) -> None:
    once = value(name, numbers(name, 50))
    np.testing.assert_array_equal(value(name, once), once)


@pytest.mark.parametrize("name", having(Trait.RESHAPE, without={Trait.DYNAMIC}))
def test_reshape_keeps_the_order_of_elements(name: str) -> None:
    _, arrays, result = call(name)
    np.testing.assert_array_equal(np.ravel(result), arrays[0].ravel())


@pytest.mark.parametrize("name", [n for n in having(Trait.IDENTITY) if not n.startswith(("annotation.", "on_", "device_"))])
def test_identity_gives_its_argument(name: str) -> None:
    _, arrays, result = call(name)
    np.testing.assert_array_equal(result[0] if get(name).results else result, arrays[0])


@pytest.mark.parametrize("name", having(Trait.FILL))
def test_fill_has_one_number(name: str) -> None:
    assert len(np.unique(call(name)[2])) <= 1


@pytest.mark.parametrize("name", having(Trait.EXTENTS))
def test_extents_do_not_depend_on_elements(name: str) -> None:
    np.testing.assert_array_equal(call(name)[2], call(name)[2])


@pytest.mark.parametrize("name", having(Trait.REDUCTION, without={Trait.ARG_REDUCTION}))
def test_reduction_does_not_depend_on_order(name: str) -> None:
    x = RNG.integers(0, 2, 12).astype(bool) if name in ("all", "any") else numbers(name, 12)
    more = [np.asarray([0.0], "float32")] if name == "variance" else []
    np.testing.assert_allclose(value(name, x, *more), value(name, x[::-1].copy(), *more), rtol=1e-5)


@pytest.mark.parametrize("trait", [Trait.POOL, Trait.GLOBAL_POOL, Trait.ADAPTIVE_POOL])
def test_pools_have_a_layout_and_take_the_largest_or_the_mean(trait: Fact) -> None:
    for name in having(trait):
        assert "layout" in get(name).schema
        assert len(get(name).traits & {Trait.LARGEST, Trait.AVERAGE}) == 1
        assert ("pool_size" in get(name).schema) == (trait is Trait.POOL)


@pytest.mark.parametrize("trait", [Trait.CONV, Trait.CONV_TRANSPOSE])
def test_convolutions_have_layouts(trait: Fact) -> None:
    for name in having(trait):
        assert {"data_layout", "kernel_layout", "out_layout", "groups"} <= set(get(name).schema), name
        assert get(name).args[:2] == ("data", "weight")
        assert ("output_padding" in get(name).schema) == (trait is Trait.CONV_TRANSPOSE)


def test_forms_name_their_operator() -> None:
    forms = {Trait.QUANTISED, Trait.DYNAMIC, Trait.FAST, Trait.BLOCKED, Trait.LIKE}
    for op in OPS.values():
        if op.of:
            assert op.of in OPS and op.traits & forms, op.name
        else:
            assert not op.traits & (forms - {Trait.QUANTISED}), op.name


@pytest.mark.parametrize("name", having(Trait.FAST))
def test_fast_is_close(name: str) -> None:
    x = RNG.uniform(-2, 2, (4, 5)).astype("float32")
    kernels = KERNELS[name], KERNELS[get(name).of]
    attrs = make_attrs(get(name).attrs, {}) if get(name).attrs else None  # type: ignore[arg-type]
    np.testing.assert_allclose(*(k(attrs, x) for k in kernels), rtol=0.05, atol=1e-4)


def test_dynamic_forms_have_more_arguments() -> None:
    for name in having(Trait.DYNAMIC):
        assert name == f"dyn.{get(name).of}" and len(get(name).args) > len(get(get(name).of).args)


def test_names_of_arguments() -> None:
    assert all(get(name).args[0] == "key" for name in having(Trait.RANDOM))
    assert all(len(get(name).args) == 2 for name in having(Trait.VECTOR))
    assert {op.name for op in OPS.values() if op.stateful} == {"memory.kill", "vm.invoke_tvm_op"}
