"""What to use in place of missing parts of TVM: the one table behind messages and `docs/tvm.md`."""

from __future__ import annotations

#: A name of TVM, or a module for everything below it -> what to use instead.
NOTES: dict[str, str] = {
    "tvm.arith": "extents are numbers, `?` and names here; `relay.transform` has the passes over shapes",
    "tvm.auto_scheduler": "`relay compile --emit space` and `--schedule` set the schedules of the CPU backend",
    "tvm.autotvm": "`relay compile --emit space` and `--schedule` set the schedules of the CPU backend",
    "tvm.contrib": "of `tvm.contrib` there are the executors, `relay_viz`, `download`, `utils`, `cc` and `ndk`",
    "tvm.dlight": "the CPU backend has its own schedules; `relay compile` applies them",
    "tvm.driver.build": "`relay.build(mod, target, params)` compiles a Relay module",
    "tvm.driver.lower": "`relay compile --emit c` shows the loops of a Relay module",
    "tvm.build": "`relay.build(mod, target, params)` compiles a Relay module",
    "tvm.lower": "`relay compile --emit c` shows the loops of a Relay module",
    "tvm.meta_schedule": "`relay compile --emit space` and `--schedule` set the schedules of the CPU backend",
    "tvm.micro": "of `tvm.micro` there is `export_model_library_format`; projects are your own",
    "tvm.relax": "`relay export net.relay -o net.py` writes Relax text for a newer TVM",
    "tvm.relay.backend": "`relay.build` and `relay.create_executor` compile; `tvm.register_func` takes code generators",
    "tvm.relay.backend.contrib": "`uma.UMABackend` adds an accelerator and its patterns, `tvm.register_func` its code",
    "tvm.relay.op.contrib": "tables: arm_compute_lib, bnns, cmsisnn, cutlass, dnnl, ethosn, ethosu, tensorrt; `register_pattern_table` adds one",
    "tvm.relay.collage": "`relay partition --target NAME` takes one accelerator at a time; `--report` compares them",
    "tvm.relay.op.strategy": "`relay compile --emit space` and `--schedule` set the schedules of the CPU backend",
    "tvm.relay.op.register_compute": "a kernel of your own is an external function: `relay.ext.NAME` with `tvm.register_func`",
    "tvm.relay.op.register_schedule": "`relay compile --emit space` and `--schedule` set the schedules of the CPU backend",
    "tvm.relay.op.register_strategy": "`relay compile --emit space` and `--schedule` set the schedules of the CPU backend",
    "tvm.relay.op.register_injective_schedule": "the CPU backend has its own schedules",
    "tvm.relay.op.register_broadcast_schedule": "the CPU backend has its own schedules",
    "tvm.relay.frontend.from_caffe2": "export the network as ONNX; `relay.frontend.from_onnx` reads it",
    "tvm.relay.frontend.from_coreml": "export the network as ONNX; `relay.frontend.from_onnx` reads it",
    "tvm.relay.frontend.from_darknet": "export the network as ONNX; `relay.frontend.from_onnx` reads it",
    "tvm.relay.frontend.from_keras": "export the network as TFLite or ONNX; `relay.frontend.from_tflite` reads it",
    "tvm.relay.frontend.from_mxnet": "export the network as ONNX; `relay.frontend.from_onnx` reads it",
    "tvm.relay.frontend.from_oneflow": "export the network as ONNX; `relay.frontend.from_onnx` reads it",
    "tvm.relay.frontend.from_paddle": "export the network as ONNX; `relay.frontend.from_onnx` reads it",
    "tvm.relay.frontend.from_tensorflow": "export the network as TFLite or ONNX; `relay.frontend.from_tflite` reads it",
    "tvm.relay.vm": "`relay.create_executor(\"vm\", mod)` runs programs with control flow",
    "tvm.runtime.vm": "`relay.create_executor(\"vm\", mod)` runs programs with control flow",
    "tvm.rpc": "sessions are in this process (`rpc.LocalSession`); compile for other machines with -mtriple, and run the file there",
    "tvm.script": "TVMScript writes TIR; `relay.parse` reads Relay text",
    "tvm.te": "of `tvm.te` there are names of extents (`te.var`, `te.size_var`); kernels are the backend's",
    "tvm.tir": "of `tvm.tir` there is the arithmetic of extents; kernels are the backend's",
    "tvm.topi": "of `tvm.topi` there are `testing` and `utils`; operators are calls: `relay.nn.conv2d`",
    "tvm.utils.roofline": "`relay run --profile` reports each kernel beside the machine's peak",
}


#: Modules of TVM that are not here, and that scripts import at their top: such a module has no names.
ABSENT = frozenset(
    "arith dlight meta_schedule relax relay.collage relay.op.strategy "
    "relay.vm rpc runtime.vm script script.tir".split()
)


def absent(name: str) -> bool:
    """Whether a module may be imported though it is not here."""
    return name.removeprefix("tvm.") in ABSENT


def note(name: str) -> str | None:
    """What to use instead of a name of TVM: its own row, or that of a module around it."""
    while name:
        if name in NOTES:
            return NOTES[name]
        name = name.rpartition(".")[0]
    return None


def missing(name: str) -> str:
    """The message about a name of TVM that is not here."""
    instead = note(name)
    return f"relaylang has no {name}" + (f": {instead}" if instead else "; docs/tvm.md lists what there is")
