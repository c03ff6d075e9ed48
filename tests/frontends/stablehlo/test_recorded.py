"""Programs that JAX writes give JAX's results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from relaylang.frontends.formats import import_bytes
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir import IRModule
from tests.frontends.stablehlo.recorded import case, members, names
from tests.shared import check_each

#: Cases whose numbers have fewer bits than float32. JAX rounds at other places, each by one unit of its type.
ROUNDED = {"mlp_bfloat16": 2.0**-8}


def leaves(value: Any) -> list[np.ndarray]:
    return [leaf for v in value for leaf in leaves(v)] if isinstance(value, tuple) else [np.asarray(value)]


def results(mod: IRModule, operands: list[np.ndarray]) -> list[np.ndarray]:
    return leaves(Evaluator(mod).call("main", operands))


def same(found: list[np.ndarray], wanted: list[np.ndarray], tolerance: float = 1e-5) -> None:
    assert len(found) == len(wanted)
    for i, (f, w) in enumerate(zip(found, wanted)):
        assert (f.shape, f.dtype) == (w.shape, w.dtype), f"result {i}"
        if w.dtype.kind in "biu":
            np.testing.assert_array_equal(f, w, f"result {i}")
            continue
        a, b = f.astype("float64"), w.astype("float64")
        some = np.isfinite(b)
        np.testing.assert_array_equal(np.where(some, 0, a), np.where(some, 0, b), f"result {i}")
        most = np.abs(b[some]).max(initial=0)
        np.testing.assert_allclose(a[some], b[some], rtol=0, atol=tolerance * max(most, 1e-30), err_msg=f"result {i}")


@pytest.mark.parametrize("name", names())
def test_a_program_gives_what_jax_gives(name: str) -> None:
    text, operands, wanted = case(name)
    imported = import_bytes(text, f"{name}.mlir")
    assert imported is not None
    same(results(imported.module, operands), wanted, ROUNDED.get(name, 1e-5))


@pytest.mark.parametrize("name", [n for n in names() if n.startswith("dynamic_")])
def test_open_extents_may_be_given(name: str) -> None:
    text, operands, wanted = case(name)
    shapes = {f"arg{i}": x.shape for i, x in enumerate(operands)}
    imported = import_bytes(text, name, Options(shapes))
    assert imported is not None and "?" not in str(imported.module)
    same(results(imported.module, operands), wanted)


def test_weights_may_be_parameters() -> None:
    text = b"""func.func @main(%x: tensor<2x3xf32>) -> tensor<2x2xf32> {
  %w = stablehlo.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}"""
    imported = import_bytes(text, "net.mlir", Options(freeze=False))
    assert imported is not None and list(imported.params) == ["w"]


def test_portable_artifacts_give_what_their_texts_give() -> None:
    pytest.importorskip("jaxlib")
    found = [name for name in members() if name.endswith(".mlirbc")]

    def one(name: str) -> None:
        _, operands, wanted = case(name.removesuffix(".mlirbc"))
        imported = import_bytes(members()[name], name)
        assert imported is not None
        same(results(imported.module, operands), wanted)

    assert len(found) >= 5
    check_each(one, found)
