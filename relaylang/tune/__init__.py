"""Search of schedules: the knobs of the CPU backend's kernels are measured, and a log keeps the results.

    from relaylang.backends.cpu.tuning_log import Log
    from relaylang.tune import LocalMeasurer, extract_tasks, search

    tasks = extract_tasks(mod, "c -num-threads=1", params)
    with LocalMeasurer() as measurer, Log("log.jsonl") as log:
        search(tasks, measurer, log, trials=200, tuner="ga")
    artifact = compile_module(mod, "c -num-threads=1", params, tuning="log.jsonl")

A `Task` is a kernel as data (`task`). A `SearchSpace` has its points (`space`). A tuner proposes points (`tuners`,
`cost_model`), and a measurer measures them, here (`measure`) or on a farm (`farm`). `search` gives the trials to the
tasks. `report` makes tables and pictures of a log.
"""

from relaylang.tune.cost_model import XGBTuner
from relaylang.tune.farm import FarmMeasurer
from relaylang.tune.measure import LocalMeasurer, Measurement, Measurer
from relaylang.tune.search import TUNERS, Outcome, State, best_choices, search, tuner_named
from relaylang.tune.space import Point, SearchSpace, space_of
from relaylang.tune.task import Task, extract_tasks
from relaylang.tune.tuners import GATuner, GridTuner, RandomTuner, Result, Tuner

__all__ = [
    "FarmMeasurer",
    "GATuner",
    "GridTuner",
    "LocalMeasurer",
    "Measurement",
    "Measurer",
    "Outcome",
    "Point",
    "RandomTuner",
    "Result",
    "SearchSpace",
    "State",
    "TUNERS",
    "Task",
    "Tuner",
    "XGBTuner",
    "best_choices",
    "extract_tasks",
    "search",
    "space_of",
    "tuner_named",
]
