"""Says what TVM makes of programs: JSON {name: [text, how]} in, {name: text} out.

Runs under the oracle's Python; its argument is the folder of `x86.py`. `how` is [most channels in a block] for
AlterOpLayout with the same function as ours, or a dictionary for ConvertLayout. What TVM refuses begins with `!`.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])
import tvm
import x86  # noqa: F401
from tvm import relay
from tvm.relay import transform
from tvm.relay.testing.temp_op_attr import TempOpAttr


def largest(extent, most):
    return next(n for n in range(min(extent, most), 0, -1) if extent % n == 0)


def in_blocks(most):
    def alter(attrs, inputs, tinfos, out_type):
        if attrs["data_layout"] != "NCHW" or attrs["kernel_layout"] != "OIHW":
            return None
        channels, made, groups = int(tinfos[0].shape[1]), int(tinfos[1].shape[0]), int(attrs["groups"])
        new = {name: attrs[name] for name in attrs.keys()}
        out = largest(made, most)
        of = largest(channels, out)
        new.update(channels=made, data_layout=f"NCHW{of}c", kernel_layout=f"OIHW{of}i{out}o", out_layout=f"NCHW{out}c")
        if groups == 1:
            return relay.nn.contrib_conv2d_nchwc(*inputs, **new)
        if groups == channels == made:
            new.update(kernel_layout=f"OIHW1i{out}o")
            return relay.nn.contrib_depthwise_conv2d_nchwc(*inputs, **new)
        return None

    return alter


def run(text, how):
    mod = relay.fromtext(text)
    first = [transform.InferType(), transform.SimplifyInference(), transform.CanonicalizeOps()]
    with tvm.transform.PassContext(opt_level=3):
        mod = tvm.transform.Sequential(first)(mod)
        if isinstance(how, list):
            with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", in_blocks(how[0])):
                return tvm.transform.Sequential([transform.AlterOpLayout(), transform.InferType()])(mod).astext()
        return tvm.transform.Sequential([transform.ConvertLayout(how), transform.InferType()])(mod).astext()


out = {}
for name, (text, how) in json.load(sys.stdin).items():
    try:
        out[name] = run(text, how)
    except Exception as problem:
        out[name] = "!" + str(problem)[:200]
print(json.dumps(out))
