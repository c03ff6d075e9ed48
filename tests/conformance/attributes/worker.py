"""Says how TVM writes attributes: JSON {operator: case} in (see cases.py), {operator: [section, text]} out.

Runs under the oracle's Python; its argument is the folder of `x86.py`. `section` is the metadata section that holds the
attributes under their type key. `text` is a function that calls the operator with them. A refusal of TVM begins with
`!`.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])
import tvm
import x86  # noqa: F401
from tvm import relay


def value(v):
    if isinstance(v, dict):
        [(what, data)] = v.items()
        if what == "device":
            text = {"device_type_int": str(data[0]), "memory_scope": "2", "target": "0", "virtual_device_id": str(data[1])}
            string = {"type_key": "runtime.String", **({"repr_str": data[2]} if data[2] else {})}
            nodes = [{"type_key": "VirtualDevice", "attrs": text}, string]
            nodes = [{"type_key": ""}, *nodes]
            return tvm.ir.load_json(json.dumps({"root": 1, "nodes": nodes, "b64ndarrays": []}))
        if what == "constant":
            return relay.const(data, "int64")
        return tvm.runtime.convert(data)
    return v


def attrs(case):
    made = {}
    for name, v in case["values"].items():
        kind = case["kinds"][name]
        v = value(v)
        if kind == "Floats":
            v = [tvm.tir.FloatImm("float32", x) for x in v]
        made[name] = v
    try:
        return tvm.ir.make_node(case["key"], **made)
    except Exception:
        made = {n: tvm.tir.FloatImm("float32", v) if isinstance(v, float) else v for n, v in made.items()}
        return tvm.ir.make_node(case["key"], **made)


out = {}
for name, case in json.load(sys.stdin).items():
    try:
        found = attrs(case)
        section = tvm.ir.save_json(tvm.runtime.convert({case["key"]: [found]}))
        if name == "call_lowered":  # its printer wants a tuple of arguments
            out[name] = [section, ""]
            continue
        params = [relay.var(f"a{i}") for i in range(case["args"])]
        call = relay.Call(relay.op.get(name), params, found)
        out[name] = [section, relay.Function(params, call).astext()]
    except Exception as problem:
        out[name] = "!" + str(problem).strip().splitlines()[-1][:300]
print(json.dumps(out))
