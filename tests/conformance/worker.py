"""Says what TVM says of calls: JSON lines [op, attributes' type key, arguments, attributes] in, a line of answer out.

Runs under the oracle's Python; its argument is the folder of `x86.py`. A call is looked at in a child process, since some
calls end TVM. The answer is `= TYPE`, `refused REASON`, or `crashed`.
"""

import json
import os
import re
import signal
import sys

sys.path.insert(0, sys.argv[1])
import tvm
import x86  # noqa: F401
from tvm import relay, tir

TENSOR = re.compile(r"(\w+)\[([^\]]*)\]")


def tensor(dtype, dims):
    shape = [tir.Any() if d == "?" else int(d) for d in dims.split(",")] if dims else []
    return relay.TensorType(shape, dtype)


def type_of(text):
    parts = [tensor(*found) for found in TENSOR.findall(text)]
    return relay.TupleType(parts) if text.startswith("(") else parts[0]


def dim(d):
    if isinstance(d, tir.Any):
        return "?"
    if isinstance(d, (tir.IntImm, int)):
        return str(int(d))
    return "?" if "T.Any()" in str(d) else "<" + " ".join(str(d).split()) + ">"  # `? + 1` is unknown, too


def shown(ty):
    if isinstance(ty, relay.TensorType):
        return f"{ty.dtype}[{','.join(map(dim, ty.shape))}]"
    if isinstance(ty, relay.TupleType):
        return f"({','.join(map(shown, ty.fields))})"
    return "_" if isinstance(ty, tvm.ir.IncompleteType) else type(ty).__name__


def value(given):
    if isinstance(given, bool) or given is None:
        return given
    if isinstance(given, list):
        return [value(v) for v in given]
    return given


def answer(op, key, args, attrs):
    variables = [relay.var(f"p{i}", type_of(a)) for i, a in enumerate(args)]
    given = {k: value(v) for k, v in attrs.items()}
    if op == "split" and isinstance(given.get("indices_or_sections"), int):
        given["indices_or_sections"] = tir.IntImm("int32", given["indices_or_sections"])
    if isinstance(given.get("score_threshold"), float) and op == "vision.get_valid_counts":
        given["score_threshold"] = tir.FloatImm("float32", given["score_threshold"])
    for name in ("start", "stop", "step") if op == "arange" else ():
        if name in given:
            number = given[name] if isinstance(given[name], (int, float)) else 1
            given[name] = relay.const(number, given.get("dtype", "float32"))
    made = tvm.ir.make_node(key, **given) if key else None
    if attrs and not key:
        raise ValueError("no attributes here")
    call = relay.Call(tvm.ir.Op.get(op), variables, made)
    module = tvm.IRModule.from_expr(relay.Function(variables, call))
    return "= " + shown(relay.transform.InferType()(module)["main"].ret_type)


def reason(problem):
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    told = [line for line in lines if "Check failed" in line or "error" in line.lower() or "AttributeError" in line]
    return "refused " + (told[-1] if told else lines[-1] if lines else "")[:160]


def serve(requests, out):
    for request in requests:
        try:
            said = answer(*json.loads(request))
        except Exception as problem:
            said = reason(problem)
        out.write(said.replace("\n", " ") + "\n")
        out.flush()


def main():
    requests = sys.stdin.read().splitlines()
    real = os.fdopen(os.dup(1), "w")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    done = 0
    while done < len(requests):
        inside, outside = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(inside)
            signal.alarm(240)
            serve(requests[done : done + 400], os.fdopen(outside, "w"))
            os._exit(0)
        os.close(outside)
        with os.fdopen(inside) as answers:
            lines = answers.read().splitlines()
        os.waitpid(child, 0)
        wanted = min(400, len(requests) - done)
        for line in lines:
            real.write(line + "\n")
        done += len(lines)
        if len(lines) < wanted:
            real.write("crashed\n")
            done += 1
        real.flush()


main()
