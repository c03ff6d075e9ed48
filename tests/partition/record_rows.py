"""Asks TVM which rows of its pattern tables take the programs of rows.py, and writes recorded_rows.json.

    ORACLE_PYTHON tests/partition/record_rows.py FOLDER_OF_X86_PY

Runs under the Python that has TVM 0.16. For the Ethos-N the patterns alone are asked: their checks want the driver.
"""

import importlib
import json
import sys
from pathlib import Path

sys.path.insert(0, sys.argv[1])
sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
import tvm
import x86  # noqa: F401
from rows import PROGRAMS
from tvm import relay
from tvm.relay.op.contrib.register import get_pattern_table

TARGETS = {
    "bnns": "bnns",
    "dnnl": "dnnl",
    "cmsis-nn": "cmsisnn",
    "arm_compute_lib": "arm_compute_lib",
    "ethos-n": "ethosn",
    "cutlass": "cutlass",
    "tensorrt": "tensorrt",
}


def program(text):
    mod = relay.transform.InferType()(tvm.relay.parse('#[version = "0.0.5"]\n' + text))
    values = {}
    for param in mod["main"].params:
        if param.name_hint.startswith("c"):
            ty = param.checked_type
            make = np.zeros if param.name_hint.startswith("cz") else np.ones
            values[param.name_hint] = tvm.nd.array(make([int(d) for d in ty.shape], ty.dtype))
    mod["main"] = relay.build_module.bind_params_by_name(mod["main"], values)
    return relay.transform.InferType()(mod)


def taken(mod, target):
    """What a target takes; None where TVM raises an exception."""
    module = importlib.import_module("tvm.relay.op.contrib." + TARGETS[target])
    table = get_pattern_table(target)
    if target == "ethos-n":
        table = [row[:2] for row in table]
    elif target == "tensorrt":  # this TVM lacks the kind of target, whose defaults these are
        module.get_tensorrt_version = lambda: (6, 0, 1)
        module.get_tensorrt_use_implicit_batch_mode = lambda: True
        module.get_tensorrt_use_fp16 = lambda: False
    elif target == "arm_compute_lib":
        table = module.arm_compute_lib_pattern_table([])
    try:
        done = relay.transform.AnnotateTarget(target)(relay.transform.MergeComposite(table)(mod))
    except Exception:
        return None
    found = set()

    def visit(node):
        if isinstance(node, relay.Function) and node.attrs and "Composite" in node.attrs:
            found.add(str(node.attrs["Composite"]))
        ended = isinstance(node, relay.Call) and isinstance(node.op, tvm.ir.Op) and node.op.name == "annotation.compiler_end"
        if ended and node.attrs.compiler == target:
            inner = node.args[0]
            if isinstance(inner, relay.Call) and isinstance(inner.op, tvm.ir.Op):
                found.add(inner.op.name)

    relay.analysis.post_order_visit(done["main"], visit)
    return sorted(found)


def main():
    lines = []
    for name, text in PROGRAMS.items():
        mod = program(text)
        rows = {target: taken(mod, target) for target in TARGETS}
        lines.append(f" {json.dumps(name)}: {json.dumps({t: r for t, r in rows.items() if r != []})}")
    (Path(__file__).parent / "recorded_rows.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
