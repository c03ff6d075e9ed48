"""Run by `benchmarks/passes.py` in a Python that has TVM 0.16: passes over one program.

Arguments: the folder of the module that makes `llvm` mean this machine, the program's file, the passes (with `;` between),
how often to run each, and where to write the results' texts (with `.0`, `.1`, ... behind it) or `-`. Prints the least times
in seconds.
"""

import gc
import sys
import time

sys.path.insert(0, sys.argv[1])
import tvm
import x86  # noqa: F401
from tvm import relay
from tvm.relay.dataflow_pattern import is_op, wildcard

sys.setrecursionlimit(100_000)
TABLE = [
    ("toy.conv_relu", is_op("nn.relu")(is_op("nn.conv2d")(wildcard(), wildcard()))),
    ("toy.add_relu", is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))),
    ("toy.add", is_op("add")(wildcard(), wildcard())),
]


def main():
    _, _, file, texts, times, out = sys.argv
    mod = relay.fromtext(open(file).read())
    for number, text in enumerate(texts.split(";")):
        try:
            one(mod, file, text, times, f"{out}.{number}" if out != "-" else out)
        except Exception as problem:
            print(f"{text}: {type(problem).__name__}", file=sys.stderr)


def one(mod, file, text, times, out):
    name, _, rest = text.partition("(")
    if name == "MergeComposite":
        run = relay.transform.MergeComposite(TABLE)
    else:
        run = eval(f"relay.transform.{name}({rest if rest else ')'}", {"relay": relay})
    mod = relay.transform.InferType()(mod)
    best = None
    with tvm.transform.PassContext(opt_level=4):
        for _ in range(int(times)):
            given = tvm.IRModule(dict(mod.functions))
            if name == "ToANormalForm":
                given = relay.transform.InferType()(relay.fromtext(open(file).read()))
            gc.collect()
            start = time.perf_counter()
            made = run(given)
            seconds = time.perf_counter() - start
            best = seconds if best is None else min(best, seconds)
    print(best, flush=True)
    if out != "-":
        open(out, "w").write(made.astext())


main()
