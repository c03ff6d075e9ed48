"""Runs one pass over one program, for `benchmarks/passes.py`, in a Python with TVM 0.16.

Its arguments are:

- the folder of the module that makes `llvm` mean this machine
- the program: a file, `chain N` or `lets N`
- the pass, and the number of runs

It prints `ready` after type inference, then the least processor time in seconds.
"""

import gc
import sys
import time

sys.path.insert(0, sys.argv[1])
import tvm
import x86  # noqa: F401
from tvm import relay
from tvm.relay.dataflow_pattern import is_op, wildcard

sys.setrecursionlimit(1_000_000)
ENOUGH = 10.0  # seconds after which a pass is not run once more
TABLE = [
    ("toy.conv_relu", is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))),
    ("toy.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))),
    ("toy.add", is_op("add")(wildcard(), wildcard())),
]


def chain(n):
    x = relay.var("x", shape=(10,), dtype="float32")
    node = x
    for _ in range(n):
        node = relay.add(node, x)
    return tvm.IRModule.from_expr(relay.Function([x], node))


def lets(n):
    x = relay.var("x", shape=(10,), dtype="float32")
    names = [relay.var(f"v{i}") for i in range(n)]
    body = names[-1]
    for i in reversed(range(n)):
        body = relay.Let(names[i], relay.add(names[i - 1] if i else x, x), body)
    return tvm.IRModule.from_expr(relay.Function([x], body))


def made(program):
    kind, _, size = program.partition(" ")
    if kind in ("chain", "lets"):
        return {"chain": chain, "lets": lets}[kind](int(size))
    with open(program) as file:
        return relay.fromtext(file.read())


def main():
    program, name, times = sys.argv[2:]
    if name == "MergeComposite":
        run = relay.transform.MergeComposite(TABLE)
    else:
        bare, _, rest = name.partition("(")
        run = eval(f"relay.transform.{bare}({rest or ')'}", {"relay": relay})
    given = relay.transform.InferType()(made(program))
    print("ready", flush=True)
    best, spent = None, 0.0
    with tvm.transform.PassContext(opt_level=4):
        for i in range(int(times)):
            if i and spent > ENOUGH:
                break
            # This one changes what it is given.
            mod = relay.transform.InferType()(made(program)) if i and name == "ToANormalForm" else tvm.IRModule(given.functions)
            gc.collect()
            start = time.process_time()
            result = run(mod)
            seconds = time.process_time() - start
            spent += seconds
            best = seconds if best is None else min(best, seconds)
            del result
    print(best, flush=True)


main()
