"""Networks in Core ML's files give what PyTorch computes for the networks that were converted; a script records both."""

from __future__ import annotations

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.coreml import import_coreml
from relaylang.frontends.formats import format_of
from relaylang.frontends.options import Options
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal
from tests.frontends.coreml.recorded import arrays, members

pytest.importorskip("google.protobuf", reason="protobuf reads the files")

WHOLE = [name for name in members() if name.endswith((".program", ".network", ".layer"))]
HALF = [name for name in members() if name.endswith(".half")]
PLAIN = [name for name in members() if name.endswith(".plain")]


def results(mod: relay.IRModule, *values: np.ndarray) -> list[np.ndarray]:
    found = Evaluator(mod).call("main", values)
    return [np.asarray(v) for v in found] if isinstance(found, tuple) else [np.asarray(found)]


def operands(mod: relay.IRModule, name: str) -> list[np.ndarray]:
    kinds = [p.type_annotation.dtype for p in mod["main"].params]
    return [v.astype(kind) for v, kind in zip(arrays(name, "x"), kinds)]


def same(found: list[np.ndarray], wanted: list[np.ndarray], tolerance: float = 1e-5) -> None:
    assert len(found) == len(wanted)
    for got, right in zip(found, wanted):
        assert got.shape == right.shape or got.size == right.size == 1
        least = tolerance * max(float(np.abs(right).max(initial=0)), 1e-30)
        np.testing.assert_allclose(got.reshape(right.shape).astype(np.float64), right.astype(np.float64), rtol=0, atol=least)


def imported(name: str, options: Options | None = None) -> relay.IRModule:
    made = import_coreml(members()[name], options or Options(), name)
    assert not made.notes
    return made.module


@pytest.mark.parametrize("name", WHOLE)
def test_a_network_gives_what_pytorch_gives(name: str) -> None:
    mod = imported(name)
    assert relay.infer(mod, fresh=True) == []
    assert structural_equal(relay.parse(mod.astext()), mod)
    network = name.rpartition(".")[0]
    same(results(mod, *operands(mod, network)), arrays(network, "y"))


@pytest.mark.parametrize("name", HALF)
def test_a_program_of_halves_is_as_near_as_they_allow(name: str) -> None:
    mod = imported(name)
    network = name.rpartition(".")[0]
    same(results(mod, *operands(mod, network)), arrays(network, "y"), 1e-2)


@pytest.mark.parametrize("name", PLAIN)
def test_packed_weights_are_those_that_coremltools_unpacks(name: str) -> None:
    packed, plain = imported(name.removesuffix(".plain")), imported(name)
    values = operands(packed, "lenet")
    same(results(packed, *values), results(plain, *values), 1e-6)


@pytest.mark.parametrize("name", members())
def test_a_file_is_known_by_its_contents(name: str) -> None:
    known = format_of(members()[name])
    assert known is not None and known.name == "coreml"
