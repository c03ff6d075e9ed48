"""relay.quantize: a float network in 8-bit integers, with a global scale and with calibration on data.

Usage:

    relay tvm examples/legacy/calibrate.py
"""

import numpy as np
import tvm
from tvm import relay
from tvm.relay import quantize, testing

data = relay.var("data", shape=(1, 3, 12, 12))
conv = data
for number in (1, 2):
    conv = relay.nn.conv2d(conv, relay.var(f"conv{number}_weight"), channels=8, kernel_size=(3, 3), padding=(1, 1))
    conv = relay.nn.relu(conv)
scores = relay.nn.dense(relay.nn.batch_flatten(relay.nn.global_avg_pool2d(conv)), relay.var("fc_weight", shape=(4, 8)))
mod, params = testing.create_workload(relay.Function(relay.analysis.free_vars(scores), scores))
random = np.random.RandomState(0)


def images(count):
    for _ in range(count):
        yield {"data": random.uniform(-1, 1, (1, 3, 12, 12)).astype("float32")}


image = next(images(1))["data"]
wanted = relay.create_executor("debug", mod).evaluate()(image, **params).numpy()


def compared(quantized):
    found = relay.create_executor("graph", quantized, tvm.cpu(), "llvm").evaluate()(image).numpy()
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


with quantize.qconfig(calibrate_mode="global_scale", global_scale=4.0, skip_conv_layers=[0]):
    print("layers that stay as floats:", [int(n) for n in quantize.current_qconfig().skip_conv_layers])
    rough = quantize.quantize(mod, params)
print("int8 with a global scale:", "int8" in rough.astext(show_meta_data=False))

with quantize.qconfig(calibrate_mode="kl_divergence", weight_scale="max", skip_conv_layers=[]):
    fine = quantize.quantize(mod, params, dataset=list(images(4)))
print("int8 with calibration:", "int8" in fine.astext(show_meta_data=False))
print("errors below a quarter:", compared(rough) < 0.25, compared(fine) < 0.25)
