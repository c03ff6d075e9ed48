"""Constants that a program gets after it was compiled, saved and loaded.

A program keeps the type of a missing constant: an array of its shape without memory of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from relaylang.diagnostics import RelayError, error
from relaylang.runtime.vm.program import VMProgram


def _place(program: VMProgram, number: int) -> tuple[list[np.ndarray], int]:
    """The table of a constant, and its index there. The weights of kernels come behind the constants of the code."""
    count = len(program.constants)
    return (program.constants, number) if number < count else (program.weights, number - count)


def stand_in(dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """An array of a type, for a constant that is not there."""
    return np.broadcast_to(np.zeros((), dtype), shape)


def take(program: VMProgram, least: int) -> dict[str, np.ndarray]:
    """Take the constants of at least so many bytes out of a program, by the names that `give` wants."""
    taken = {}
    for number in range(len(program.constants) + len(program.weights)):
        table, index = _place(program, number)
        name = f"const_{number}"
        if name not in program.late and table[index].nbytes >= least:
            taken[name] = np.asarray(table[index])
            table[index] = stand_in(taken[name].dtype, taken[name].shape)
            program.late[name] = number
    return taken


def give(program: VMProgram, values: Mapping[str, np.ndarray]) -> None:
    """Give a program all the constants that it lacks. Raises `RelayError` (R0403, R0402), and then gives none."""
    missing = [name for name in program.late if name not in values]
    if missing:
        raise RelayError(error("R0403", f"the constant {missing[0]} has no value", notes=[f"wanted: {', '.join(missing)}"]))
    for name, number in program.late.items():
        table, index = _place(program, number)
        wanted, value = table[index], values[name]
        if (value.dtype, value.shape) != (wanted.dtype, wanted.shape):
            actual = f"{value.dtype.name}{list(value.shape)} instead of {wanted.dtype.name}{list(wanted.shape)}"
            raise RelayError(error("R0402", f"the constant {name} has the type {actual}"))
    for name, number in program.late.items():
        table, index = _place(program, number)
        table[index] = np.array(values[name])
    program.late.clear()


def records(program: VMProgram) -> list[list[object]]:
    """The missing constants as JSON: name, number and shape."""
    every = [*program.constants, *program.weights]
    return [[name, number, list(every[number].shape)] for name, number in program.late.items()]


def stored(program: VMProgram) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Constants and weights as files keep them: of missing ones only a 0 of their element type."""
    late = set(program.late.values())
    count = len(program.constants)
    every = [np.zeros((), a.dtype) if n in late else a for n, a in enumerate([*program.constants, *program.weights])]
    return every[:count], every[count:]


def mark(program: VMProgram, missing: Sequence[tuple[str, int, Sequence[int]]]) -> None:
    """Note what a file says of missing constants. Raises `ValueError`."""
    for name, number, shape in missing:
        if number >= len(program.constants) + len(program.weights):
            raise ValueError(f"there is no constant {number}")
        table, index = _place(program, number)
        if table[index].ndim:
            raise ValueError(f"the constant {name} has a value, and is missing")
        table[index] = stand_in(table[index].dtype, tuple(shape))
        program.late[name] = number
