"""What TVM 0.16 makes of the classic networks (`relay.quantize`): `python -m tests.quantize.recorded_tvm`.

`RELAY_ORACLE` names the Python that has TVM. Each row is a digest of TVM's result, whose constants are part of it. Rows are
written as they come, and those that the file has are left; networks and configurations that are no longer listed go.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import PIPE
from typing import Any

import numpy as np

from relaylang.ir import Call, Constant, IRModule, Var, children, post_order
from relaylang.ops.record import Op
from relaylang.tvm.relay.testing import densenet, inception_v3, mlp, mobilenet, resnet, squeezenet, vgg
from relaylang.tvm.relay.testing.init import create_workload
from tests.shared import SHARED

HERE = Path(__file__).parent
FILE = HERE / "recorded_tvm.json"

_IMAGE = (1, 3, 32, 32)
NETWORKS: Mapping[str, Callable[[], tuple[IRModule, dict[str, Any]]]] = {
    "mlp": lambda: mlp.get_workload(1, 10, (1, 8, 8)),
    "resnet18": lambda: create_workload(resnet.resnet([2] * 4, 4, [8, 8, 16, 24, 32], 10, _IMAGE, False)),
    "mobilenet": lambda: create_workload(mobilenet.mobile_net(10, _IMAGE, alpha=0.25)),
    "squeezenet": lambda: squeezenet.get_workload(1, 10, image_shape=(3, 64, 64)),
    "resnet50": lambda: create_workload(resnet.resnet([3, 4, 6, 3], 4, [8, 16, 32, 48, 64], 10, _IMAGE, True)),
    "vgg": lambda: vgg.get_workload(1, 10, (3, 32, 32)),
    "densenet": lambda: densenet.get_workload(classes=10, batch_size=1),
    "inception": lambda: inception_v3.get_workload(1, 10),
}
_WHOLE: dict[str, Any] = {"skip_conv_layers": None, "skip_dense_layer": False}
_LARGEST = {"weight_scale": "max", "global_scale": 5.0}
#: Calibrated scales are sums of floats in an order of their own, so each configuration has a global scale.
CONFIGS: Mapping[str, dict[str, Any]] = {
    "defaults": {},
    "all layers": _WHOLE,
    "dense layers": {"skip_dense_layer": False},
    "two convolutions skipped": {"skip_conv_layers": [0, 2]},
    "weights by their largest": {**_WHOLE, "weight_scale": "max"},
    "simulation": {"do_simulation": True, "skip_dense_layer": False},
    "shifts without rounding": {"round_for_shift": False},
    "to nearest": {**_LARGEST, "rounding": "TONEAREST"},
    "upward": {**_LARGEST, "rounding": "UPWARD"},
    "few bits": {"nbit_input": 6, "nbit_weight": 5, "skip_dense_layer": False},
    "store_lowbit_output": {"store_lowbit_output": False},
    "inputs of 16 bits": {"nbit_input": 16, "dtype_input": "int16", "skip_dense_layer": False},
}
#: TVM compiles each constant that it folds, so networks but the first have few configurations.
_FEW = ("defaults", "all layers", "weights by their largest", "few bits")
_CONFIGS = {
    "mlp": tuple(CONFIGS),
    **dict.fromkeys(("resnet18", "mobilenet", "squeezenet"), _FEW),
    **dict.fromkeys(("resnet50", "vgg"), _FEW[:2]),
    **dict.fromkeys(("inception", "densenet"), _FEW[1:2]),
}
CASES = [(name, config) for name, configs in _CONFIGS.items() for config in configs]


def network(name: str) -> tuple[IRModule, dict[str, np.ndarray]]:
    """A network in a small size, and weights that keep the scale of its values."""
    mod, params = NETWORKS[name]()
    rng = np.random.default_rng(0)
    for key, value in params.items():
        shape = value.shape
        if key.endswith(("var", "gamma")):
            numbers = rng.uniform(0.5, 1.5, shape)
        else:
            numbers = rng.normal(0, np.sqrt(2 / np.prod(shape[1:])) if len(shape) > 1 else 0.1, shape)
        params[key] = numbers.astype("float32")
    return mod, params


def digest(mod: IRModule) -> str:
    """A hash of @main: operators, attributes and constants. It leaves out casts, which TVM has around products in fixed point."""
    number: dict[int, int] = {}
    lines = []
    for node in post_order(mod["main"].body):
        if isinstance(node, Op):
            continue
        operands = [number[id(child)] for child in children(node) if id(child) in number]
        if isinstance(node, Call) and getattr(node.op, "name", "") == "cast":
            number[id(node)] = operands[-1]
            continue
        number[id(node)] = len(lines)
        if isinstance(node, Constant):
            data = np.ascontiguousarray(node.data)
            shown: Any = data.dtype.name, data.shape, hashlib.sha256(data.tobytes()).hexdigest()
        elif isinstance(node, Call):
            schema = node.op.schema if node.attrs is not None else ()
            shown = node.op.name, [(key, str(getattr(node.attrs, key))) for key in sorted(schema)]
        else:
            shown = type(node).__name__, node.name_hint if isinstance(node, Var) else getattr(node, "index", None)
        lines.append(repr((shown, operands)))
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32]


def record(oracle: str) -> None:
    from relaylang.transform import InferType
    from tests.conformance.passes.graph import module

    old = json.loads(FILE.read_text())
    rows: dict[str, dict[str, str]] = {name: {} for name in NETWORKS}
    worker = [oracle, str(HERE / "tvm_worker.py"), str(SHARED / "oracle")]
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(worker, stdin=PIPE, stdout=PIPE, text=True) as tvm:
        assert tvm.stdin is not None and tvm.stdout is not None
        for name, config in CASES:
            if config in old.get(name, {}):
                rows[name][config] = old[name][config]
                continue
            if not Path(folder, f"{name}.npz").exists():
                mod, params = network(name)
                Path(folder, f"{name}.relay").write_text(mod.astext())
                np.savez(Path(folder, f"{name}.npz"), **params)
            print(json.dumps([f"{folder}/{name}", CONFIGS[config]]), file=tvm.stdin, flush=True)
            rows[name][config] = digest(InferType()(module(json.loads(tvm.stdout.readline()))))
            FILE.write_text(json.dumps(rows, indent=1) + "\n")
            print(name, config, flush=True)
        tvm.stdin.close()
    FILE.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    if "RELAY_ORACLE" not in os.environ:
        sys.exit("RELAY_ORACLE names no Python with TVM")
    record(os.environ["RELAY_ORACLE"])
