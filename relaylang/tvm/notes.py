"""What to use in place of missing parts of TVM: the one table behind messages and `docs/tvm.md`."""

from __future__ import annotations

_SCHEDULES = "`relay tune` searches the schedules of the CPU backend, and `relay compile --tuning` takes its log; docs/tuning.md"
_TASKS = "the search has tasks, tuners, runners and logs: docs/tuning.md"
_KERNEL = "a kernel of your own is a text: `relay.op.register_compute(NAME, TEXT)`; docs/kernels.md has the language"
_SESSIONS = "sessions are in this process (`rpc.LocalSession`); compile for other machines with -mtriple, and run the file there"
_ONNX = "export the network as ONNX; `relay.frontend.from_onnx` reads it"
_TFLITE = "export the network as TFLite or ONNX; `relay.frontend.from_tflite` reads it"
_VITIS = 'AMD\'s package pyxir finds what its DPU takes; `register_pattern_table("vitis_ai")` adds a table of yours'

#: TVM's importers that are not here, each with the module that it is in.
_IMPORTERS = {
    "caffe2": ("caffe2", _ONNX),
    "oneflow": ("oneflow", _ONNX),
}

#: A name of TVM, or a module for everything below it -> what to use instead.
NOTES: dict[str, str] = {
    **{f"tvm.relay.frontend.from_{name}": instead for name, (_, instead) in _IMPORTERS.items()},
    **{f"tvm.relay.frontend.{module}": instead for module, instead in _IMPORTERS.values()},
    "tvm.relay.frontend": "the functions `from_...` of `relay.frontend` read networks; TVM's inner classes are not here",
    "tvm.relay.frontend.pytorch.PyTorchOpConverter": "`from_pytorch(..., custom_convert_map=...)` adds conversions",
    "tvm.relay.frontend.pytorch.convert_params": "`from_pytorch` returns the module and its parameters",
    "tvm.relay.op.OpStrategy": _KERNEL,
    "tvm.relay.op.register_shape_func": "types and shapes of an operator of yours come from `Op.add_type_rel`",
    "tvm.relay.op.register_gradient": "`relay.transform.gradient` knows the gradients of the language's operators alone",
    "tvm.relay.op.register_external_compiler": '`tvm.register_func("relay.ext.NAME", f)` adds a code generator',
    "tvm.relay.op.register_mixed_precision_conversion": "`relay.transform.ToMixedPrecision` has the lists of operators",
    "tvm.relay.op.vm.shape_func": 'the VM computes shapes itself: `relay.create_executor("vm", mod)`',
    "tvm.relay.op": "operators are calls such as `relay.nn.conv2d`; TVM's kernels and shape functions are not here",
    "tvm.relay.qnn.strategy": _SCHEDULES,
    "tvm.relay.qnn": "`relay.qnn.op` has the operators, `relay.qnn.transform` the passes",
    "tvm.relay.quantize": "`relay.quantize.quantize` does the whole, under `relay.quantize.qconfig`",
    "tvm.relay.transform": "`relay opt --list` prints the passes; `relay.transform` has them",
    "tvm.relay.analysis": "`relay.analysis` has the analyses of Relay programs",
    "tvm.relay.build_module": "`relay.build(mod, target, params)` compiles a Relay module",
    **dict.fromkeys(("tvm.relay.base", "tvm.relay.expr", "tvm.relay.function"), "`relay.Expr` and its kinds are the nodes"),
    "tvm.driver.tvmc": "of `tvmc` there are `compile`, `run` and `tune` with their options, and `load` in Python",
    "tvm.ir.register_intrin_lowering": "kernels are the backend's; `relay compile --emit c` shows their C",
    "tvm.target": "`tvm.target.Target` reads a target's text",
    "tvm.contrib.target.vitis_ai": _VITIS,
    "tvm.relay.op.contrib.vitis_ai": _VITIS,
    "tvm.relay.op.contrib.arm_compute_lib.preprocess_module": "`partition_for_arm_compute_lib` takes kernels as they lie",
    "tvm.contrib.pipeline_executor": "build each part by itself; `graph_executor.GraphModule` runs it",
    "tvm.contrib.torch": "`relay.frontend.from_pytorch` reads a program of PyTorch; TVM's modules for PyTorch are not here",
    "tvm.target.datatype": "element types are those of the language; `relay.frontend.ChangeDatatype` changes them",
    "tvm.contrib.random": "`relay.random` draws numbers in a program, numpy outside of one",
    "tvm.arith": "extents are numbers, `?` and names here; `relay.transform` has the passes over shapes",
    "tvm.auto_scheduler": _TASKS,
    **{f"tvm.auto_scheduler.{name}": _KERNEL for name in ("auto_schedule", "create_task", "register_workload", "make_workload_key")},
    "tvm.autotvm": _TASKS,
    **{f"tvm.autotvm.{name}": _KERNEL for name in ("get_config", "register_topi_compute", "register_topi_schedule", "template")},
    "tvm.autotvm.apply_fixed_config": "`-schedule FILE` of a target gives kernels their values; docs/cpu.md",
    "tvm.autotvm.measure.request_remote": _SESSIONS,
    "tvm.auto_scheduler.utils.request_remote": _SESSIONS,
    "tvm.contrib": "of `tvm.contrib` there are the executors, `relay_viz`, `download`, `utils`, `cc` and `ndk`",
    "tvm.dlight": "the CPU backend has its own schedules; `relay compile` applies them",
    "tvm.driver.build": "`relay.build(mod, target, params)` compiles a Relay module",
    "tvm.driver.lower": "`relay compile --emit c` shows the loops of a Relay module",
    "tvm.build": "`relay.build(mod, target, params)` compiles a Relay module",
    "tvm.lower": "`relay compile --emit c` shows the loops of a Relay module",
    "tvm.meta_schedule": "of `tvm.meta_schedule` there are `relay_integration`, `database`, `tune_tasks`, `Profiler`: docs/tuning.md",
    "tvm.micro": "of `tvm.micro` there is `export_model_library_format`; projects are your own",
    "tvm.relax": "`relay export net.relay -o net.py` writes Relax text for a newer TVM",
    "tvm.relay.backend": "`relay.build` and `relay.create_executor` compile; `tvm.register_func` takes code generators",
    "tvm.relay.backend.contrib": "`uma.UMABackend` adds an accelerator and its patterns, `tvm.register_func` its code",
    "tvm.relay.op.contrib": "`register_pattern_table` adds a table to those of docs/passes.md",
    "tvm.relay.collage": "`relay partition --target NAME` takes one accelerator at a time; `--report` compares them",
    "tvm.relay.op.strategy": _SCHEDULES,
    "tvm.relay.op.register_strategy": _KERNEL,
    "tvm.relay.vm": '`relay.create_executor("vm", mod)` runs programs with control flow',
    "tvm.runtime.vm": '`relay.create_executor("vm", mod)` runs programs with control flow',
    "tvm.rpc": _SESSIONS,
    "tvm.script": "TVMScript writes TIR; `relay.parse` reads Relay text; " + _KERNEL,
    "tvm.te": "of `tvm.te` there are names of extents (`te.var`, `te.size_var`); " + _KERNEL,
    "tvm.tir": "of `tvm.tir` there is the arithmetic of extents; " + _KERNEL,
    "tvm.topi": "of `tvm.topi` there are `testing` and `utils`; operators are calls: `relay.nn.conv2d`; " + _KERNEL,
    "tvm.utils.roofline": "`relay run --profile` reports each kernel beside the machine's peak",
}


#: How modules begin that hold TVM's C++ functions.
_INNER = ("_ffi_api", "_make", "_ffi_transform_api", "_ffi_instrument_api")
_C = "TVM's C++ functions are not here; the Python functions above them are"


#: Modules of TVM that are not here, and that scripts import at their top: such a module has no names.
ABSENT = frozenset("arith dlight relax relay.collage relay.op.strategy relay.vm rpc runtime.vm script script.tir".split())


def absent(name: str) -> bool:
    """Whether a module may be imported though it is not here."""
    return name.removeprefix("tvm.") in ABSENT


def note(name: str) -> str | None:
    """What to use instead of a name of TVM: its own row, or that of a module around it."""
    if any(part.startswith(_INNER) for part in name.split(".")):
        return _C
    name = name.replace(".op.op.", ".op.")
    while name:
        if name in NOTES:
            return NOTES[name]
        name = name.rpartition(".")[0]
    return None


def missing(name: str) -> str:
    """The message about a name of TVM that is not here."""
    instead = note(name)
    return f"relaylang has no {name}" + (f": {instead}" if instead else "; docs/tvm.md lists what there is")
