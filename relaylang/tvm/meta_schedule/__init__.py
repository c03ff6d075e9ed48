"""`tvm.meta_schedule`: the search of schedules (`relaylang.tune`) under the names that scripts for TVM know."""

from relaylang.tvm.meta_schedule.database import Database
from relaylang.tvm.meta_schedule.profiler import Profiler
from relaylang.tvm.meta_schedule.relay_integration import ExtractedTask, is_meta_schedule_enabled, tune_tasks

__all__ = ["Database", "ExtractedTask", "Profiler", "is_meta_schedule_enabled", "tune_tasks"]
