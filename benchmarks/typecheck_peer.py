"""TVM's side of typecheck.py: `NAME N PATH ROUNDS GIGABYTES`; prints the least seconds of InferType."""

import os
import resource
import sys
import time

import tvm
from tvm import relay

name, n, path, rounds, gigabytes = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
resource.setrlimit(resource.RLIMIT_AS, (gigabytes << 30, gigabytes << 30))
resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def synthetic():
    x = relay.var("x", shape=(10,))
    body = x
    if name == "chain":
        for _ in range(n):
            body = relay.add(body, x)
    elif name == "wide":
        body = relay.concatenate([relay.negative(x) for _ in range(n)], axis=0)
    else:
        names = [relay.Var(f"v{i}") for i in range(n)]
        body = names[-1]
        for i in range(n - 1, -1, -1):
            body = relay.Let(names[i], relay.add(names[i - 1] if i else x, x), body)
    return tvm.IRModule.from_expr(relay.Function([x], body))


module = synthetic() if n else relay.fromtext(open(path).read())
best = float("inf")
for _ in range(rounds):
    start = time.perf_counter()
    relay.transform.InferType()(module)
    best = min(best, time.perf_counter() - start)
print(best, flush=True)
os._exit(0)  # the graph is deep: let it go with the process
