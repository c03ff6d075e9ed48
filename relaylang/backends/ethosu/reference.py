"""The TOSA reference model: runs a TOSA file on the host, to the integer that the specification says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relaylang.backends.ethosu.tools import load, quiet
from relaylang.diagnostics import RelayError, error


def run_tosa(tosa: bytes, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Run a TOSA file on inputs of its shapes and types (int8, int16, int32). Returns its outputs in order.

    Raises `RelayError` where the model is not installed or the graph leaves what the specification defines.
    """
    model = load("tosa_reference_model", "running a region on the host")
    problem = ""
    outputs: list[np.ndarray] = []
    with quiet() as said:
        try:
            outputs, status = model.run(tosa, [np.ascontiguousarray(x) for x in inputs], verbosity="NONE")
            if status != model.GraphStatus.TOSA_VALID:
                problem = f"its status is {status.name}"
        except (ValueError, RuntimeError) as failure:
            problem = str(failure)
    if problem:
        words = [line for line in said[0].splitlines() if "WARNING" not in line and line.strip()][:4]
        raise RelayError(error("R0613", f"the TOSA reference model does not run the region: {problem}", notes=words))
    return [np.asarray(out) for out in outputs]
