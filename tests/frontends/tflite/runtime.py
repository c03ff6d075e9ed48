"""What LiteRT computes for a file, call after call, and the comparison with the imported program."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import relaylang as relay
from relaylang.frontends.tflite import import_tflite
from relaylang.interpreter.evaluate import Evaluator
from relaylang.ir.structural import structural_equal


def outputs(data: bytes, calls: Sequence[Sequence[np.ndarray]], reference: bool = False) -> list[list[np.ndarray]]:
    """The outputs of each call by TFLite's own kernels, without the delegate that approximates; or by reference kernels."""
    litert = pytest.importorskip("ai_edge_litert.interpreter", reason="ai-edge-litert computes the expected values")
    kinds = litert.OpResolverType
    kernels = kinds.BUILTIN_REF if reference else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    made = litert.Interpreter(model_content=data, experimental_op_resolver_type=kernels, num_threads=1)
    made.allocate_tensors()
    found = []
    for inputs in calls:
        for detail, value in zip(made.get_input_details(), inputs, strict=True):
            made.set_tensor(detail["index"], value)
        made.invoke()
        found.append([np.array(made.get_tensor(d["index"])) for d in made.get_output_details()])
    return found


def compare(data: bytes, *calls: Sequence[np.ndarray], apart: float = 0, close: float = 1e-5) -> relay.IRModule:
    """The same shapes, types and values in each call; variables go from one call to the next.

    Real numbers agree to `close` of the largest, integers are at most `apart` apart.
    """
    mod = import_tflite(data, file="net.tflite").module
    assert relay.infer(mod, fresh=True) == []
    assert structural_equal(relay.parse(mod.astext()), mod)
    run = Evaluator(mod)
    kept = list(run.call("initial_state", ())) if "initial_state" in [g.name_hint for g in mod.functions] else []
    wanted = outputs(data, calls)
    for inputs, expected in zip(calls, wanted):
        found = run.call("main", (*inputs, *kept))
        found = list(found) if isinstance(found, tuple) else [found]
        assert len(found) == len(expected) + len(kept)
        kept = found[len(expected) :]
        for f, w in zip(found, expected):
            same(np.asarray(f), w, apart, close)
    return mod


def same(found: np.ndarray, wanted: np.ndarray, apart: float = 0, close: float = 1e-5) -> None:
    """One output is as the runtime's."""
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    if wanted.dtype.kind == "f":
        least = max(float(np.abs(wanted[np.isfinite(wanted)]).max(initial=0)), 1e-3)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=close * least)
    else:
        assert np.abs(found.astype(int) - wanted.astype(int)).max(initial=0) <= apart
