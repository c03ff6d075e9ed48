"""Regions of other compilers in a program: each is an operator of its own, called as one kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping

from relaylang.backends.cpu.kernel import ELSEWHERE
from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ir import Call, Constant, Function, Type
from relaylang.ops.record import Op, OpPattern
from relaylang.ops.traits import Trait
from relaylang.runtime.external import CODEGENS, Code, Generator, Region, find, generated, region_of
from relaylang.runtime.manifest import External


class OpaqueOp(Op):
    """An operator that is code of its own, which takes and makes dense tensors. `result` is its type."""

    __slots__ = ("result",)
    result: Type

    def __init__(self, name: str, operands: int, result: Type) -> None:
        names = [f"in{n}" for n in range(operands)]
        super().__init__(name, names, None, lambda types, attrs, ctx: result, OpPattern.OPAQUE, traits={Trait.BARRIER}, python=None)
        object.__setattr__(self, "result", result)


class ExternalOp(OpaqueOp):
    """The operator that stands for a region: its operands are the region's tensors, tuples taken apart."""

    __slots__ = ("code", "region")
    region: Region
    code: Code

    def __init__(self, region: Region, code: Code) -> None:
        result = region.function.body.checked_type
        assert result is not None
        super().__init__(f"{region.compiler}.{region.symbol}", len(region.inputs) + len(code.constants), result)
        object.__setattr__(self, "region", region)
        object.__setattr__(self, "code", code)


def opaque_of(function: Function) -> OpaqueOp | None:
    """The operator of a kernel that is code of its own; None for other kernels."""
    body = function.body
    return body.op if isinstance(body, Call) and isinstance(body.op, OpaqueOp) else None


class Externals:
    """The regions of a program, each with its code, which is generated once.

    `generators` are those of this program by their compilers' names; the registered ones stand behind them.
    """

    def __init__(self, generators: Mapping[str, Generator] | None = None) -> None:
        self._generators = dict(generators or {})
        self._found: dict[int, ExternalOp] = {}
        self._symbols: set[str] = set()

    def operator(self, call: Call, function: Function) -> ExternalOp:
        """The operator for a function of another compiler. Raises `RelayError` (R0605, R0632)."""
        known = self._found.get(id(function))
        if known is None:
            compiler = str(function.attrs["Compiler"])
            generator = self._generators.get(compiler) or find(compiler)
            if generator is None:
                near = did_you_mean(compiler, CODEGENS)
                notes = [f"did you mean {near}?"] if near else []
                notes += [f'a code generator of this name compiles it: codegen("{compiler}"), or relay compile --load FILE', ELSEWHERE]
                title = f"a function of the compiler {compiler} cannot be compiled here"
                raise RelayError(error("R0632", title, call.span or function.span, notes=notes))
            name = str(function.attrs.get("global_symbol") or getattr(call.op, "name_hint", None) or f"{compiler}_region")
            region = region_of(compiler, self._symbol(name), function)
            known = self._found[id(function)] = ExternalOp(region, generated(generator, region))
        return known

    def _symbol(self, name: str) -> str:
        """A C name of its own for a region."""
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        plain = plain if plain[:1].isalpha() else f"region_{plain}"
        symbol, number = plain, 0
        while symbol in self._symbols:
            number += 1
            symbol = f"{plain}_{number}"
        self._symbols.add(symbol)
        return symbol


def constants_of(op: ExternalOp) -> list[Constant]:
    """The constants that a region's code wants behind its inputs."""
    return [Constant(op.region.constants[name]) for name in op.code.constants]


def record_of(op: ExternalOp, place: str, line: str) -> External:
    """What the manifest says of a region."""
    inputs = [(s.shape, s.dtype) for s in op.region.inputs]
    constants = [op.region.constants[name] for name in op.code.constants]
    inputs += [(tuple(c.shape), c.dtype.name) for c in constants]
    outputs = tuple((s.shape, s.dtype) for s in op.region.outputs)
    return External(op.region.compiler, op.region.symbol, op.code.kind, tuple(inputs), outputs, place, line)


__all__ = ["ExternalOp", "Externals", "OpaqueOp", "constants_of", "opaque_of", "record_of"]
