"""`tvm.auto_scheduler`: the search of schedules (`relaylang.tune`) under the names that scripts for TVM know."""

from relaylang.tvm.auto_scheduler.dispatcher import ApplyHistoryBest, ApplyHistoryBestOrSample, DispatchContext
from relaylang.tvm.auto_scheduler.measure import (
    LocalBuilder,
    LocalRPCMeasureContext,
    LocalRunner,
    MeasureInput,
    MeasureResult,
    RecordReader,
    RecordToFile,
    RPCRunner,
    load_best_record,
    load_records,
    save_records,
)
from relaylang.tvm.auto_scheduler.search_policy import PreloadMeasuredStates, RandomModel, SketchPolicy, XGBModel
from relaylang.tvm.auto_scheduler.search_task import (
    ComputeDAG,
    HardwareParams,
    SearchTask,
    TuningOptions,
    extract_tasks,
    is_auto_scheduler_enabled,
)
from relaylang.tvm.auto_scheduler.task_scheduler import TaskScheduler

__all__ = [
    "ApplyHistoryBest",
    "ApplyHistoryBestOrSample",
    "ComputeDAG",
    "DispatchContext",
    "HardwareParams",
    "LocalBuilder",
    "LocalRPCMeasureContext",
    "LocalRunner",
    "MeasureInput",
    "MeasureResult",
    "RPCRunner",
    "PreloadMeasuredStates",
    "RandomModel",
    "RecordReader",
    "RecordToFile",
    "SearchTask",
    "SketchPolicy",
    "TaskScheduler",
    "TuningOptions",
    "XGBModel",
    "extract_tasks",
    "is_auto_scheduler_enabled",
    "load_best_record",
    "load_records",
    "save_records",
]
