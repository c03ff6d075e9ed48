"""A network of relay.testing whose schedules autotvm searches, as scripts for TVM 0.6 did, up to a library with the best ones.

Usage:

    relay tvm examples/legacy/tune.py [TRIALS]
"""

import sys

import numpy as np
import tvm
from tvm import autotvm, relay
from tvm.autotvm.tuner import GATuner, GridSearchTuner, RandomTuner
from tvm.contrib import graph_runtime
from tvm.contrib.util import tempdir
from tvm.relay import testing

trials = int(sys.argv[1]) if len(sys.argv) > 1 else 2
net, params = testing.mlp.get_workload(batch_size=4, num_classes=10, image_shape=(1, 8, 8))
assert isinstance(net, relay.Module)
folder = tempdir()
log, best = folder.relpath("mlp.log"), folder.relpath("mlp.best.log")

tasks = autotvm.task.extract_from_program(net["main"], target="llvm", params=params, ops=(relay.op.nn.dense,))
print(len(tasks), "tasks, each with knobs:", all(len(task.config_space) > 1 for task in tasks))
option = autotvm.measure_option(builder=autotvm.LocalBuilder(timeout=100), runner=autotvm.LocalRunner(number=1, repeat=1, timeout=100))
tuners = {"ga": GATuner, "random": RandomTuner, "grid": GridSearchTuner}
for number, (task, (name, make)) in enumerate(zip(tasks, tuners.items())):
    again = autotvm.task.create(task.name, task.args, task.target, task.target_host, "direct")
    tuner = make(again)
    count = min(trials, len(again.config_space))
    prefix = f"[Task {number + 1:2d}/{len(tasks):2d}] "
    progress = autotvm.callback.progress_bar(count, prefix=prefix)
    tuner.tune(n_trial=count, early_stopping=None, measure_option=option, callbacks=[progress, autotvm.callback.log_to_file(log)])
    print(name, "tuner:", tuner.best_config is not None and tuner.best_flops > 0)

autotvm.record.pick_best(log, best)
records = list(autotvm.record.load_from_file(log))
print("measurements without an error:", {result.error_no for _, result in records} == {0}, len(records) >= trials * len(tasks))

with autotvm.apply_history_best(best):
    with relay.build_config(opt_level=3):
        graph, lib, params = relay.build_module.build(net, target=tvm.target.create("llvm"), params=params)
lib.export_library(folder.relpath("net.tar"))

ctx = tvm.context("llvm", 0)
module = graph_runtime.create(graph, tvm.module.load(folder.relpath("net.tar")), ctx)
module.set_input("data", tvm.nd.array(np.ones((4, 1, 8, 8), "float32")), **params)
module.run()
scores = module.get_output(0).asnumpy()
print("each row sums to 1:", np.allclose(scores.sum(axis=1), 1))
