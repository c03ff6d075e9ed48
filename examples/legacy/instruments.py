"""Instruments that count operators around passes, are replaced in the middle, and are left in order.

Usage:

    relay tvm examples/legacy/instruments.py
"""

import tvm
from tvm import relay
from tvm.ir.instrument import PassInstrument, pass_instrument
from tvm.relay import testing


@pass_instrument
class Growth:
    """The number of calls that each pass adds or removes."""

    def __init__(self):
        self.before, self.found = [], {}

    def count(self, mod):
        return sum(int(times) for times in relay.analysis.list_op_freqs(mod).values())

    def enter_pass_ctx(self):
        print("watching")

    def exit_pass_ctx(self):
        print("watched", ", ".join(f"{name} {more:+}" for name, more in self.found.items() if more))

    def run_before_pass(self, mod, info):
        self.before.append(self.count(mod))

    def run_after_pass(self, mod, info):
        self.found[info.name] = self.count(mod) - self.before.pop()


class NoFusion(PassInstrument):
    def should_run(self, mod, info):
        return info.name != "FuseOps"


data = relay.var("data", shape=(1, 4, 8, 8))
net = testing.layers.batch_norm_infer(testing.layers.conv2d(data, channels=4, kernel_size=(3, 3), name="conv"), name="norm")
net = relay.nn.dropout(relay.nn.relu(net), rate=0.5)
mod, params = testing.create_workload(relay.Function(relay.analysis.free_vars(net), net))
mod["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
passes = tvm.transform.Sequential([relay.transform.SimplifyInference(), relay.transform.FoldConstant(), relay.transform.FuseOps()])

with tvm.transform.PassContext(opt_level=3, instruments=[Growth()]):
    fused = passes(mod)
print("fused:", "Primitive=1" in fused.astext(show_meta_data=False))

ctx = tvm.transform.PassContext(opt_level=3, instruments=[Growth()])
with ctx:
    ctx.override_instruments([NoFusion()])
    print("without fusion:", "Primitive=1" not in passes(mod).astext(show_meta_data=False))


@pass_instrument
class Failing:
    def enter_pass_ctx(self):
        raise RuntimeError("no")


try:
    with tvm.transform.PassContext(instruments=[Failing()]):
        print("never here")
except RuntimeError:
    print("a failing instrument ends the block, and leaves none:", tvm.transform.PassContext.current().instruments in (None, [], ()))
