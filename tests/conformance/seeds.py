"""Right calls of each operator, from which the generator makes others.

seeds.txt has one a line: the operator, its arguments' types, its attributes as JSON. A type is written
`float32[1,?,3]`, a tuple `(float32[2],float32[3])`. The bounds of `arange`, which are expressions, are written as numbers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Seed = tuple[list[str], dict[str, Any]]

#: Operators that no text can call by types and attributes alone, and why.
LEFT_OUT = {
    "annotation.with_funcid": "its argument is a function, its attributes TVM's own",
    "call_lowered": "its callee is a lowered function of TVM's",
    "debug": "its attribute is a function of the host language",
    "device_copy": "its attributes are devices of TVM's",
    "memory.alloc_storage": "its attribute is a device of TVM's",
    "memory.alloc_tensor": "its storage is a type that only TVM's memory planner makes",
    "meta_schedule_layout_transform": "its attribute is an index map of TVM's schedules",
    "relay.op.annotation.simulated_quantize": "its attributes' class has the name of another operator's in TVM",
    "nn.contrib_conv2d_NCHWc": "TVM looks at no weight of it; here it is nn.conv2d of packed layouts",
    "nn.contrib_depthwise_conv2d_NCHWc": "TVM looks at no weight of it; here it is nn.conv2d of packed layouts",
    "vm.invoke_tvm_op": "its callee is a lowered function of TVM's",
}


def seeds() -> dict[str, list[Seed]]:
    """The calls of each operator."""
    out: dict[str, list[Seed]] = {}
    for line in (Path(__file__).parent / "seeds.txt").read_text().splitlines():
        at = line.index(" {") + 1
        op, *args = line[:at].split()
        out.setdefault(op, []).append((args, json.loads(line[at:])))
    return out
