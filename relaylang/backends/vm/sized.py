"""Regions of unknown extents: kernels that read the sizes of their inputs, and the extents of results as C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from relaylang.backends.cpu.emit import Emitter
from relaylang.backends.cpu.flatten import Calls
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.pipeline import lower_module
from relaylang.backends.cpu.program import Program
from relaylang.ir import Expr, Function, IRModule, TensorType, Tuple, substitute
from relaylang.ir.typed import typed_var
from relaylang.kernels.sizes import Sizes, bounds
from relaylang.typing import check

#: Two numbers for each size: primes, so that no others come from them by accident. Data, which come first, are larger than
#: kernels and indices, and stay large where a network halves them five times.
_NUMBERS = (
    (1499, 1361, 1223, 1103, 991, 887, 797, 719, 647, 577, 521, 467, 421, 379, 337, 307, 277, 251, 223, 199, 181, 163, 149, 131),
    (
        2999,
        2707,
        2437,
        2203,
        1987,
        1787,
        1609,
        1439,
        1301,
        1171,
        1049,
        947,
        859,
        769,
        691,
        617,
        563,
        503,
        449,
        409,
        367,
        331,
        293,
        263,
    ),
)
#: So often are extents that must be equal found, and types inferred again.
_ROUNDS = 4


@dataclass
class Sized:
    """The kernels of a region. `sizes` are the numbers of the extents that are sizes, `extents` those of the results."""

    program: Program
    sizes: tuple[int, ...]
    checks: tuple[str, ...]
    extents: tuple[str, ...]
    text: str


def sized(module: IRModule, isa: Isa, calls: Calls) -> Sized | None:
    """The kernels of a region for any extents.

    None where there are too many sizes, or where code depends on their numbers.
    Raises `RelayError` where the backend has no such code for an operator.
    """
    found = [_for_numbers(module, isa, calls, numbers) for numbers in _NUMBERS]
    if found[0] is None or found[1] is None or found[0].text != found[1].text:
        return None
    return found[0]


def _for_numbers(module: IRModule, isa: Isa, calls: Calls, numbers: Sequence[int]) -> Sized | None:
    function = module["main"]
    places: list[int] = []
    at = 0
    for param in function.params:
        for extent in param.checked_type.shape:  # type: ignore[union-attr]
            if not isinstance(extent, int):
                places.append(at)
            at += 1
    if len(places) > len(numbers):
        return None
    sizes = Sizes(numbers[: len(places)])
    stands: list[int] = [*sizes.sizes]
    for _ in range(_ROUNDS):
        made = _typed(function, sizes, stands)
        merged = _merged(sizes, stands)
        if merged == stands:
            break
        stands = merged
    checks = [f"size{n} == {s}" for n, s in enumerate(stands) if s != sizes.sizes[n]]
    checks += [f"size{n} > 0" for n in range(len(stands))]
    program = lower_module(made, "main", [], isa, None, calls)
    body = made["main"].body
    assert isinstance(body, Tuple)
    extents = [d for f in body.fields for d in f.checked_type.shape]  # type: ignore[union-attr]
    checks += [f"{d} >= 0" for d in extents if (bounds(d)[0] or 0) < 0]
    checks += [f"{a} == {b}" for a, b in sizes.equal.values()] + list(sizes.assumed)
    text = "\n".join([*checks, *map(str, extents), str(program.arena_bytes), _text(program, isa)])
    return Sized(program, tuple(places), tuple(checks), tuple(map(str, extents)), text)


def _typed(function: Function, sizes: Sizes, stands: Sequence[int]) -> IRModule:
    """The region with sizes for its unknown extents, its types inferred anew."""
    left = iter(stands)
    values: dict[Expr, Expr] = {}
    for param in function.params:
        ty = param.checked_type
        assert isinstance(ty, TensorType)
        # Numbers of other classes have an arithmetic of their own.
        shape = [int(d) if isinstance(d, int) else next(left) for d in ty.shape]
        values[param] = typed_var(param.name_hint, TensorType(shape, ty.dtype), param.span)
    made = IRModule.from_expr(Function(list(values.values()), substitute(function.body, values)))  # type: ignore[arg-type]
    sizes.begin()
    sizes.inferring = True
    try:
        check(made, fresh=True)
    finally:
        sizes.inferring = False
    return made


def _merged(sizes: Sizes, stands: Sequence[int]) -> list[int]:
    """What each size stands for once extents that must be equal are one size or number."""
    known: dict[int, int] = {}

    def of(value: int) -> int:
        while value in known:
            value = known[value]
        return value

    for one, two in sizes.equal.values():
        one, two = of(one), of(two)
        if one == two:
            continue
        if one in sizes.sizes:
            known[one] = two
        elif two in sizes.sizes:
            known[two] = one
    return [of(s) for s in stands]


def _text(program: Program, isa: Isa) -> str:
    """All that the kernels are, as text."""
    emitter = Emitter(isa, threads=False)
    emitter.sizes = "sizes"
    ends = [emitter.sequence("run", program.run), emitter.sequence("prepare", program.prepare)]
    return "\n".join([*(piece.text for piece in emitter.pieces.values()), *ends])
