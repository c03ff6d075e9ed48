"""An accelerator for UMA: its pattern, its option, a pass after partitioning, and the C that calls it.

Usage:

    relay tvm examples/legacy/uma.py
"""

import numpy as np
import tvm
import tvm.testing
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.backend.contrib.uma.api.utils import PassPhase
from tvm.relay.backend.contrib.uma.backend import UMABackend
from tvm.relay.dataflow_pattern import is_op, wildcard


@tvm.ir.transform.module_pass(opt_level=0)
class CountRegions:
    def transform_module(self, mod, ctx):
        print("regions:", sum("Compiler" in func.attrs for func in mod.functions.values() if func.attrs))
        return mod


class VanillaBackend(UMABackend):
    def __init__(self):
        super().__init__()
        self._register_target_attr("dimension", default=8)
        self._register_pattern("scaled_sum", is_op("add")(is_op("multiply")(wildcard(), wildcard()), wildcard()))
        self._register_relay_pass(PassPhase.POST_PARTITIONING_0, CountRegions())
        self._register_codegen(fmt="c", includes=lambda: "#include <stdint.h>")

    @property
    def target_name(self):
        return "vanilla_example"


@tvm.register_func("relay.ext.vanilla_example")
def generate(func):
    size = int(np.prod([int(d) for d in func.ret_type.shape]))
    return f"""#include <stdint.h>
int32_t {func.attrs["global_symbol"]}(const float* a, const float* b, const float* c, float* out) {{
  for (int i = 0; i < {size}; ++i) out[i] = a[i] * b[i] + c[i];
  return 0;
}}
"""


backend = VanillaBackend()
backend.register()
print("dimension:", tvm.target.Target("vanilla_example -dimension=16").attrs["dimension"])

a, b, c = (relay.var(name, shape=(2, 8)) for name in "abc")
mod = tvm.IRModule.from_expr(relay.Function([a, b, c], relay.tanh(a * b + c)))
mod = backend.partition(mod)

host = tvm.target.Target("c")
lib = relay.build(mod, target=[host, tvm.target.Target("vanilla_example", host=host)])
module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
given = {name: np.random.default_rng(number).standard_normal((2, 8)).astype("float32") for number, name in enumerate("abc")}
module.run(**given)
tvm.testing.assert_allclose(module.get_output(0).numpy(), np.tanh(given["a"] * given["b"] + given["c"]), rtol=1e-5, atol=1e-6)
print("the accelerator's sum is right")
