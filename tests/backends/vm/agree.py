"""Whether two values of programs are the same, and a program compiled for the VM beside the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from relaylang.backends.vm import compile_vm
from relaylang.diagnostics import RelayError
from relaylang.interpreter.evaluate import Evaluator
from relaylang.interpreter.values import Builtin, Closure, ConstructorValue, RefValue, is_tensor
from relaylang.ir import IRModule
from relaylang.runtime.vm.executable import VMExecutable
from relaylang.runtime.vm.machine import VMClosure
from relaylang.syntax import parse
from relaylang.testing.generators.typed import PRELUDE, Ty, Typed
from relaylang.typing import check


def assert_same(got: Any, wanted: Any, rtol: float = 1e-5, atol: float = 1e-5) -> None:
    """Two values are the same; floats up to rounding."""
    stack = [(got, wanted)]
    while stack:
        x, y = stack.pop()
        if is_tensor(y):
            assert is_tensor(x) and x.dtype == y.dtype and x.shape == y.shape
            if y.dtype.kind == "f":
                np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)
            else:
                assert np.array_equal(x, y)
        elif isinstance(y, tuple):
            assert isinstance(x, tuple) and len(x) == len(y)
            stack += zip(x, y)
        elif isinstance(y, ConstructorValue):
            assert isinstance(x, ConstructorValue) and x.tag == y.tag and len(x.fields) == len(y.fields)
            stack += zip(x.fields, y.fields)
        elif isinstance(y, RefValue):
            assert isinstance(x, RefValue)
            stack.append((x.value, y.value))
        elif isinstance(y, (Closure, Builtin)):
            assert isinstance(x, VMClosure)
        else:
            assert x is None and y is None


def outcome(run: Callable[[], Any]) -> tuple[Any, tuple[Any, ...] | None]:
    """A run's value, or its error: code, title and place."""
    try:
        return run(), None
    except RelayError as failed:
        first = failed.diagnostics[0]
        return None, (first.code, first.title, first.span and (first.span.start, first.span.end))


def assert_agrees(mod: IRModule, *args: Any, entry: str = "main", native: bool = False) -> VMExecutable:
    """A function gives what the interpreter gives, or fails as it does; the machine holds nothing afterwards."""
    executable = compile_vm(mod, native=native, entries=[entry])
    with np.errstate(all="ignore"):
        wanted, failure = outcome(lambda: Evaluator(mod).call(entry, args))
    got, code = outcome(lambda: executable.call(entry, args))
    assert code == failure
    if failure is None:
        assert_same(got, wanted)
    return executable


def argument(ty: Ty, rng: np.random.Generator) -> Any:
    """A tensor of a type, of up to three elements where an extent is not known."""
    shape = [int(rng.integers(0, 4)) if d == "?" else d for d in ty.parts]
    if ty.name == "bool":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if ty.name.startswith("float"):
        return np.asarray(rng.integers(-8, 9, shape) / 4, ty.name)
    return np.asarray(rng.integers(0 if ty.name[0] == "u" else -4, 8, shape), ty.name)


def assert_programs_agree(seeds: Sequence[int], native: bool = False) -> None:
    """Programs of some seeds, in one module, give what the interpreter gives, bit for bit. Each has two sets of arguments."""
    programs = {seed: Typed(seed, f"p{seed}_", sums=not native) for seed in seeds}
    texts = {seed: made.text() for seed, made in programs.items()}
    mod = parse(PRELUDE + "\n".join(texts.values()), "programs").module
    assert mod is not None
    check(mod)
    executable = compile_vm(mod, native=native, entries=[f"p{seed}_main" for seed in seeds])
    evaluator = Evaluator(mod)
    for seed, made in programs.items():
        entry = f"p{seed}_main"
        for turn in range(2):
            rng = np.random.default_rng([seed, turn])
            args = tuple([argument(ty, rng) for ty in made.params])
            with np.errstate(all="ignore"):
                wanted, failure = outcome(lambda entry=entry, args=args: evaluator.call(entry, args))
            got, found = outcome(lambda entry=entry, args=args: executable.call(entry, args))
            message = f"seed {seed}, arguments {args}, {found} instead of {failure}\n{texts[seed]}"
            assert found == failure, message
            if failure is None:
                try:
                    assert_same(got, wanted, 0, 0)
                except AssertionError as e:
                    raise AssertionError(f"{e}\n{message}") from None
