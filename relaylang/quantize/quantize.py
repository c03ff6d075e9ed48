"""The way from a float network to a quantised one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.diagnostics import RelayError, error
from relaylang.ir import IRModule
from relaylang.ir.binding import bind_params_by_name
from relaylang.ir.missing import refuse_missing
from relaylang.passes.context import PassContext
from relaylang.passes.infer_type import InferType
from relaylang.passes.manager import Pass, Sequential
from relaylang.passes.quantize.quantize_annotate import QuantizeAnnotate
from relaylang.passes.quantize.quantize_partition import QuantizePartition
from relaylang.passes.quantize.quantize_realize import QuantizeRealize
from relaylang.passes.simplify.canonicalize_ops import CanonicalizeOps
from relaylang.passes.simplify.fold_constant import FoldConstant
from relaylang.passes.simplify.fold_scale_axis import FoldScaleAxis
from relaylang.passes.simplify.simplify_inference import SimplifyInference
from relaylang.quantize.calibrate import Dataset, QuantizeCalibrate
from relaylang.quantize.conversions import partition_conversions
from relaylang.rules.quantization.common import QConfig, current_qconfig

_PARTITIONS = ("disabled", "enabled", "fully_integral")


def qconfig(**kwargs: Any) -> QConfig:
    """A configuration, to be used by `with`. The names are those of `QConfig`; others have no effect, as in TVM."""
    return QConfig(**{name: value for name, value in kwargs.items() if name in QConfig.__dataclass_fields__})


def partition() -> Pass:
    """The pass that cuts a network where its quantised parts end."""
    return QuantizePartition()


def annotate() -> Pass:
    """The pass that rounds a network's values where they will be whole numbers."""
    return QuantizeAnnotate()


def realize() -> Pass:
    """The pass that computes in whole numbers what a calibrated network rounds."""
    return QuantizeRealize()


def prerequisite_optimize(mod: IRModule, params: Mapping[str, Any] | None = None) -> IRModule:
    """A network with constants for parameters of these names, without normalisation, and with folded constants."""
    if params:
        mod = mod.with_functions({**mod.functions, mod.get_global_var("main"): bind_params_by_name(mod["main"], params)})
    return Sequential([SimplifyInference(), FoldConstant(), FoldScaleAxis(), CanonicalizeOps(), FoldConstant()])(mod)


def quantize(mod: IRModule, params: Mapping[str, Any] | None = None, dataset: Dataset | None = None) -> IRModule:
    """A float network's @main in whole numbers, as the configuration that is in force says.

    `params` has values of parameters by name, `dataset` batches of inputs by name. With `partition_conversions`, the module
    has functions `quantize_inputs`, `quantized_main` and `dequantize_outputs`, which @main calls. Raises `RelayError`
    (R0530) for configurations that mean nothing, missing data, and weights that are not constant.
    """
    config = current_qconfig()
    if config.partition_conversions not in _PARTITIONS:
        title = f"partition_conversions is one of {', '.join(_PARTITIONS)}, not {config.partition_conversions}"
        raise RelayError(error("R0530", title))
    steps: list[Pass] = [partition(), annotate(), QuantizeCalibrate(dataset), InferType()]
    if not config.do_simulation:
        steps.append(realize())
    mod = prerequisite_optimize(mod, params)
    refuse_missing(mod)
    with PassContext(opt_level=3):
        mod = Sequential([*steps, FoldConstant()])(mod)
    if config.partition_conversions == "disabled":
        return mod
    dtypes = {config.dtype_input, config.dtype_weight, config.dtype_activation}
    return partition_conversions(mod, dtypes, config.partition_conversions == "fully_integral")
