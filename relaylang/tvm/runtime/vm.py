"""`tvm.runtime.vm`: compiled programs of the VM, and machines that run them, as scripts for TVM use them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.interpreter.values import ConstructorValue, Value
from relaylang.ir import parameter_names
from relaylang.runtime.benchmark import BenchmarkResult, timed
from relaylang.runtime.vm import executable as programs
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.tvm.arrays import from_python
from relaylang.tvm.runtime.module import Module
from relaylang.tvm.runtime.ndarray import Device, NDArray
from relaylang.tvm.runtime.params import load_param_dict_from_file, save_param_dict_to_file

#: Constants of so many elements are shown whole.
_SHOWN = 8


class Library(Module):
    """The code of a program. `export_library` writes the whole program, which `relaylang.runtime.load` reads."""

    def __init__(self, program: VMExecutable) -> None:
        executable = Executable(program)
        functions = executable.load_late_bound_consts, executable.load_late_bound_consts_from_map
        super().__init__({f.__name__: f for f in functions}, "VMExecutable")
        self.program = program

    def export_library(self, file_name: str | os.PathLike[str], **options: Any) -> None:
        """Write the program to a file. The options of TVM's linker have no effect. Raises `RelayError` (R0001)."""
        self.program.save(file_name)

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        self.program.save(file_name)


class Executable:
    """A compiled program of the VM."""

    def __init__(self, mod: VMExecutable | Library) -> None:
        self.program = mod.program if isinstance(mod, Library) else mod

    def save(self) -> tuple[bytearray, Library]:
        """The program as bytes, and its library. The bytes hold the library, too."""
        return bytearray(self.program.content()), self.lib

    @staticmethod
    def load_exec(bytecode: bytes | bytearray | str, lib: Any = None) -> Executable:
        """The program of `save`. `lib` is not needed. Raises `RelayError` (R0641) for other bytes."""
        if not isinstance(bytecode, (bytes, bytearray)):
            raise TypeError(f"a saved program is bytes or a bytearray, not a value of type {type(bytecode).__name__}")
        return Executable(programs.loads(bytes(bytecode)))

    @property
    def lib(self) -> Library:
        """The program's library."""
        return Library(self.program)

    mod = module = lib

    @property
    def bytecode(self) -> str:
        """The instructions as text, as `relay disasm` prints them."""
        return self.program.listing()

    @property
    def stats(self) -> str:
        """What the program is made of, as text."""
        program = self.program.program
        compiled = sum(item.region >= 0 for item in program.packed)
        size = sum(array.nbytes for array in [*program.constants, *program.weights])
        shapes = ", ".join(str(list(a.shape)) if a.ndim else "scalar" for a in program.constants)
        names = ", ".join(f'("{name}", {number})' for name, number in program.entries.items())
        return (
            f"Relay VM executable statistics:\n  Constant shapes (# {len(program.constants)}): [{shapes}]\n"
            f"  Constant bytes: {size}\n  Globals (#{len(program.entries)}): [{names}]\n"
            f"  Primitive ops (#{len(program.packed)}): [{', '.join(self.primitive_ops)}]: "
            f"{compiled} compiled, {len(program.packed) - compiled} interpreted\n"
        )

    @property
    def primitive_ops(self) -> list[str]:
        """The names of the kernels."""
        return [f"k{number}" for number in range(len(self.program.program.packed))]

    @property
    def primitives(self) -> str:
        """The kernels as text, a line for each."""
        return "".join(f"VM PackedFunc[{number}]: {name}\n" for number, name in enumerate(self.primitive_ops))

    @property
    def constants(self) -> str:
        """The constants of the code as text, a line for each: its type, and its elements where they are few."""
        lines = []
        for number, array in enumerate(self.program.program.constants):
            shape = ",".join(map(str, array.shape))
            elements = f"=[{','.join(map(str, array.ravel().tolist()))}]" if array.size <= _SHOWN else ""
            lines.append(f"VM Const[{number}]: NDArray[({shape}),{array.dtype.name},(1,0)]{elements} on device index 0\n")
        return "".join(lines)

    @property
    def virtual_devices(self) -> str:
        """The devices of the program as text: the CPU."""
        return "VM VirtualDevice[0]: device type 1, id 0 and mem_scope \n"

    def get_late_bound_consts(self, byte_limit: int) -> dict[str, NDArray]:
        """Take the constants of at least `byte_limit` bytes out of the program."""
        return {name: NDArray(value) for name, value in self.program.take_constants(byte_limit).items()}

    def move_late_bound_consts(self, path: str | os.PathLike[str], byte_limit: int) -> None:
        """Move these constants to a file of parameters. Raises `RelayError` (R0001)."""
        taken = self.program.take_constants(byte_limit)
        try:
            save_param_dict_to_file(taken, path)
        except RelayError:
            self.program.give_constants(taken)
            raise

    def load_late_bound_consts(self, path: str | os.PathLike[str]) -> None:
        """Give the program its missing constants from a file. Raises `RelayError`."""
        self.load_late_bound_consts_from_map(load_param_dict_from_file(path))

    def load_late_bound_consts_from_map(self, map: Mapping[str, Any]) -> None:
        """Give the program its missing constants. Raises `RelayError`: R0403 for a missing one, R0402 for another type."""
        self.program.give_constants({name: np.asarray(from_python(value)) for name, value in map.items()})

    @property
    def globals(self) -> list[str]:
        """The names of the functions."""
        return list(self.program.program.entries)

    def get_function_params(self, func_name: str) -> list[str]:
        """The names of a function's parameters. Raises `RelayError` (R0403)."""
        return parameter_names(self.program.signature(func_name))


def _result(value: Value) -> Any:
    """A result as scripts for TVM take it: tensors as NDArrays, tuples as lists of such."""
    done: dict[int, tuple[Any, Any]] = {}
    stack = [value]
    while stack:
        item = stack[-1]
        parts = item if isinstance(item, tuple) else item.fields if isinstance(item, ConstructorValue) else ()
        waiting = [p for p in parts if id(p) not in done]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        new = item
        if isinstance(item, np.ndarray):
            new = NDArray(item)
        elif isinstance(item, tuple):
            new = [done[id(p)][1] for p in parts]
        elif isinstance(item, ConstructorValue):
            new = ConstructorValue(item.constructor, tuple([done[id(p)][1] for p in parts]))
        done[id(item)] = (item, new)
    return done[id(value)][1]


class VirtualMachine:
    """Runs a program's functions on the CPU.

    `device` is the CPU; other devices are refused (R0608). `memory_cfg`, the choice of an allocator, has no effect.
    """

    NAIVE_ALLOCATOR = 1
    POOLED_ALLOCATOR = 2

    def __init__(self, exe: Executable | VMExecutable | Module, device: Any = None, memory_cfg: Any = None) -> None:
        if not isinstance(exe, (Executable, Library, VMExecutable)):
            raise TypeError(f"mod is expected to be an Executable, but received {type(exe).__name__}")
        self._exec = exe if isinstance(exe, VMExecutable) else exe.program
        for dev in device if isinstance(device, (list, tuple)) else [device]:
            if isinstance(dev, Device):
                dev.check()
        self._inputs: dict[str, dict[str, Any]] = {}
        self._outputs: Any = None

    def set_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Keep arguments of a function, by position and by name, for calls without any. Other names are left out."""
        names = parameter_names(self._exec.signature(func_name))
        if len(args) > len(names):
            raise RelayError(error("R0401", f"@{func_name} takes {len(names)} arguments, not {len(args)}"))
        free = [n for n in names if n not in kwargs]
        self._inputs[func_name] = {**dict(zip(free, args)), **{n: v for n, v in kwargs.items() if n in names}}

    def set_one_input(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Keep one argument of a function: its name or position and its value, or the value by name."""
        if kwargs:
            ((tag, value),) = kwargs.items()
        else:
            tag, value = args
        name = parameter_names(self._exec.signature(func_name))[tag] if isinstance(tag, int) else tag
        self._inputs.setdefault(func_name, {})[name] = value

    def _arguments(self, func_name: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name: those given, which are kept, or those of `set_input`."""
        if args or named:
            self.set_input(func_name, *args, **named)
        return {n: from_python(v) for n, v in self._inputs.get(func_name, {}).items()}

    def invoke(self, func_name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a function; without arguments, with those of before. Raises `RelayError` where it fails."""
        return _result(self._exec.call(func_name, (), self._arguments(func_name, args, kwargs)))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Call `@main`."""
        return self.invoke("main", *args, **kwargs)

    def invoke_stateful(self, func_name: str, *args: Any, **kwargs: Any) -> None:
        """Call a function, and keep its result for `get_outputs`."""
        self._outputs = self.invoke(func_name, *args, **kwargs)

    def invoke_with_outputs(self, func_name: str, input_args: Mapping[str, Any] | None, output_args: Any) -> None:
        """Call a function, and copy its results into given tensors. `input_args` None: those of `set_input`."""
        results = self.invoke(func_name, **(input_args or {}))
        for target, value in zip(output_args, results if isinstance(results, list) else [results]):
            target.copyfrom(value)

    def get_outputs(self) -> list[Any]:
        """The tensors of the last `invoke_stateful`."""
        return self._outputs if isinstance(self._outputs, list) else [self._outputs]

    def get_input_index(self, input_name: str, func_name: str = "main") -> int:
        """The position of a parameter, -1 where there is none of the name."""
        names = parameter_names(self._exec.signature(func_name))
        return names.index(input_name) if input_name in names else -1

    def benchmark(
        self,
        device: Any,
        *args: Any,
        func_name: str = "main",
        repeat: int = 5,
        number: int = 5,
        min_repeat_ms: float | None = None,
        limit_zero_time_iterations: int = 100,
        end_to_end: bool = False,
        cooldown_interval_ms: int = 0,
        repeats_to_cooldown: int = 1,
        **kwargs: Any,
    ) -> BenchmarkResult:
        """The time of a call: `repeat` measurements of `number` calls each. The options after `min_repeat_ms` have no effect."""
        named = self._arguments(func_name, args, kwargs)
        return timed(lambda: self._exec.call(func_name, (), named), repeat, number, min_repeat_ms or 0)


__all__ = ["Executable", "Library", "VirtualMachine"]
