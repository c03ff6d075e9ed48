"""Runs programs with control flow: a loop, and a recursion over a list.

Usage:

    relay tvm examples/legacy/vm.py
"""

import numpy as np
import tvm
from tvm import relay
from tvm.relay.loops import while_loop
from tvm.relay.prelude import Prelude
from tvm.relay.scope_builder import ScopeBuilder

# a loop: the power of a number
base = relay.var("base", shape=(), dtype="float32")
times = relay.var("times", shape=(), dtype="int32")
loop = while_loop(
    lambda i, value: relay.less(relay.const(0), i),
    [times, relay.const(1.0)],
    lambda i, value: (i - relay.const(1), value * base),
)
power = relay.Function([base, times], relay.TupleGetItem(loop(times, relay.const(1.0)), 1))
mod = tvm.IRModule.from_expr(power)
run = relay.create_executor("vm", mod=mod, device=tvm.cpu(), target="llvm").evaluate()
print("2 to the power of 10 is", run(np.array(2, "float32"), np.array(10, "int32")).numpy())

# a recursion: the sum of the numbers up to n
mod = tvm.IRModule()
total = relay.GlobalVar("total")
n = relay.var("n", shape=(), dtype="int32")
sb = ScopeBuilder()
with sb.if_scope(relay.equal(n, relay.const(0))):
    sb.ret(relay.const(0))
with sb.else_scope():
    sb.ret(relay.add(n, relay.Call(total, [relay.subtract(n, relay.const(1))])))
mod[total] = relay.Function([n], sb.get(), relay.scalar_type("int32"))
m = relay.var("m", shape=(), dtype="int32")
mod["main"] = relay.Function([m], total(m))
mod = relay.transform.InferType()(mod)
print("the sum up to 100 is", relay.create_executor("vm", mod=mod).evaluate()(np.array(100, "int32")).numpy())

# data: the length of a list of tensors
mod = tvm.IRModule()
p = Prelude(mod)
_, cons, nil = mod.get_type("List")
numbers = nil()
for number in range(5):
    numbers = cons(relay.const(float(number)), numbers)
mod["main"] = relay.Function([], p.sum(p.map(relay.Function([v := relay.var("v", shape=())], relay.cast(v, "int32")), numbers)))
print("the list's sum is", relay.create_executor("vm", mod=mod).evaluate()().numpy())
