"""Tasks of a search: the kernels of a program, each as data that a process elsewhere can lower, compile and run alone.

    tasks = extract_tasks(mod, "c", params)

A task has the kernel's function as Relay text, and the strides of its tensors. Its key is the kernel's key in schedules.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from relaylang.backends.cpu import build
from relaylang.backends.cpu.cc import Compiler, compiler_named
from relaylang.backends.cpu.costs import step_of
from relaylang.backends.cpu.isa import BY_NAME, Isa
from relaylang.backends.cpu.kernel import Kernel, Strides, nbytes
from relaylang.backends.cpu.lowering import lower_function
from relaylang.backends.cpu.memory import plan
from relaylang.backends.cpu.origin import calls_of
from relaylang.backends.cpu.pipeline import lower_module
from relaylang.backends.cpu.program import PackIn, Program, Run, Slot, View, walk
from relaylang.backends.cpu.schedule_space import Choice, Schedule, winograd_of
from relaylang.backends.registry import parse_target
from relaylang.backends.target import Target
from relaylang.diagnostics import RelayError, error
from relaylang.ir import Constant, Expr, Function, IRModule, TensorType, Var
from relaylang.kernels.nest import Buf
from relaylang.runtime.artifact import Artifact
from relaylang.runtime.peaks import processor
from relaylang.runtime.random import random_tensor
from relaylang.syntax import parse
from relaylang.typing import check

#: The seed of a task's inputs.
_SEED = 0


@dataclass(frozen=True)
class Task:
    """A kernel to tune.

    `text` is its function. `numbers` are the parameters that stand for a constant: the number of the parameter, the dtype
    and the bytes (base64). `given`, `wanted` and `done` are as `lower_function` takes them, and `fixed` the numbers of
    tensors that are known when a program is loaded. `isa` and `features` are those of the machine (`Isa`).

    The program runs the kernel `count` times. `weight` is its share of the program's time, where that was measured.
    `options` are those of the target c.
    """

    key: str
    operators: str
    text: str
    isa: str
    features: tuple[str, ...] = ()
    numbers: tuple[tuple[int, str, str], ...] = ()
    given: tuple[tuple[int, ...] | None, ...] = ()
    wanted: tuple[tuple[int, ...] | None, ...] = ()
    done: tuple[int, ...] = ()
    fixed: tuple[int, ...] = ()
    flops: int = 0
    count: int = 1
    weight: float = 0.0
    tunable: bool = True
    options: Mapping[str, Any] = field(default_factory=dict)

    def json(self) -> str:
        """The task as text, for another process."""
        return json.dumps(asdict(self))

    @cached_property
    def function(self) -> Function:
        """The kernel's function, checked."""
        mod = parse(self.text).module
        assert mod is not None
        check(mod)
        function = mod["main"]
        assert isinstance(function, Function)
        return function

    @cached_property
    def threads(self) -> int:
        """The threads of a measurement."""
        return int(self.options.get("num-threads") or 1)

    def lower(self, choice: Choice | None = None, lenient: bool = True) -> Kernel:
        """The kernel with a choice; values that fit no knob are left out. Raises `RelayError`."""
        function = self.function
        numbers: dict[Var, Constant] = {}
        for number, dtype, content in self.numbers:
            ty = function.params[number].checked_type
            assert isinstance(ty, TensorType)
            value = random_tensor(ty, np.random.default_rng(0))
            data = np.frombuffer(base64.b64decode(content), value.dtype).reshape(value.shape)
            numbers[function.params[number]] = Constant(data, dtype=dtype)
        schedule = Schedule({self.key: choice or {}}, winograd_of(self.options), lenient)
        isa = replace(BY_NAME[self.isa], features=frozenset(self.features))
        return lower_function(function, "KERNEL", isa, numbers, _strides(self.given), _strides(self.wanted), self.done, schedule)

    def program(self, kernel: Kernel) -> Program:
        """A program that runs the kernel alone."""
        return _alone(kernel, frozenset(self.fixed), self.function, self.operators)

    def compile(self, choice: Choice | None = None) -> Artifact:
        """The compiled kernel, with random values for its weights. Raises `RelayError`."""
        program = self.program(self.lower(choice))
        rng = np.random.default_rng(_SEED + 1)
        params = {name: random_tensor(ty, rng) for name, ty in program.params}
        return build(program, Compiler(self.options), self.options, params, "main")

    def inputs(self) -> dict[str, np.ndarray]:
        """Random values for the inputs of the compiled kernel."""
        rng = np.random.default_rng(_SEED)
        return {name: random_tensor(ty, rng) for name, ty, _ in self.program(self.lower()).inputs}


def task_of(text: str) -> Task:
    """The task of `Task.json`'s text."""
    row = json.loads(text)

    def strides(rows: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(None if r is None else tuple(r) for r in rows)

    row.update({name: strides(row[name]) for name in ("given", "wanted", "numbers")})
    row.update({name: tuple(row[name]) for name in ("done", "fixed", "features")})
    return Task(**row)


def _strides(rows: Strides) -> Strides:
    return [None if r is None else tuple(r) for r in rows]


@dataclass(frozen=True)
class Machine:
    """What a measurement depends on beside the kernel: the processor, the instruction set, the C compiler."""

    cpu: str
    isa: str
    compiler: str


def machine_of(options: Mapping[str, Any]) -> Machine:
    """The machine of this process and the compiler that a target's options choose. Raises `RelayError`."""
    compiler = Compiler(options)
    return Machine(processor(), compiler.isa.name, compiler_named(compiler, options))


def target_of(target: str | Target) -> Target:
    """The target of a search. Raises `RelayError` for other targets than c."""
    chosen = target if isinstance(target, Target) else parse_target(target)[0]
    if chosen.name != "c":
        raise RelayError(error("R0602", f"schedules are tuned for the target c, not for {chosen.name}"))
    return chosen


def extract_tasks(
    mod: IRModule | Expr,
    target: str | Target = "c",
    params: Mapping[str, Any] | Sequence[str] = (),
    entry: str = "main",
    ops: Sequence[str] | None = None,
) -> list[Task]:
    """The kernels that a run of a module has, each once, those with the most work first.

    `params` are the bound parameters (values or names). With `ops`, only the kernels that have one of these operators.
    Kernels without knobs come along with `tunable` False: they count for the program's time. Raises `RelayError`.
    """
    c_target = target_of(target)
    isa: Isa = Compiler(c_target.options).isa
    if not isinstance(mod, IRModule):
        mod = IRModule.from_expr(mod)
    names = list(params)
    program = lower_module(mod, entry, names, isa, Schedule({}, winograd_of(c_target.options)))
    fixed = {id(slot) for item in walk(program.prepare) for slot in item.outputs}
    runs: dict[str, Run] = {}
    counts: Counter[str] = Counter()
    for item in walk(program.run):
        if isinstance(item, Run) and item.kernel.source is not None:
            runs.setdefault(item.kernel.key, item)
            counts[item.kernel.key] += 1
    options = {key: value for key, value in c_target.options.items() if key not in ("schedule", "tuning", "keep-c", "profile")}
    tasks = []
    for key, run in runs.items():
        called = {call.op.name for call in calls_of(run.function)}  # type: ignore[attr-defined]
        if ops is not None and not called & set(ops):
            continue
        known = [n for n, view in enumerate(run.inputs) if view.slot.kind == "param" or id(view.slot) in fixed]
        task = _task(run, isa, known)
        tasks.append(replace(task, count=counts[key], options=options))
    return sorted(tasks, key=lambda task: -task.flops * task.count)


def _task(run: Run, isa: Isa, fixed: Sequence[int]) -> Task:
    source = run.kernel.source
    assert source is not None
    function = source.function
    numbers = tuple(
        (n, source.numbers[p].dtype, base64.b64encode(source.numbers[p].data.tobytes()).decode())
        for n, p in enumerate(function.params)
        if p in source.numbers
    )
    task = Task(
        run.kernel.key,
        run.text,
        IRModule.from_expr(function).astext(),
        isa.name,
        tuple(sorted(isa.features)),
        numbers,
        tuple(None if s is None else tuple(s) for s in source.given),
        tuple(None if s is None else tuple(s) for s in source.wanted),
        tuple(source.done),
        tuple(fixed),
        2 * step_of(run).macs,
    )
    tunable = bool(run.kernel.space.knobs)
    if tunable:
        try:
            # The text may lack what only the program has, as types of its own.
            tunable = task.lower().key == task.key
        except RelayError:
            tunable = False
    return replace(task, tunable=tunable)


def _extent(buf: Buf) -> int:
    """The elements from the first to the last one of a tensor with strides."""
    if 0 in buf.shape:
        return 0
    return 1 + sum((extent - 1) * stride for extent, stride in zip(buf.shape, buf.strides))


def _alone(kernel: Kernel, fixed: frozenset[int], function: Function, text: str) -> Program:
    """The program of one kernel. Its tensors are vectors, in which those of the kernel lie with their strides."""
    program = Program()
    places: dict[str, View] = {}
    for n, buf in enumerate(kernel.params):
        ty = TensorType((_extent(buf),), buf.dtype)
        if n in fixed:
            slot = Slot("param", len(program.params), ty.shape, buf.dtype)  # type: ignore[arg-type]
            program.params.append((buf.name, ty))
        else:
            slot = Slot("input", len(program.inputs), ty.shape, buf.dtype)  # type: ignore[arg-type]
            program.inputs.append((buf.name, ty, []))
        places[buf.name] = View(slot, buf.shape, 0, buf.strides)
    packs = []
    for number, pack in enumerate(kernel.packs):
        target = Slot("made", number, pack.target.shape, pack.target.dtype)
        sources = [places[buf.name] for buf in pack.sources]
        before = all(view.slot.kind == "param" for view in sources)
        (program.prepare if before else program.run).append(PackIn(kernel, pack, sources, target))
        packs.append(target)
    results = []
    for number, buf in enumerate(kernel.outs):
        slot = Slot("output", number, (_extent(buf),), buf.dtype)
        program.outputs.append(Slot("output", number, (_extent(buf),), buf.dtype))
        results.append(View(slot, buf.shape, 0, buf.strides))
    run = Run(kernel, list(places.values()), results, packs, text, function)
    if kernel.work:
        run.work = Slot("made", len(packs), (sum(nbytes(b) for b in kernel.work),), "uint8")
    program.run.append(run)
    program.structure = list(range(len(results)))
    plan(program)
    return program


__all__ = ["Machine", "Task", "extract_tasks", "machine_of", "target_of", "task_of"]
