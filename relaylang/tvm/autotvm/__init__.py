"""`tvm.autotvm`: the search of schedules (`relaylang.tune`) under the names that scripts for TVM know."""

from relaylang.tvm.autotvm.dispatcher import (
    ApplyGraphBest,
    ApplyHistoryBest,
    DispatchContext,
    FallbackContext,
)
from relaylang.tvm.autotvm.env import GLOBAL_SCOPE
from relaylang.tvm.autotvm.measure import (
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RPCRunner,
    measure_option,
)
from relaylang.tvm.autotvm.task import ConfigEntity, ConfigSpace, create

apply_graph_best = ApplyGraphBest
apply_history_best = ApplyHistoryBest

__all__ = [
    "GLOBAL_SCOPE",
    "ApplyHistoryBest",
    "ConfigEntity",
    "ConfigSpace",
    "DispatchContext",
    "FallbackContext",
    "LocalBuilder",
    "LocalRunner",
    "MeasureErrorNo",
    "MeasureInput",
    "MeasureResult",
    "RPCRunner",
    "apply_graph_best",
    "apply_history_best",
    "create",
    "measure_option",
]
