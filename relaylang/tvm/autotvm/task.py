"""Tasks: the kernels of a program that have knobs, as `tvm.autotvm.task` has them.

A task's name are the kernel's operators; its arguments are its tensors and its key in logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from relaylang.backends.cpu.tuning_log import Record
from relaylang.diagnostics import did_you_mean
from relaylang.ir import Call, Function, IRModule, TensorType, Var
from relaylang.ops import OPS
from relaylang.tune import task as kernels
from relaylang.tune.space import space_of
from relaylang.tvm.autotvm.measure import MeasureInput, MeasureResult, result_of
from relaylang.tvm.autotvm.space import ConfigEntity, ConfigSpace
from relaylang.tvm.op.namespace import builder
from relaylang.tvm.target import Target
from relaylang.tvm.tuning import kernels_of, refused, tensors_of


class Task:
    """A kernel to tune. `kernel` is the task of `relaylang.tune`; None where only a log names it."""

    def __init__(
        self, name: str, args: Sequence[Any], target: Any = None, target_host: Any = None, kernel: kernels.Task | None = None
    ) -> None:
        self.name, self.args, self.kwargs = name, tuple(args), dict[str, Any]()
        self.target, self.target_host = target, target_host
        self.kernel = kernel
        self.flop = kernel.flops if kernel is not None else 0
        self._space: ConfigSpace | None = None

    @property
    def workload(self) -> tuple[Any, ...]:
        """The name and the arguments: what the records of a log belong to."""
        return (self.name, *self.args)

    @property
    def key(self) -> str:
        """The kernel's key in logs."""
        return str(self.args[-1]) if self.args else ""

    @property
    def config_space(self) -> ConfigSpace:
        """The points of the task's knobs. Raises `RelayError` (R0645) where only a log names the task."""
        if self._space is None:
            self._space = ConfigSpace(space_of(self.tunable()))
        return self._space

    def tunable(self) -> kernels.Task:
        """The kernel. Raises `RelayError` (R0645) where only a log names the task."""
        if self.kernel is None:
            raise refused(f"the task {self.name} is from a log, and has no kernel", "task.extract_from_program finds kernels")
        return self.kernel

    def __repr__(self) -> str:
        return f"Task(func_name={self.name}, args={self.args}, kwargs={self.kwargs}, workload={self.workload})"


#: The tasks that this process has extracted, by their names and arguments.
TASK_TABLE: dict[tuple[Any, ...], Task] = {}


def _face(kernel: kernels.Task, target: Any, target_host: Any) -> Task:
    face = target if isinstance(target, Target) or target is None else Target(target)
    task = Task(kernel.operators.partition(":")[0], (*tensors_of(kernel), kernel.key), face, target_host, kernel)
    TASK_TABLE[task.workload] = task
    return task


def extract_from_program(
    mod: Any, params: Mapping[str, Any] | None, target: Any, target_host: Any = None, ops: Iterable[Any] | None = None
) -> list[Task]:
    """The kernels with knobs of a module or function, those with the most work first; with `ops`, those with one of these.

    Raises `RelayError`.
    """
    return [_face(kernel, target, target_host) for kernel in kernels_of(mod, params, target, ops)]


def extract_from_multiple_program(
    mods: Sequence[Any],
    params: Sequence[Mapping[str, Any] | None],
    target: Any,
    target_host: Any = None,
    ops: Iterable[Any] | None = None,
) -> list[Task]:
    """The kernels with knobs of several modules, each once. Raises `RelayError`."""
    chosen = None if ops is None else list(ops)
    tasks = [task for mod, values in zip(mods, params) for task in extract_from_program(mod, values, target, target_host, chosen)]
    return list({task.workload: task for task in tasks}.values())


def create(task_name: str, args: Sequence[Any], target: Any, target_host: Any = None, template_key: str | None = None) -> Task:
    """The task of a name and arguments, such as those of an extracted one.

    The name may be an operator's, too. Its arguments are then tensors, ("TENSOR", shape, dtype), and in the end a mapping of
    attributes. `template_key` has no effect. Raises `RelayError` (R0645).
    """
    known = next((task for workload, task in TASK_TABLE.items() if workload == (task_name, *args)), None)
    if known is not None and known.kernel is not None:
        return _face(known.kernel, target if target is not None else known.target, target_host)
    if task_name not in OPS:
        near = did_you_mean(task_name, OPS)
        notes = [f"did you mean {near}?"] if near else []
        notes.append("names are those of extracted tasks and of Relay's operators; templates are not here")
        raise refused(f"there is no task {task_name} with these arguments", *notes)
    attrs = dict(args[-1]) if args and isinstance(args[-1], Mapping) else {}
    tensors = args[:-1] if args and isinstance(args[-1], Mapping) else args
    variables = [_variable(n, tensor) for n, tensor in enumerate(tensors)]
    call = builder(task_name)(*variables, **attrs)
    mod = IRModule.from_expr(Function(variables, call if isinstance(call, Call) else call.astuple()))
    # The search asks only which parameters have values.
    tunable = kernels_of(mod, {v.name_hint: np.zeros(()) for v in variables[1:]}, target, [task_name])
    if not tunable:
        raise refused(f"the kernel of {task_name} has no knobs: there is nothing to search")
    return _face(tunable[0], target, target_host)


def _variable(number: int, tensor: Any) -> Var:
    """A variable for a tensor: ("TENSOR", shape, dtype), (shape, dtype), or something with a shape and a dtype."""
    row = tensor[1:] if isinstance(tensor, (tuple, list)) and tensor and tensor[0] == "TENSOR" else tensor
    try:
        shape, dtype = row if isinstance(row, (tuple, list)) else (row.shape, row.dtype)
        return Var(f"p{number}", TensorType(tuple(int(extent) for extent in shape), str(dtype)))
    except (AttributeError, TypeError, ValueError):
        raise refused(f"{tensor!r} is no tensor", 'write ("TENSOR", (16, 48), "float32")') from None


def args_to_workload(args: Sequence[Any], task_name: str | None = None) -> tuple[Any, ...]:
    """A name and arguments in one tuple."""
    return ((task_name,) if task_name is not None else ()) + tuple(args)


def pair_of(record: Record, task: Task | None = None, all_cost: float = 0.0) -> tuple[MeasureInput, MeasureResult]:
    """A record of a log as a candidate and its result. Without a task, one that has no kernel stands in."""
    if task is None:
        target = Target("llvm")
        task = Task(record.operators.partition(":")[0], (record.key,), target)
        task.flop = record.flops
        config = ConfigEntity(None, record.choice, cost=record.seconds)
    else:
        config = task.config_space.entity(task.config_space.points.point(record.choice))
        config.cost = record.seconds
    return MeasureInput(task.target, task, config), result_of(record, all_cost)


__all__ = [
    "TASK_TABLE",
    "ConfigEntity",
    "ConfigSpace",
    "Task",
    "args_to_workload",
    "create",
    "extract_from_multiple_program",
    "extract_from_program",
    "pair_of",
]
