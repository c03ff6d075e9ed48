"""Says what TVM makes of programs: JSON {name: [text, how]} in, {name: text} out.

Runs under the oracle's Python; its argument is the folder of `x86.py`. `how` is [most channels in a block] for
AlterOpLayout with the same function as ours, or a dictionary for ConvertLayout. What TVM refuses begins with `!`.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, sys.argv[1])
import tvm
import x86  # noqa: F401
from blocks import in_blocks
from tvm import relay
from tvm.relay import transform
from tvm.relay.testing.temp_op_attr import TempOpAttr


def run(text, how):
    mod = relay.fromtext(text)
    first = [transform.InferType(), transform.SimplifyInference(), transform.CanonicalizeOps()]
    with tvm.transform.PassContext(opt_level=3):
        mod = tvm.transform.Sequential(first)(mod)
        if isinstance(how, list):
            with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", in_blocks(relay, how[0])):
                return tvm.transform.Sequential([transform.AlterOpLayout(), transform.InferType()])(mod).astext()
        return tvm.transform.Sequential([transform.ConvertLayout(how), transform.InferType()])(mod).astext()


out = {}
for name, (text, how) in json.load(sys.stdin).items():
    try:
        out[name] = run(text, how)
    except Exception as problem:
        out[name] = "!" + str(problem)[:200]
print(json.dumps(out))
