"""Networks made with torch: the exported program computes the same."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.torch import import_pytorch
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal
from tests.shared import few

torch = pytest.importorskip("torch")
networks = pytest.importorskip("tests.frontends.torch.networks")


def exported(model: Any, inputs: tuple[Any, ...], axes: Any = None) -> bytes:
    """The bytes of a .pt2 file."""
    shapes = tuple({axis: torch.export.Dim("batch", min=1, max=64)} for axis in axes) if axes is not None else None
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(model, inputs, dynamic_shapes=shapes), buffer)
    return buffer.getvalue()


def values(mod: Any, inputs: tuple[Any, ...]) -> list[np.ndarray]:
    """The program's results for torch's tensors."""
    found = Evaluator(mod).call("main", tuple([i.numpy() for i in inputs]))
    return [np.asarray(f) for f in (found if isinstance(found, tuple) else (found,))]


def same(found: list[np.ndarray], wanted: Any) -> None:
    """Equal to 1e-5 of the largest value."""
    wanted = [w.detach().numpy() for w in (wanted if isinstance(wanted, (tuple, list)) else (wanted,))]
    for f, w in zip(found, wanted, strict=True):
        assert (f.shape, f.dtype) == (w.shape, w.dtype)
        np.testing.assert_allclose(f, w, rtol=0, atol=1e-5 * max(float(np.abs(w).max(initial=0)), 1e-3))


@pytest.mark.parametrize("axis", ["static", "dynamic"])
@pytest.mark.parametrize("name", networks.NETWORKS)
def test_a_network_computes_what_torch_computes(name: str, axis: str) -> None:
    torch.manual_seed(1)
    make, feed, axes = networks.NETWORKS[name]
    if axis == "dynamic" and axes is None:
        pytest.skip("torch exports it for one batch only")
    model, inputs = make().eval(), feed()
    imported = import_pytorch(exported(model, inputs, axes if axis == "dynamic" else None), file=f"{name}.pt2")
    mod = imported.module
    assert relay.infer(mod, fresh=True) == []
    assert structural_equal(relay.parse(mod.astext()), mod)
    same(values(mod, inputs), model(*inputs))
    if axis == "dynamic":
        more = tuple([torch.cat([i, i[:1]]) for i in inputs])
        same(values(mod, more), model(*more))


@pytest.mark.parametrize("name", few(("vision", "unet"), "unet"))
def test_decomposed_programs_compute_the_same(name: str) -> None:
    torch.manual_seed(1)
    make, feed, _ = networks.NETWORKS[name]
    model, inputs = make().eval(), feed()
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(model, inputs).run_decompositions(), buffer)
    same(values(import_pytorch(buffer.getvalue()).module, inputs), model(*inputs))
