"""Where the modules of TVM are here: the one table behind `import tvm`.

The rule of places comes first: `tvm.X.Y` is `relaylang.tvm.X.Y`, where there is such a module. `tvm.relay.X` is
`relaylang.tvm.relay.X`, for what only scripts need, and then `relaylang.X`, the public face. `HOMES` has the rest, and
`SPELLINGS` single names that differ.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable
from functools import cache

_IR = ("relaylang.tvm.ir", "relaylang.tvm.ir.json")
_PARTS_OF_IR = ("adt", "attrs", "base", "expr", "function", "module", "op", "tensor_type", "type")
_PARTS_OF_TRANSFORM = ("fake_quantization_to_integer", "infer_layout_utils", "mixed_precision", "transform")
_NODES = ("relaylang.tvm.relay.nodes",)
_QUANTIZE = ("relaylang.tvm.relay.quantize", "relaylang.quantize")
_OPERATORS = ("relaylang.tvm.relay.op", "relaylang.tvm.op")
#: The families of operators that TVM has in several modules.
_PARTS_OF_OP = {
    "annotation": ("annotation", "_make"),
    "image": ("image", "_make"),
    "memory": ("memory", "_make"),
    "nn": ("nn", "_make"),
    "random": ("kernel", "_make"),
    "vision": ("multibox", "nms", "rcnn", "yolo", "_make"),
    "vm": ("vm",),
}

_UMA = ("", ".uma", ".uma.backend", ".uma.api", *(f".uma.api.{name}" for name in ("codegen", "lower", "partitioner", "utils")))

_INSTRUMENTS = (
    "relaylang.passes.context:PassInstrument",
    "relaylang.passes.instruments:PassTimingInstrument PrintAfterAll PrintBeforeAll pass_instrument",
)
#: Below it stand modules that import this table.
_TVM = "relaylang.tvm"
_STAND_INS = "relaylang.tvm.stand_ins"
_GRAPH_EXECUTOR = "relaylang.tvm.contrib.graph_executor"
_WEIGHTS = "relaylang.tvm.relay.weights"
_AUTOTVM = "relaylang.tvm.autotvm"
_AUTO_SCHEDULER = "relaylang.tvm.auto_scheduler"
_TUNERS = ("tuner", "ga_tuner", "index_based_tuner", "model_based_tuner", "xgboost_tuner")
_RECORDS = "RecordReader RecordToFile distill_record_file load_best_record load_records save_records"

#: Module of TVM -> the modules whose names it has, the first one first: all of them, or those in "module:NAME NAME". These
#: rows replace the rule of places.
HOMES: dict[str, tuple[str, ...]] = {
    "tvm": ("relaylang.tvm.base", "relaylang.tvm.runtime"),
    "tvm._ffi": ("relaylang.tvm.registry",),
    "tvm._ffi.base": ("relaylang.tvm.error", "relaylang.tvm.registry", "relaylang.tvm.ffi"),
    "tvm._ffi.registry": ("relaylang.tvm.registry", "relaylang.tvm.ffi"),
    **dict.fromkeys(("tvm._ffi.libinfo", "tvm._ffi.runtime_ctypes"), ("relaylang.tvm.ffi",)),
    "tvm.ir": _IR,
    "tvm.container": ("relaylang.tvm.ir.container",),
    # TVM has the parts of its IR in modules of their own; here they stand together.
    **dict.fromkeys([f"tvm.ir.{name}" for name in _PARTS_OF_IR], _IR),
    "tvm.ir.transform": ("relaylang.tvm.transform",),
    "tvm.parser": ("relaylang.tvm.relay.parser",),
    "tvm.runtime.module": ("relaylang.tvm.runtime.module", "relaylang.tvm.runtime.program"),
    "tvm.runtime.name_transforms": ("relaylang.tvm.relay.backend.name_transforms",),
    **dict.fromkeys(("tvm.instrument", "tvm.ir.instrument"), _INSTRUMENTS),
    "tvm.relay": ("relaylang.tvm.relay", "relaylang"),
    **dict.fromkeys([f"tvm.relay.{name}" for name in ("adt", "base", "expr", "function")], _NODES),
    "tvm.relay.ty": (*_NODES, "relaylang.tvm.relay.ty"),
    "tvm.relay.analysis.analysis": ("relaylang.tvm.relay.analysis", "relaylang.tvm.analysis"),
    "tvm.relay.param_dict": ("relaylang.tvm.runtime.params",),
    "tvm.relay.backend.vm": ("relaylang.tvm.vm",),
    "tvm.relay.backend.runtime": ("relaylang.tvm.relay.backend.executor:Runtime",),
    "tvm.relay.backend.utils": ("relaylang.tvm.relay.backend.name_transforms:mangle_module_name",),
    "tvm.relay.dataflow_pattern": ("relaylang.patterns",),
    "tvm.relay.testing.temp_op_attr": ("relaylang.tvm.temp_op_attr",),
    **dict.fromkeys([f"tvm.relay.backend.contrib{name}" for name in _UMA], ("relaylang.tvm.relay.backend.uma",)),
    "tvm.relay.frontend.common": ("relaylang.tvm.relay.inference",),
    "tvm.relay.frontend.change_datatype": ("relaylang.tvm.change_datatype",),
    "tvm.relay.frontend.caffe": ("relaylang.tvm.caffe_graph",),
    "tvm.relay.frontend.coreml": ("relaylang.tvm.coreml_graph",),
    "tvm.relay.frontend.darknet": ("relaylang.tvm.darknet_graph", "relaylang.tvm.relay.testing.darknet"),
    "tvm.relay.frontend.keras": ("relaylang.tvm.keras_graph",),
    "tvm.relay.frontend.mxnet": ("relaylang.tvm.frontend",),
    "tvm.relay.frontend.onnx": ("relaylang.tvm.frontend", "relaylang.tvm.onnx_graph"),
    "tvm.relay.frontend.paddlepaddle": ("relaylang.tvm.paddle_graph",),
    "tvm.relay.frontend.pytorch": ("relaylang.tvm.frontend", "relaylang.tvm.torch_graph", "relaylang.tvm.prelude"),
    "tvm.relay.frontend.pytorch_utils": ("relaylang.tvm.torch_rewrites",),
    "tvm.relay.frontend.pytorch._analysis": ("relaylang.tvm.analysis",),
    **dict.fromkeys([f"tvm.relay.frontend.{name}" for name in ("tensorflow", "tensorflow2")], ("relaylang.tvm.frontend",)),
    "tvm.relay.frontend.tensorflow_parser": ("relaylang.tvm.tensorflow_parser",),
    "tvm.relay.frontend.tflite": ("relaylang.tvm.frontend",),
    "tvm.relay.op.op": _OPERATORS,
    "tvm.relay.op.reg": _OPERATORS,
    "tvm.relay.op._make": _OPERATORS,
    **dict.fromkeys([f"tvm.relay.op.{name}" for name in ("algorithm", "reduce", "tensor", "transform")], _OPERATORS),
    "tvm.relay.op.dyn": ("relaylang.tvm.op",),
    **{f"tvm.relay.op.{family}.{part}": (f"relaylang.tvm.op.{family}",) for family, parts in _PARTS_OF_OP.items() for part in parts},
    "tvm.relay.op.contrib.register": ("relaylang.tvm.op.contrib",),
    "tvm.relay.qnn.op.canonicalizations": ("relaylang.tvm.qnn.canonicalizations",),
    "tvm.relay.qnn.op.legalizations": ("relaylang.tvm.qnn.canonicalizations:hardswish_func",),
    "tvm.relay.qnn.op.qnn": ("relaylang.tvm.qnn.op",),
    **dict.fromkeys([f"tvm.relay.quantize{name}" for name in ("", "._annotate", "._calibrate")], _QUANTIZE),
    **dict.fromkeys([f"tvm.relay.transform.{name}" for name in _PARTS_OF_TRANSFORM], ("relaylang.tvm.transform",)),
    "tvm.relay.type_functor": ("relaylang.tvm.relay.type_functor",),
    "tvm.relay.scope_builder": _NODES,
    **{f"tvm.relay.{name}": (f"relaylang.tvm.op.{name}",) for name in ("annotation", "image", "nn", "random", "vision")},
    "tvm.runtime": ("relaylang.tvm.runtime", "relaylang.tvm.ir.container"),
    "tvm.runtime.container": ("relaylang.tvm.ir.container",),
    "tvm.runtime.executor": (f"{_GRAPH_EXECUTOR}:AotModule",),
    "tvm.autotvm.task": tuple(f"{_AUTOTVM}.{name}" for name in ("task", "dispatcher", "space")),
    **dict.fromkeys([f"tvm.autotvm.task.{name}" for name in ("relay_integration", "task")], (f"{_AUTOTVM}.task",)),
    "tvm.autotvm.task.dispatcher": (f"{_AUTOTVM}.dispatcher",),
    "tvm.autotvm.task.space": (f"{_AUTOTVM}.space",),
    "tvm.autotvm.tuner.callback": (f"{_AUTOTVM}.callback",),
    **dict.fromkeys([f"tvm.autotvm.tuner.{name}" for name in _TUNERS], (f"{_AUTOTVM}.tuner",)),
    **dict.fromkeys([f"tvm.autotvm.measure.{name}" for name in ("measure", "measure_methods")], (f"{_AUTOTVM}.measure",)),
    "tvm.autotvm.utils": (f"{_AUTOTVM}.callback:format_si_prefix",),
    "tvm.auto_scheduler.relay_integration": (f"{_AUTO_SCHEDULER}.search_task:extract_tasks is_auto_scheduler_enabled",),
    "tvm.auto_scheduler.compute_dag": (f"{_AUTO_SCHEDULER}.search_task:ComputeDAG",),
    "tvm.auto_scheduler.measure_record": (f"{_AUTO_SCHEDULER}.measure:{_RECORDS}",),
    **dict.fromkeys([f"tvm.auto_scheduler.cost_model{name}" for name in ("", ".xgb_model")], (f"{_AUTO_SCHEDULER}.search_policy",)),
    "tvm.meta_schedule.database.json_database": ("relaylang.tvm.meta_schedule.database:JSONDatabase",),
    "tvm.meta_schedule.tune": ("relaylang.tvm.meta_schedule.relay_integration:tune_tasks",),
    "tvm.contrib.nvcc": (f"{_STAND_INS}:have_fp16",),
    "tvm.support": (f"{_STAND_INS}:libinfo",),
    "tvm.target.codegen": (f"{_STAND_INS}:llvm_version_major",),
    "tvm.testing.utils": (f"{_TVM}.testing", f"{_STAND_INS}:install_request_hook"),
    "tvm.topi.cuda.conv3d_winograd": ("relaylang.tvm.topi.utils:_infer_tile_size",),
    "tvm.micro.model_library_format": ("relaylang.tvm.micro",),
    "tvm.te": ("relaylang.tvm.tir",),
    "tvm.tir.expr": ("relaylang.tvm.tir",),
    "tvm.tir.op": ("relaylang.tvm.tir",),
    "tvm.target.target": ("relaylang.tvm.target",),
    "tvm.runtime.object_generic": ("relaylang.tvm.runtime.object",),
    # Modules of TVM 0.6 and 0.7.
    "tvm.contrib.graph_runtime": (f"{_GRAPH_EXECUTOR}:GraphModule create get_device",),
    "tvm.contrib.graph_runtime.graph_executor": (_GRAPH_EXECUTOR,),
    "tvm.contrib.util": ("relaylang.tvm.contrib.utils",),
    "tvm.contrib.debugger.debug_runtime": ("relaylang.tvm.contrib.debugger.debug_executor",),
    "tvm.relay.module": ("relaylang.tvm.relay.legacy",),
    "tvm.module": ("relaylang.tvm.runtime.module", "relaylang.tvm.runtime.program"),
    **dict.fromkeys(("tvm.nd", "tvm.ndarray"), ("relaylang.tvm.runtime.ndarray",)),
    "tvm.relay.profiler_vm": ("relaylang.tvm.runtime.profiler_vm",),
}

#: Single names that TVM spelled otherwise in an earlier version -> "module:name" of ours.
SPELLINGS: dict[str, str] = {
    "tvm.context": "relaylang.tvm.runtime:device",
    "tvm.contrib.cudnn.exists": f"{_STAND_INS}:has_cudnn",
    "tvm.relay.backend.te_compiler.TECompiler": f"{_STAND_INS}:TECompiler",
    "tvm.relay.backend.te_compiler.get": f"{_STAND_INS}:te_compiler",
    "tvm.relay.data_dep_optimization.bsr_conv2d.convert": f"{_WEIGHTS}:sparse_conv2d",
    "tvm.relay.data_dep_optimization.bsr_conv2d.convert2": f"{_WEIGHTS}:sparse_conv2d",
    "tvm.relay.data_dep_optimization.bsr_dense.convert": f"{_WEIGHTS}:sparse_dense",
    "tvm.relay.data_dep_optimization.simplify_fc_transpose.convert": f"{_WEIGHTS}:simplify_fc_transpose",
    "tvm.relay.data_dep_optimization.utils._run_opt_pass": f"{_TVM}.relay.testing:run_opt_pass",
    "tvm.topi.nn.qnn.SQNN_CODE_TO_DTYPE": "relaylang.tvm.op.composed:DTYPES",
    "tvm.topi.nn.qnn.SQNN_DTYPE_TO_CODE": "relaylang.tvm.op.composed:CODES",
    "tvm.module.load": "relaylang.tvm.runtime.program:load_module",
    "tvm.relay.Module": "relaylang.ir:IRModule",
    "tvm.relay.module.Module": "relaylang.ir:IRModule",
    "tvm.relay.analysis.alpha_equal": "relaylang.tvm.ir.compare:structural_equal",
    "tvm.relay.image.resize": "relaylang.tvm.relay.legacy:resize",
    "tvm.relay.op.image.resize": "relaylang.tvm.relay.legacy:resize",
    "tvm.relay.transform.build_config": "relaylang.passes.context:PassContext",
    "tvm.relay.build_module.optimize": "relaylang.tvm.relay.optimising:optimize",
    "tvm.runtime.ADT": "relaylang.tvm.ir.container:ADT",
    "tvm.Object": "relaylang.tvm.runtime.object:Object",
    "tvm.runtime.Object": "relaylang.tvm.runtime.object:Object",
    "tvm.nd._LIB": "relaylang.tvm.ffi:_LIB",
    "tvm.nd.check_call": "relaylang.tvm.ffi:check_call",
    "tvm.target.generic_func": "relaylang.tvm.target.generic:generic_func",
    "tvm.relay.frontend.ChangeDatatype": "relaylang.tvm.change_datatype:ChangeDatatype",
    "tvm.relay.build_module.GraphExecutor": "relaylang.tvm.relay.executors:GraphExecutor",
    "tvm.relay.build_module.AotExecutor": "relaylang.tvm.relay.executors:AotExecutor",
    "tvm.relay.backend.vm.VMExecutor": "relaylang.tvm.relay.executors:VMExecutor",
    "tvm.relay.backend.interpreter.Interpreter": "relaylang.tvm.relay.executors:Interpreter",
    "tvm.relay.backend.interpreter.Executor": "relaylang.tvm.executor:Executor",
}

#: The accelerators' modules in `tvm.relay.op.contrib`; each has its function `partition_for_...`.
_CONTRIB = ("arm_compute_lib", "bnns", "cmsisnn", "cutlass", "dnnl", "ethosn", "ethosu", "tensorrt")
HOMES |= {f"tvm.relay.op.contrib.{name}": ("relaylang.tvm.op.contrib",) for name in _CONTRIB}


#: The modules of `tvm.relay` that are part of relaylang's public face.
FACE = (
    "analysis",
    "build_module",
    "expr_functor",
    "frontend",
    "op",
    "prelude",
    "qnn",
    "transform",
    "vm",
)


@cache
def exists(module: str) -> bool:
    """Whether there is a module of ours of this name."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


@cache
def homes(name: str) -> tuple[str, ...]:
    """The modules that hold the names of a module of TVM, the first one first."""
    rows = HOMES.get(name)
    if rows is None:
        rows = ("relaylang.tvm" + name.removeprefix("tvm"),)
        if name.startswith("tvm.relay."):
            rest = name.removeprefix("tvm.relay.")
            if rest.partition(".")[0] in FACE:
                rows += (f"relaylang.tvm.{rest}",)
    return tuple([home for home in rows if exists(home.partition(":")[0])])


def _packages(rows: Iterable[str]) -> set[str]:
    return {".".join(parts[:n]) for row in rows for parts in [row.split(".")] for n in range(1, len(parts))}


#: Modules of TVM that have rows below them.
_PARENTS = _packages([*HOMES, *SPELLINGS])


def present(name: str) -> bool:
    """Whether a module of TVM is here: it has a home, or names and modules below it have rows."""
    return name in _PARENTS or bool(homes(name))
