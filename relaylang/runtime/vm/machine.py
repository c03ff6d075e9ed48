"""The machine of a program: its loaded library, and runs of its functions.

Runs on several threads each have a machine of their own. A machine that gave a closure away keeps what the closure holds.
"""

from __future__ import annotations

import ctypes
import json
import threading
import weakref
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, Span, error
from relaylang.interpreter.errors import call_stack, evaluation_error
from relaylang.interpreter.evaluate import as_value
from relaylang.interpreter.memory import size_text
from relaylang.interpreter.time_limit import OutOfTime, time_limit
from relaylang.interpreter.values import FunctionValue, Value, short_text
from relaylang.runtime import interrupts
from relaylang.runtime.external import Calls
from relaylang.runtime.failures import STATUS, fault_title
from relaylang.runtime.library import address_in, connect, function_in, open_library, table_in, unload
from relaylang.runtime.machine import default_limit, resident_memory, usable_cpus
from relaylang.runtime.tensors import aligned, at_lines
from relaylang.runtime.vm.host import STRETCH, Heat, Host
from relaylang.runtime.vm.instructions import DTYPE_NUMBERS, DTYPES, FAULTS
from relaylang.runtime.vm.program import UNKNOWN, VERSION, Packed, VMProgram
from relaylang.runtime.vm.values import TENSOR, Unknown, Words, bits_scalar, decode, encode

#: Python functions of external code, None for what the library holds.
Functions = Sequence[Callable[..., Any] | None]
_P = ctypes.c_void_p
_I, _L = ctypes.c_int, ctypes.c_int64
#: What the library shows, with the types of results and arguments.
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "new": (_P, _P, _L),
    "free": (None, _P),
    "forget": (None, _P),
    "state": (None, _P, _P),
    "limit": (None, _P, _L),
    "frame": (None, _P, _L, _P),
    "build": (_I, _P, _P, _L, _P, _P, _L),
    "constants": (_I, _P),
    "stop": (None, _P),
    "begin": (_I, _P, _I, _L),
    "register": (None, _P, _I, _P),
    "resume": (None, _P, _P, _L, _I),
    "describe": (_I, _P, _P),
    "let_go": (None, _P, _L),
    "measure": (None, _P, _P),
    "run": (_I, _P, _L, _I),
}
_RUN = ctypes.CFUNCTYPE(None, _P, _P, _P, _P, _P, _I)
_DONE, _PAUSE, _HOST = range(3)
#: Calls, and stretches of kernels' work, between two looks at signals.
_FUEL = 1 << 20
_FIELDS = (
    "fault",
    "function",
    "pc",
    "depth",
    "used",
    "peak",
    "asked",
    "externals",
    "calls",
    "kernels",
    "made",
    "handles",
    "live",
    "base",
    "packed",
)
#: The place of each.
_PLACES = {name: place for place, name in enumerate(_FIELDS)}


class _Function(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("entry", "params", "captured", "generals", "registers")]


class _Spec(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int32), ("rank", ctypes.c_int32), ("bytes", _L), ("first", _L)]


class _Packed(ctypes.Structure):
    _fields_ = [
        ("region", ctypes.c_int32),
        ("inputs", ctypes.c_int32),
        ("outputs", ctypes.c_int32),
        ("spec", ctypes.c_int32),
        ("takes", ctypes.c_int32),
        ("other", ctypes.c_int32),
        ("fixed", _P),
        ("params", _P),
        ("arena", _L),
        ("sizes", _L),
        ("fails", _L),
    ]


class _Region(ctypes.Structure):
    _fields_ = [("prepare", _RUN), ("run", _RUN), ("shapes", _P), ("interface", ctypes.c_char_p)]


class _Program(ctypes.Structure):
    _fields_ = [
        ("code", _P),
        ("functions", _P),
        ("packed", _P),
        ("specs", _P),
        ("dims", _P),
        ("arity", _P),
        ("heat", _P),
        *[(name, ctypes.c_int32) for name in ("count", "most", "operands", "words")],
    ]


class VMLibrary:
    """A loaded library: the machine's functions and the kernels. Raises `RelayError` (R0641) if it cannot be loaded."""

    def __init__(self, content: bytes, program: VMProgram, calls: Functions) -> None:
        self.content = content
        opened = open_library(content)
        try:
            about = json.loads(ctypes.string_at(address_in(opened, "relay_vm_about")))
            if about != {"version": VERSION, "instructions": [i.name for i in program.table]}:
                raise ValueError("its machine has other instructions than its program")
            for name, (result, *arguments) in _FUNCTIONS.items():
                kind = ctypes.CFUNCTYPE(result, *arguments)
                setattr(self, name, function_in(opened, f"relay_vm_{name}", kind))
            count = ctypes.c_int32.in_dll(opened, "relay_region_count").value
            if count != len({p.region for p in program.packed if p.region >= 0}):
                raise ValueError("it has not the kernels of its program")
            self.regions = (_Region * count).in_dll(opened, "relay_regions")
            if any(self.regions[p.region].interface.decode() != p.interface for p in program.packed if p.region >= 0):
                raise ValueError("its kernels are not those that the program describes")
            close = function_in(opened, "relay_close", ctypes.CFUNCTYPE(None))
            table = table_in(opened)
            self._asks = interrupts.watch(opened)
        except (AttributeError, ValueError) as e:
            unload(opened, None)
            raise RelayError(error("R0641", f"the compiled program cannot be loaded: {e}")) from None
        weakref.finalize(self, unload, opened, close).atexit = False
        self.calls = Calls(program.externals, calls)
        if program.externals:
            connect(table, self.calls)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class Loaded:
    """A program with its library, ready to run: the tables that machines read, and the prepared weights of its kernels."""

    def __init__(self, program: VMProgram, library: bytes, calls: Functions = ()) -> None:
        self.program = program
        self.library = VMLibrary(library, program, calls)
        self._kept: list[Any] = []
        self.code = np.ascontiguousarray(program.code, np.int32)
        functions = (_Function * max(1, len(program.functions)))(
            *[_Function(f.entry, f.params, f.captured, f.generals, f.registers) for f in program.functions]
        )
        specs: list[_Spec] = []
        dims: list[int] = []

        def spec(dtype: str, shape: Sequence[int]) -> None:
            size = np.dtype(dtype).itemsize * int(np.prod([d for d in shape if d != UNKNOWN], dtype=np.int64))
            specs.append(_Spec(DTYPE_NUMBERS[dtype], len(shape), size, len(dims)))
            dims.extend(shape)

        for dtype, shape in program.specs:
            spec(dtype, shape)
        packed = []
        first = {item.other: item for item in program.packed}
        prepared: dict[int, tuple[int, int]] = {}
        for n, item in enumerate(program.packed):
            owner = first.get(n, item) if item.shares else item
            if id(owner) not in prepared:
                prepared[id(owner)] = self._prepared(owner)
            fixed, params = prepared[id(owner)]
            numbers = item.arena, item.sizes, item.fails
            takes = len(specs) + len(item.outputs)
            packed.append(_Packed(item.region, item.inputs, item.count, len(specs), takes, item.other, fixed, params, *numbers))
            for dtype, shape in (*item.outputs, *item.takes):
                spec(dtype, shape)
        tables: list[Any] = [
            functions,
            (_Packed * max(1, len(packed)))(*packed),
            (_Spec * max(1, len(specs)))(*specs),
            (_L * max(1, len(dims)))(*dims),
        ]
        self.heat = (Heat * max(1, len(packed)))(*[Heat(STRETCH, None) for _ in packed])
        most = max([f.registers for f in program.functions] + [p.count for p in program.packed], default=0)
        most = max([most, *[f.params for f in program.functions]])
        operands = max([max(p.inputs + 1, p.count) for p in program.packed], default=0)
        words = max([p.words for p in program.packed], default=0)
        places = [ctypes.addressof(t) for t in tables]
        self.record = _Program(
            self.code.ctypes.data, *places, None, ctypes.addressof(self.heat), len(program.functions), most, operands, words
        )
        self._kept += tables
        self.constructors = {(c.belong_to.name_hint, c.name_hint): n for n, c in enumerate(program.constructors)}
        #: threads of a run without a caller's count (asked once: the answer takes longer than a small program)
        self.cpus = usable_cpus()
        self._idle: list[Machine] = []
        self._lock = threading.Lock()
        self.hosts: dict[int, Host] = {}
        self.fallback = True

    def _prepared(self, item: Packed) -> tuple[int, int]:
        """The addresses of a kernel's prepared memory and of its weights."""
        if item.region < 0:
            return 0, 0
        # Kernels read vectors of some weights where they lie.
        arrays = at_lines([np.asarray(self.program.weights[n], order="C") for n in item.weights])
        params = (_P * max(1, len(arrays)))(*[a.ctypes.data for a in arrays])
        fixed, arena = aligned(item.fixed), aligned(item.arena)
        self._kept += [arrays, params, fixed]
        self.library.regions[item.region].prepare(None, None, params, fixed.ctypes.data, arena.ctypes.data, 1)
        return fixed.ctypes.data, ctypes.addressof(params)

    def machine(self) -> Machine:
        """A machine that runs nothing."""
        with self._lock:
            if self._idle:
                return self._idle.pop()
        return Machine(self)

    def give_back(self, machine: Machine) -> None:
        with self._lock:
            self._idle.append(machine)


class VMClosure(FunctionValue):
    """A function value of a run; calling it runs it."""

    def __init__(self, machine: Machine, handle: int, number: int) -> None:
        self.machine = machine
        self.handle = handle
        self.function = machine.loaded.program.functions[number]
        self.name = self.function.name
        self._end = weakref.finalize(self, machine.dropped.append, handle)
        self._end.atexit = False

    def __repr__(self) -> str:
        return f"<function {self.name}>"

    def __call__(self, *args: Any) -> Value:
        types = self.function.types if len(self.function.types) == len(args) else (None,) * len(args)
        return self.machine.call(-1, [as_value(a, ty) for a, ty in zip(args, types)], handle=self.handle)


class Machine:
    """The memory of a run, and its stack."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        library = self.library = loaded.library
        handle = library.new(ctypes.byref(loaded.record), 1 << 62)
        if not handle:
            raise MemoryError
        self.place = _P(handle)
        # The library stays loaded until then.
        self._end = weakref.finalize(self, lambda held, place: held.free(place), library, self.place)
        self._end.atexit = False
        self.dropped: list[int] = []
        self.spent: np.ndarray | None = None
        self._counters = (_L * len(_FIELDS))()
        self._keep: list[Any] = []
        self._foreign: list[Any] = []
        self._constants()

    def _constants(self) -> None:
        words = encode(list(self.loaded.program.constants), {}, _no_handle, self._keep)
        self._build(words)
        self.library.constants(self.place)
        self._fixed = self.state()["live"]
        self._fixed_externals = self.state()["externals"]

    def _build(self, words: Words) -> bool:
        heads, fields, sizes = (part.ctypes.data for part in words[:3])
        return self.library.build(self.place, heads, len(words.heads) // 3, fields, sizes, words.values) == 0

    def _result(self) -> Value:
        """The value that the machine holds as its result. Raises `MemoryError`."""
        out = (_L * 6)()
        if self.library.describe(self.place, ctypes.addressof(out)):
            raise MemoryError
        heads, fields, sizes = (_words(address, count) for address, count in zip(out[::2], out[1::2]))
        return decode(heads, fields, sizes, self.loaded.program.constructors, lambda handle, number: VMClosure(self, handle, number))

    def state(self) -> dict[str, int]:
        """Counters: memory in use and its peak (bytes), calls, kernels, values made, and what a fault says."""
        self.library.state(self.place, ctypes.addressof(self._counters))
        return dict(zip(_FIELDS, self._counters))

    def counters(self, *names: str) -> list[int]:
        """Some of the counters of `state`."""
        self.library.state(self.place, ctypes.addressof(self._counters))
        return [self._counters[_PLACES[name]] for name in names]

    def measure(self, spent: np.ndarray | None) -> None:
        """Add up the kernels' times in an array (see `VMProfile`) from now on; None ends that."""
        self.spent = spent
        self.library.measure(self.place, None if spent is None else spent.ctypes.data)

    def _handle(self, value: Any) -> int:
        if isinstance(value, VMClosure) and value.machine is self:
            return value.handle
        raise Unknown(f"{type(value).__name__}")

    def call(
        self,
        number: int,
        args: list[Value],
        *,
        handle: int = -1,
        threads: int | None = None,
        limit: float | None = None,
        seconds: float | None = None,
    ) -> Value:
        """Run a function with its arguments. Raises `RelayError` where the program fails."""
        try:
            with time_limit(seconds):
                return self._call(number, args, handle, threads, limit, _FUEL if seconds is None else _FUEL >> 5)
        except OutOfTime as late:  # before the first instruction, or after the last one
            functions = self.loaded.program.functions
            raise evaluation_error(late.code, late.message, functions[number].span if number >= 0 else None, None, []) from None

    def _call(self, number: int, args: list[Value], handle: int, threads: int | None, limit: float | None, fuel: int) -> Value:
        library, place = self.library, self.place
        while self.dropped:
            library.let_go(place, self.dropped.pop())
        keep: list[Any] = []
        try:
            words = encode(args, self.loaded.constructors, self._handle, keep)
        except (Unknown, KeyError) as e:
            raise RelayError(error("R0402", f"the program cannot take this value: {e}")) from None
        self._allowed = int(min(limit if limit is not None else default_limit(), 1 << 61))
        (used,) = self.counters("used")
        library.limit(place, self._allowed + used)
        fault = 0 if self._build(words) else FAULTS.index("memory")
        fault = fault or library.begin(place, number, handle)
        if fault:
            library.stop(place)
            raise self._failure(fault, None, None, 0)
        try:
            self._run(self.loaded.cpus if threads is None else threads, fuel, limit)
            return self._result()
        except OutOfTime as late:
            state = self.state()
            if state["function"] < 0:
                raise
            span = self.loaded.program.place(state["pc"])
            frames = self._frames(state["function"], span, state["depth"])
            raise evaluation_error(late.code, late.message, span, None, frames) from None
        except MemoryError:
            raise evaluation_error("R0408", "there is not enough memory for the result", None, None, []) from None
        finally:
            library.stop(place)
            self._tidy(keep)

    def _tidy(self, keep: list[Any]) -> None:
        """Let go of what a run has left: cycles of references, and the caller's arrays."""
        handles, live, externals = self.counters("handles", "live", "externals")
        if handles == 0 and live > self._fixed:
            self.library.forget(self.place)
            self._keep = []
            self._foreign = []
            self._constants()
        elif externals > self._fixed_externals:
            self._foreign.append(keep)

    def _run(self, threads: int, fuel: int, limit: float | None) -> None:
        library, place = self.library, self.place
        base = 0 if limit is None else resident_memory() or 0
        while True:
            status = library.run(place, fuel, threads)
            interrupts.check()
            if status == _DONE:
                return
            if status == _HOST:
                self._host()
            elif status != _PAUSE:
                state = self.state()
                raise self._failure(state["fault"], state["function"], state["pc"], state["depth"])
            # The machine counts its values; what the interpreter counts is what the process takes.
            if limit is not None and (resident_memory() or 0) - base > limit:
                state = self.state()
                raise self._failure(FAULTS.index("memory"), state["function"], state["pc"], state["depth"])

    # --- the host's part ---

    def _host(self) -> None:
        """Compute the kernel that waits, with the interpreter, and go on after it; or let one of the library go on."""
        program = self.loaded.program
        state = self.state()
        pc = state["pc"]
        operands = program.operands(pc)
        number = operands[0][1]
        item = program.packed[number]
        inputs = [self._register(word) for kind, word in operands if kind == "r"]
        results = np.array([word for kind, word in operands if kind == "d"], np.int32)
        host = self.loaded.hosts.get(number)
        if host is None:
            assert item.module is not None
            constants = [program.weights[n] for n in item.constants]
            host = self.loaded.hosts[number] = Host(item.module, constants, program.target)
        if item.region >= 0 and not state["asked"]:  # no more than a look
            return host.stretch(self.loaded.heat[state["packed"]], tuple([x.shape for x in inputs]))
        begin = perf_counter_ns()
        try:
            # One without results has looked at a call's extents, and gives the error.
            allowed = self.loaded.fallback or not item.count
            outputs = host.call(inputs, program.packed[state["packed"]].reason(state["asked"], [x.shape for x in inputs]), allowed)
        except RelayError as failed:
            first = failed.diagnostics[0]
            place = first.span or program.place(pc)
            frames = self._frames(state["function"], place, state["depth"])
            raise evaluation_error(first.code, first.title, place, None, frames) from None
        if self.spent is not None:
            self.spent[number] += (1, 1, perf_counter_ns() - begin)
        keep: list[Any] = []
        words = encode(list(outputs), {}, self._handle, keep, copied=True)
        if not self._build(words):
            now = self.state()
            raise self._failure(FAULTS.index("memory"), now["function"], pc, now["depth"])
        behind = pc + 1 + len(operands)
        self.library.resume(self.place, results.ctypes.data, len(results), behind)

    def _register(self, number: int) -> np.ndarray:
        """A register's tensor; its elements are the machine's."""
        out = np.zeros(5 + 64, np.int64)
        self.library.register(self.place, number, out.ctypes.data)
        if out[0] != TENSOR:
            return bits_scalar(int(out[1]), DTYPES[int(out[0])])
        dtype, size, address, rank = out[1:5].tolist()
        kind = np.dtype(DTYPES[dtype])
        memory = (ctypes.c_char * size).from_address(address) if size else b""
        return np.frombuffer(memory, kind).reshape(out[5 : 5 + rank].tolist())

    # --- failures ---

    def _frames(self, function: int, place: Span | None, depth: int) -> list[str]:
        program = self.loaded.program

        class Callers(Sequence[Any]):
            def __len__(self) -> int:
                return depth

            def __getitem__(_, at: Any) -> Any:
                number = -at - 1 if at < 0 else depth - 1 - at
                out = np.zeros(2, np.int64)
                self.library.frame(self.place, number, out.ctypes.data)
                return program.functions[int(out[0])].name, program.place(int(out[1]) - 1)

        return call_stack((program.functions[function].name, place), Callers())

    def _failure(self, fault: int, function: int | None, pc: int | None, depth: int) -> RelayError:
        program = self.loaded.program
        name = FAULTS[fault]
        if function is None or pc is None:
            if name == "memory":
                return evaluation_error("R0408", self._memory(), None, None, [])
            return RelayError(error("R0401" if name == "arity" else "R0407", "the function cannot be called with these arguments"))
        span = program.place(pc)
        frames = self._frames(function, span, depth)
        if name == "kernel":
            state = self.state()
            word, *numbers = (_L * (STATUS // 8)).from_address(state["asked"])
            number, said = ctypes.c_int32(word & 0xFFFFFFFF).value, word >> 32
            if number < 0:
                operator, kind, place = program.packed[state["packed"]].sites[said]
                title = fault_title(operator, kind, numbers)
                return evaluation_error("R0404", title, place or span, None, self._frames(function, place or span, depth))
            try:
                self.library.calls.check(number, said)
            except RelayError as failed:
                first = failed.diagnostics[0]
                diagnosed = evaluation_error(first.code, first.title, span, None, frames, first.notes)
                diagnosed.__cause__ = failed.__cause__
                return diagnosed
        operator = program.table[int(program.code[pc])].name.rpartition(".")[0]
        if name == "match":
            return evaluation_error("R0405", f"no clause of this match fits {short_text(self._result())}", span, None, frames)
        if name == "shift":
            bits = self._register(program.operands(pc)[-1][1])
            return evaluation_error("R0404", f"{operator}: a shift by {int(bits)} bits", span, None, frames)
        code, title = {
            "division": ("R0404", f"{operator}: division by zero"),
            "power": ("R0404", f"{operator}: a negative power of 0"),
            "memory": ("R0408", self._memory()),
            "empty": ("R0411", "ref_read: the reference has no value yet"),
            "callee": ("R0407", "this is no function to call"),
            "arity": ("R0401", "the function takes another number of arguments"),
            "extents": ("R0403", "an operand has other extents than its type says"),
        }.get(name, ("R0404", "the value is of another kind than the program's types say"))
        state, notes = self.state(), []
        if name == "memory" and state["fault"] == fault:
            notes = [f"asked for: {size_text(state['asked'])}", f"in use: {size_text(state['used'])}"]
        return evaluation_error(code, title, span, None, frames, notes)

    def _memory(self) -> str:
        return f"the program needs more than the {size_text(self._allowed)} that it may use"


def _words(address: int, count: int) -> np.ndarray:
    """Words in the machine's memory."""
    return np.frombuffer(memoryview((_L * count).from_address(address)), np.int64) if count else np.empty(0, np.int64)


def _no_handle(value: Any) -> int:
    raise Unknown(type(value).__name__)
