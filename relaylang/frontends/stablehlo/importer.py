"""StableHLO to Relay: the walk over a program's operations. Conversions of operators are in the tables of `families/`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, error, first_ones
from relaylang.frontends.common import Builder, Imported, Layer, Listing, Malformed, Report, Unsupported
from relaylang.frontends.common.complexes import Complex
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.inputs import check_axes, check_names, no_model, value_for
from relaylang.frontends.common.partial import external
from relaylang.frontends.common.quantized import dequantize, quantize
from relaylang.frontends.common.report import failure
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.frontends.stablehlo.bytecode import read_model
from relaylang.frontends.stablehlo.extents import name_inputs
from relaylang.frontends.stablehlo.node import MISSING, Node, Skipped
from relaylang.frontends.stablehlo.program import Function, Op, Program, Quantised, Region, Several, Tensor
from relaylang.frontends.stablehlo.table import REFUSED, table
from relaylang.ir import ANY, Expr, TensorType, Var, type_text
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.budget import Budget
from relaylang.runtime.text import read_bytes
from relaylang.typing.valid_types import unsound

#: Functions call functions, and regions contain regions, this deep.
_DEEPEST = 64
#: Operators that move or add the elements of complex tensors part by part.
_BY_PARTS = frozenset(
    f"stablehlo.{name}"
    for name in (
        "add",
        "broadcast_in_dim",
        "concatenate",
        "dynamic_broadcast_in_dim",
        "dynamic_reshape",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "negate",
        "pad",
        "reduce",
        "reshape",
        "reverse",
        "select",
        "slice",
        "subtract",
        "transpose",
    )
)
#: Operators that take operands of any kind whole: complex tensors, quantised ones, tuples.
_WHOLE = frozenset(
    (
        "func.call",
        *(
            f"stablehlo.{name}"
            for name in (
                "abs",
                "case",
                "complex",
                "composite",
                "constant",
                "custom_call",
                "divide",
                "dot_general",
                "fft",
                "get_tuple_element",
                "if",
                "imag",
                "multiply",
                "optimization_barrier",
                "real",
                "tuple",
                "uniform_dequantize",
                "uniform_quantize",
                "while",
            )
        ),
    )
)
#: Those that compute with numbers: quantised operands become numbers before them.
_ARITHMETIC = frozenset(f"stablehlo.{name}" for name in ("abs", "divide", "dot_general", "multiply"))
#: Operators that move elements, whatever they stand for.
_MOVING = (_BY_PARTS - {f"stablehlo.{name}" for name in ("add", "negate", "pad", "reduce", "subtract")}) | (_WHOLE - _ARITHMETIC)


class Importer:
    """Converts one program. `file` is its name in diagnostics."""

    def __init__(self, program: Program, file: str, options: Options, budget: Budget) -> None:
        self.program = program
        self.file = file
        self.options = options
        self.rules = table()
        budget.grant(layers=sum(_count(f.region) for f in program.functions.values()))
        self.budget = budget
        self.report = Report(file, self.rules.names())
        self.builder = Builder(Listing(file), self.report, options, budget)
        self.errors: list[Diagnostic] = []
        #: The values of the program, by their numbers.
        self.values: dict[int, Any] = {}
        self._calls: list[str] = []
        self._depth = 0
        self._lifted = 0
        self._reported: set[int] = set()

    def run(self) -> Imported:
        """The program. Raises `RelayError` with everything that is wrong."""
        functions = self.program.functions
        main = functions.get("main") or next(iter(functions.values()))
        inputs = self._inputs(main)
        self._calls.append(main.name)
        outputs = self._flat(self._results(main))
        self._check_results(main, outputs)
        if self.errors:
            raise RelayError(first_ones(self.errors))
        if not self.options.partial:
            self.report.raise_if_any()
        self.builder.span = main.span
        if any(o is MISSING for o in outputs):
            self.report.raise_if_any()
        if any(isinstance(o, Complex) for o in outputs):
            notes = ["stablehlo.real and stablehlo.imag make real numbers of them"]
            raise RelayError(error("R0801", f"{self.file}: a result of @{main.name} has complex numbers", main.span, notes=notes))
        if not outputs or not all(isinstance(o, Expr) for o in outputs):
            raise RelayError(error("R0802", f"{self.file}: @{main.name} gives no tensors", main.span))
        return finish(self.builder, inputs, outputs)

    def _results(self, main: Function) -> list[Any]:
        try:
            return self.apply(main.region, [self.values[p] for p in main.region.parameters])
        except Unsupported as why:
            raise RelayError(error("R0801", f"{self.file}: @{main.name}: {why.reason}", main.span)) from None
        except Malformed as wrong:
            raise RelayError(error("R0802", f"{self.file}: @{main.name}: {wrong.reason}", main.span)) from None

    def _check_results(self, main: Function, outputs: Sequence[Any]) -> None:
        """Note the results of the function that do not have the stated types."""
        stated = [t for t in main.types if isinstance(t, Tensor)]
        if len(stated) != len(main.types) or self.errors or any(o is MISSING for o in outputs):
            return
        try:
            if len(outputs) != len(stated):
                raise Malformed(f"it gives {len(outputs)} results, and states {len(stated)}")
            for output, ty in zip(outputs, stated):
                self._fits(output, ty)
        except Malformed as wrong:
            self.errors.append(error("R0805", f"@{main.name}: {wrong.reason}", main.span))

    def _flat(self, values: Sequence[Any]) -> list[Any]:
        """Values with the fields of tuples in their place."""
        flat, left = [], list(reversed(values))
        while left:
            value = left.pop()
            if isinstance(value, list):
                left += reversed(value)
            else:
                flat.append(value)
        return flat

    def _inputs(self, main: Function) -> list[Var]:
        open_inputs = any(isinstance(t := self.program.types[n], Tensor) and None in t.shape for n in main.region.parameters)
        own = Importer(self.program, self.file, DEFAULTS, self.budget) if open_inputs else None
        texts = name_inputs(self.builder, own, main) if own is not None else {}
        check_names(self.file, self.options, main.names, (), self.builder.extents)
        variables = []
        for name, number in zip(main.names, main.region.parameters):
            stated = self.program.types[number]
            self.builder.span = main.span
            if not isinstance(stated, Tensor) or stated.is_complex:
                kind = "complex numbers" if isinstance(stated, Tensor) else "a tuple" if isinstance(stated, Several) else "no tensor"
                raise RelayError(error("R0801", f"{self.file}: the input {name} of @{main.name} is {kind}", main.span))
            shape: list[Any] = list(stated.shape)
            if None in shape:
                shape = [self.builder.extents.dim(text) if d is None else d for d, text in zip(shape, texts[name])]
            axes = self.options.shapes.get(name)
            if axes is not None:
                check_axes(self.file, name, shape, axes)
                if any(isinstance(d, int) and d != n for d, n in zip(shape, axes)):
                    said = (
                        f"{self.file}: the input {name} has the shape {type_text(TensorType(shape, stated.dtype))} in all operations"
                    )
                    raise RelayError(error("R0804", said, notes=["--shape gives the extents that the program leaves open"]))
                shape = list(axes)
            ty = TensorType(shape, self.options.dtypes.get(name, stated.dtype))
            why = unsound(ty)
            if why is not None:
                raise RelayError(error("R0802", f"{self.file}: the input {name}: {why}", main.span))
            if ty.dtype != stated.dtype:
                said = f"{self.file}: the input {name} is {stated.dtype} in all operations, not {ty.dtype}"
                raise RelayError(error("R0804", said))
            if name in self.options.values:
                self.values[number] = self.builder.const(value_for(self.file, name, self.options.values[name], shape, ty.dtype))
                continue
            self.builder.span = self.builder.listing.add(Layer("Input", "", (), (name,)))
            variable = self.builder.variable(self.builder.unique(name), ty)
            self.values[number] = variable
            variables.append(variable)
        return variables

    # ---- regions and functions

    def apply(self, region: Region, values: Sequence[Any], lifted: bool = False) -> list[Any]:
        """The results of a region for these values, converted in place. `lifted` applies a region of scalars to tensors."""
        if len(values) != len(region.parameters):
            raise Malformed(f"it gives {len(values)} values to a region of {len(region.parameters)} parameters")
        if self._depth >= _DEEPEST:
            raise Unsupported(f"functions and regions are more than {_DEEPEST} deep")
        if not region.ops or region.ops[-1].name.rpartition(".")[2] != "return":
            raise Malformed("its region does not end with a return")
        self.values.update(zip(region.parameters, values))
        span = self.builder.span
        self._depth += 1
        self._lifted += lifted
        try:
            for op in region.ops[:-1]:
                self.convert(op)
        finally:
            self._depth -= 1
            self._lifted -= lifted
            self.builder.span = span
        return [self.values[v] for v in region.ops[-1].operands]

    def call(self, name: str, values: Sequence[Any]) -> list[Any]:
        """The results of a function, written out in place."""
        function = self.program.functions.get(name)
        if function is None:
            raise Malformed(f"it calls @{name}, and there is no such function")
        if name in self._calls:
            raise Unsupported(f"@{name} calls itself")
        self.budget.take_nodes(1 + len(function.region.ops), "writing called functions out")
        self._calls.append(name)
        try:
            return self.run_region(function.region, values)
        finally:
            self._calls.pop()

    def run_region(self, region: Region, values: Sequence[Any], lifted: bool = False) -> list[Any]:
        """As `apply`, where every result must be there. The operation is skipped otherwise."""
        results = self.apply(region, values, lifted)
        if any(r is MISSING for r in results):
            raise Skipped
        return results

    # ---- operations

    def convert(self, op: Op) -> None:
        """Give the results of an operation their values, or note its errors."""
        b, values = self.builder, self.values
        b.span = op.span
        results: Sequence[Any] = ()
        try:
            results = self._checked(op, self._operation(op))
        except Skipped:
            pass
        except Unsupported as why:
            if id(op) not in self._reported:
                self._reported.add(id(op))
                self.report.unsupported(op.name, f"{self._layer(op).label} of line {op.span.line}", op.span, why.reason)
            results = self._external(op) if self.options.partial else ()
        except Exception as wrong:
            self.errors += failure(wrong, self._layer(op), op.span, [values.get(v) for v in op.operands])
        for i, number in enumerate(op.results):
            values[number] = results[i] if i < len(results) and results[i] is not None else MISSING

    def _layer(self, op: Op) -> Layer:
        names = self.program.names
        return Layer(op.name, "", [names[v] for v in op.operands], [names[v] for v in op.results])

    def _operation(self, op: Op) -> list[Any]:
        """The results of an operation, not yet checked."""
        rule = self.rules.find(op.name)
        if rule is None:
            raise Unsupported(REFUSED.get(op.name, ""))
        operands = [self.values[v] for v in op.operands]
        if any(v is MISSING for v in operands) and op.name != "stablehlo.custom_call":  # its name tells whether it is known
            raise Skipped
        if op.name not in _WHOLE and any(isinstance(v, Complex) for v in operands):
            if op.name not in _BY_PARTS:
                raise Unsupported("it has no form for complex numbers")
            parts = [listed(rule.convert(Node(self, op, part))) for part in ("real", "imaginary")]
            return [Complex(x, y) for x, y in zip(*parts)]
        types = [*[self.program.types[v] for v in op.operands], *op.types]
        if op.name not in _MOVING and any(isinstance(t, Tensor) and t.quantised is not None for t in types):
            results = listed(rule.convert(Node(self, op, real=True)))
            return [
                self.quantised(m, t.quantised) if isinstance(t, Tensor) and t.quantised is not None else m
                for m, t in zip(results, op.types)
            ]
        return listed(rule.convert(Node(self, op)))

    def _checked(self, op: Op, results: list[Any]) -> list[Any]:
        """Results that have the stated types. Raises `Malformed` for others."""
        if len(results) < len(op.results):
            raise Malformed(f"it has {len(op.results)} results, and must have {len(results)}")
        return [self._fits(r, ty) for r, ty in zip(results, op.types)]

    def _fits(self, value: Any, stated: Any) -> Any:
        if not isinstance(stated, Tensor) or not isinstance(value, (Expr, Complex)):
            return value
        b = self.builder
        if isinstance(value, Complex) != stated.is_complex:
            raise Malformed("its result is complex, or the stated type is")
        if isinstance(value, Complex):
            return value
        ty = b.type_of(value)
        if ty.dtype != stated.dtype:
            raise Malformed(f"its result is {ty.dtype}, and the program states {stated.dtype}")
        if self._lifted or tuple(ty.shape) == stated.shape:
            return value
        pairs = [(d if isinstance(d, int) else None, n) for d, n in zip(ty.shape, stated.shape)]
        if len(ty.shape) != len(stated.shape) or any(None not in pair and pair[0] != pair[1] for pair in pairs):
            text = type_text(TensorType([ANY if n is None else n for n in stated.shape], stated.dtype))
            raise Malformed(f"its result is `{type_text(ty)}`, and the program states `{text}`")
        if any(d is None and n is not None for d, n in pairs):
            note = b.notes.get(value)
            value = b.refine(value, stated.shape)
            if note is not None:
                b.notes[value] = note
        return value

    def dequantised(self, x: Expr, q: Quantised) -> Expr:
        """Real numbers of stored ones."""
        scale, zero = self._scales(q)
        return dequantize(self.builder, x, scale, zero, -1 if q.axis is None else q.axis)

    def quantised(self, x: Expr, q: Quantised) -> Expr:
        """Stored numbers of real ones."""
        scale, zero = self._scales(q)
        return quantize(self.builder, x, scale, zero, q.dtype, -1 if q.axis is None else q.axis)

    def _scales(self, q: Quantised) -> tuple[Expr, Expr]:
        b = self.builder
        if q.axis is None:
            return b.const(np.float32(q.scales[0])), b.const(np.int32(q.zeros[0]))
        return b.const(np.array(q.scales, np.float32)), b.const(np.array(q.zeros, np.int32))

    def _external(self, op: Op) -> Sequence[Any]:
        types = [
            TensorType([ANY if d is None else d for d in t.shape], t.dtype) if isinstance(t, Tensor) and not t.is_complex else None
            for t in op.types
        ]
        inputs = [v for v in (self.values[i] for i in op.operands) if isinstance(v, Expr)]
        return external(self.builder, op.name, inputs, types)


def listed(made: Any) -> list[Any]:
    """The results of a conversion as a list."""
    return [made] if isinstance(made, (Expr, Complex)) else list(made)


def _count(region: Region) -> int:
    """The operations of a region and of those inside it."""
    count, left = 0, [region]
    while left:
        inner = left.pop()
        count += len(inner.ops)
        left += [r for op in inner.ops for r in op.regions]
    return count


def import_stablehlo(model: Any, options: Options = DEFAULTS, file: str = "") -> Imported:
    """A program from MLIR's text or bytecode (its bytes, or a path), or from an object that prints as MLIR's text.

    The objects are `jax.jit(f).lower(x)`, a `jax.export.Exported`, and modules of MLIR's Python package. A `str` is a path,
    or a text of several lines. Raises `RelayError`: the program is damaged (R0802), a package is missing (R0803), options do
    not fit (R0804), operations are wrong (R0805) or cannot be converted (R0801).
    """
    if isinstance(model, os.PathLike) or (isinstance(model, str) and "\n" not in model):
        file = file or os.fspath(model)
        model = read_bytes(os.fspath(model))
    elif not isinstance(model, (bytes, bytearray, memoryview)):
        model = _text_of(model)
    with gc_paused(), np.errstate(all="ignore"):
        data, name = bytes(model), file or "the program"
        budget = Budget(name, len(data), options.nodes, options.bytes, options.work)
        return Importer(read_model(data, name, budget), name, options, budget).run()


def _text_of(model: Any) -> bytes:
    """The text of an object of JAX or MLIR."""
    own = type(model).__module__.partition(".")[0]
    if isinstance(model, str):
        return model.encode()
    if own in ("jax", "jaxlib", "mlir", "iree", "torch_xla"):
        for name in ("mlir_module", "as_text"):
            if callable(getattr(model, name, None)):
                return str(getattr(model, name)()).encode()
        return str(model).encode()
    wanted = "the importer takes MLIR's text or bytecode, a path, or what jax.jit(f).lower(x) gives"
    raise RelayError(no_model(model, "program of StableHLO", wanted))


__all__ = ["Importer", "import_stablehlo"]
