"""The names of a program's open extents.

JAX computes the extents that it names from those of the inputs, and passes them to a function of the program. It asserts what
else they tell: that two inputs have one batch, or that an extent is even. Other programs read extents of inputs alone. Those
get names of their own: `arg0_1` is the second axis of `arg0`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from relaylang.frontends.common.builder import Builder
from relaylang.frontends.common.inputs import name_extents
from relaylang.frontends.stablehlo.program import Function, Op, Symbol, Tensor
from relaylang.ir import ANY, Dim, Expr, TensorType, TypeVar
from relaylang.ir.extents import combine, names_in, solve, with_names
from relaylang.ir.types import ComputedDim, dim_text

if TYPE_CHECKING:
    from relaylang.frontends.stablehlo.importer import Importer

#: Tensors of more elements hold no extents.
_MOST = 16
_READS, _ASSERTS, _COMPARES = "stablehlo.get_dimension_size", "stablehlo.custom_call", "stablehlo.compare"


def name_inputs(b: Builder, importer: Importer, main: Function) -> dict[str, list[str]]:
    """Name the open extents of the inputs. The result has them as texts: a name, or a computation of names.

    The text of a number, or of `?`, is empty. `importer` is one for this purpose. It converts the operations of `main` that
    compute extents.
    """
    facts = _Facts(importer, main)
    facts.collect()
    facts.solve()
    dims = {
        name: [facts.dim(number, axis) for axis in range(len(_shape(importer, number)))]
        for name, number in zip(main.names, main.region.parameters)
    }
    b.extents.declare(n.name_hint for shape in dims.values() for d in shape for n in names_in(d))
    texts = {name: ["" if d is ANY else dim_text(d) for d in shape] for name, shape in dims.items()}
    name_extents(b, texts)
    return texts


def _shape(importer: Importer, number: int) -> Sequence[int | None]:
    stated = importer.program.types[number]
    return stated.shape if isinstance(stated, Tensor) else ()


class _Facts:
    """What a program says of the open extents of its inputs."""

    def __init__(self, importer: Importer, main: Function) -> None:
        self.importer = importer
        self.main = main
        taken = {name for f in importer.program.functions.values() for name in f.extents.values()}
        #: The name of each open axis, and what it is once that is known, by its id.
        self.own: dict[tuple[int, int], TypeVar] = {}
        self.dims: dict[int, Dim] = {}
        for name, number in zip(main.names, main.region.parameters):
            for axis, extent in enumerate(_shape(importer, number)):
                if extent is None:
                    word = re.sub(r"\W", "_", f"{name}_{axis}", flags=re.ASCII)
                    word = word if word.isidentifier() else f"n{word}"
                    while word in taken:
                        word += "_"
                    taken.add(word)
                    self.own[number, axis] = TypeVar(word, "ShapeVar")
        self.read: set[tuple[int, int]] = set()
        self.equal: list[tuple[Dim, Dim]] = []
        self.named: dict[str, Dim] = {}

    # ---- what the program says

    def collect(self) -> None:
        """Convert the operations that compute extents, and note what the others say of them."""
        importer, region = self.importer, self.main.region
        types = importer.program.types
        for number in region.parameters:
            if isinstance(types[number], Tensor) and not types[number].is_complex:
                shape = [self.own[number, axis] if d is None else d for axis, d in enumerate(types[number].shape)]
                importer.values[number] = importer.builder.variable("x", TensorType(shape, types[number].dtype))
        definitions = {v: op for op in region.ops for v in op.results}
        for op in region.ops[:-1]:
            if op.name == _ASSERTS:
                self._assertion(op, definitions)
            elif op.name == "func.call" and self._names(op):
                continue
            elif self._computes_extents(op):
                importer.convert(op)

    def _computes_extents(self, op: Op) -> bool:
        values = self.importer.values
        if not all(v in values for v in op.operands):
            return False
        if op.name == _READS:
            axis = op.attributes.get("dimension")
            if isinstance(axis, int) and (op.operands[0], axis) in self.own:
                self.read.add((op.operands[0], axis))
            return True
        return all(map(_is_small, [*op.types, *[self.importer.program.types[v] for v in op.operands]]))

    def _dim(self, number: int) -> Dim:
        """What a value of one element is known to be."""
        value = self.importer.values.get(number)
        dims = self.importer.builder.elements(value) if isinstance(value, Expr) else None
        return dims[0] if dims is not None and len(dims) == 1 else ANY

    def _assertion(self, op: Op, definitions: dict[int, Op]) -> None:
        target = op.attributes.get("call_target_name")
        if not op.operands or (target.name if isinstance(target, Symbol) else target) != "shape_assertion":
            return
        condition = definitions.get(op.operands[0])
        if condition is None or condition.name != _COMPARES or len(condition.operands) != 2:
            return
        way = condition.attributes.get("comparison_direction")
        left, right = map(self._dim, condition.operands)
        if (way.name if isinstance(way, Symbol) else way) == "EQ" and left is not ANY is not right:
            self.equal.append((left, right))

    def _names(self, op: Op) -> bool:
        """Whether a call passes extents under their names."""
        callee = op.attributes.get("callee")
        function = self.importer.program.functions.get(callee.name if isinstance(callee, Symbol) else str(callee))
        names = {} if function is None else {i: name for i, name in function.extents.items() if name and i < len(op.operands)}
        for place, name in names.items():
            dim = self._dim(op.operands[place])
            if isinstance(dim, TypeVar):
                self.named.setdefault(name, dim)
        return bool(names)

    # ---- what follows

    def solve(self) -> None:
        """Find the axes' extents as computations of as few names as the program tells."""
        for left, right in self.equal:  # what a number divides without a rest
            if isinstance(left, ComputedDim) and left.type_key == "tir.FloorMod" and right == 0:
                dividend, by = map(self._now, left.operands)
                for name in self._open(dividend):
                    part = TypeVar(name.name_hint, "ShapeVar")
                    if self._put(name, solve(dividend, combine("tir.Mul", part, by), name)):
                        break
        for text, dim in self.named.items():
            variable = TypeVar(text, "ShapeVar")
            self.dims[id(variable)] = variable
            self._equate(variable, self._now(dim))
        for left, right in self.equal:
            self._equate(self._now(left), self._now(right))

    def _equate(self, left: Dim, right: Dim) -> None:
        for side, other in ((left, right), (right, left)):
            if side in self._open(side) and all(n is not side for n in names_in(other)):
                self._put(side, other)  # type: ignore[arg-type]
                return
        for name in reversed([*self._open(left), *self._open(right)]):
            if self._put(name, solve(left, right, name)):
                return

    def _open(self, dim: Dim) -> list[TypeVar]:
        """The names in an extent that stand for themselves so far."""
        return [name for name in names_in(dim) if id(name) not in self.dims]

    def _now(self, dim: Dim) -> Dim:
        return with_names(dim, lambda name: self.dims.get(id(name), name))

    def _put(self, name: TypeVar, dim: Dim | None) -> bool:
        """Whether a name is a known extent from now on."""
        if dim is None or dim is ANY:
            return False
        self.dims[id(name)] = dim
        self.dims = {key: self._now(d) for key, d in self.dims.items()}
        return True

    def dim(self, number: int, axis: int) -> Dim:
        """The extent of an axis; `?` for a number, and for one that the program does not read."""
        name = self.own.get((number, axis))
        if name is None or not (id(name) in self.dims or (number, axis) in self.read):
            return ANY
        return self._now(name)


def _is_small(ty: object) -> bool:
    """Whether a value may hold extents: a few whole numbers or bools."""
    if not isinstance(ty, Tensor) or ty.is_complex or ty.quantised is not None or None in ty.shape:
        return False
    count = 1
    for extent in ty.shape:
        count *= extent or 0
    return count <= _MOST and ("int" in ty.dtype or ty.dtype == "bool")


__all__ = ["name_inputs"]
