"""Makes one program, named by the argument, and times TVM on it, for `benchmarks/text.py`, in a Python with TVM 0.16.

It prints one JSON line with the program's text. For each line `FILE<tab>STEP` of the input it prints the seconds of a step.
The steps are `parse`, `check` (parse and check) and `print`.
"""

import gc
import json
import sys
import time

import numpy as np
import tvm
from tvm import relay
from tvm.relay import testing


def chain(count):
    x = relay.var("x", shape=(10,), dtype="float32")
    value = x
    for _ in range(count):
        value = relay.add(value, x)
    return relay.Function([x], value)


def lets(count):
    x = relay.var("x", shape=(10,), dtype="float32")
    names = [relay.var(f"v{i}") for i in range(count)]
    body = names[0]
    for name in reversed(names):
        body = relay.Let(name, relay.add(x, x), body)
    return relay.Function([x], body)


def constants():
    values = np.random.default_rng(0)
    arrays = [values.standard_normal((512, 512), dtype="float32") for _ in range(20)]
    x = relay.var("x", shape=(512, 512), dtype="float32")
    value = x
    for array in arrays:
        value = relay.add(value, relay.const(array))
    return relay.Function([x], value)


MADE = {
    "resnet18": lambda: testing.resnet.get_workload(num_layers=18)[0],
    "mobilenet": lambda: testing.mobilenet.get_workload()[0],
    "resnet50": lambda: testing.resnet.get_workload(num_layers=50)[0],
    "chain of 100 000 adds": lambda: tvm.IRModule.from_expr(chain(100_000)),
    "1 000 lets": lambda: tvm.IRModule.from_expr(lets(1_000)),
    "10 000 lets": lambda: tvm.IRModule.from_expr(lets(10_000)),
    "20 MB of constants": lambda: tvm.IRModule.from_expr(constants()),
}


def timed(call):
    gc.collect()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main():
    parse_expr = tvm.get_global_func("relay.parser.ParseExpr")
    mod = relay.transform.InferType()(MADE[sys.argv[1]]())
    print(json.dumps(mod.astext()), flush=True)
    for line in sys.stdin:
        path, what = line.rstrip("\n").split("\t")
        if what == "print":
            seconds = timed(mod.astext)
        else:
            text = open(path).read()
            if what == "check":
                seconds = timed(lambda text=text: relay.parse(text))
            else:
                # the same IR without the module, which is always checked
                alone = text.replace("def @main", "fn ", 1)
                seconds = timed(lambda alone=alone: parse_expr("bench", alone))
        print(json.dumps(seconds), flush=True)


main()
