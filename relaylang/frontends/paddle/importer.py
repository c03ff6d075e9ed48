"""PaddlePaddle to Relay: the walk over a program's operations. Conversions are in the tables of `families/`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic, RelayError, error, first_ones
from relaylang.diagnostics.source import Span
from relaylang.frontends.common import Builder, Imported, Layer, Listing, Malformed, Report, Unsupported
from relaylang.frontends.common.files import damaged
from relaylang.frontends.common.imported import finish
from relaylang.frontends.common.inputs import check_axes, check_names, value_for
from relaylang.frontends.common.partial import external, stated_type
from relaylang.frontends.common.report import failure
from relaylang.frontends.options import DEFAULTS, Options
from relaylang.frontends.paddle.node import Node
from relaylang.frontends.paddle.program import Block, Given, Key, Operation, Program
from relaylang.frontends.paddle.sources import Source, source_of, weights_of
from relaylang.frontends.paddle.table import LEFT_OUT, REFUSED, table
from relaylang.ir import ANY, Expr, TensorType, Var
from relaylang.ir.bulk import gc_paused
from relaylang.runtime.budget import Budget
from relaylang.typing.valid_types import unsound

#: The value of a result whose operation was not converted.
MISSING = object()
#: That of a result that a conversion does not give.
LEFT = object()
#: Extents of a file are at most so large.
_LARGEST = 1 << 31


class Skipped(Exception):
    """The operation uses a result whose own operation was not converted."""


class Scope:
    """The values of a block by their keys. A block inside an operation reads those around it, and writes its own."""

    def __init__(self, parent: Scope | None = None) -> None:
        self.parent = parent
        self.values: dict[Key, Any] = {}

    def get(self, key: Key, default: Any = None) -> Any:
        """The value of a key, in this block or in those around it."""
        scope: Scope | None = self
        while scope is not None:
            if key in scope.values:
                return scope.values[key]
            scope = scope.parent
        return default


class Importer:
    """Converts one program. `file` is its name in diagnostics, `weights` are arrays by name."""

    def __init__(self, program: Program, weights: Mapping[str, np.ndarray], file: str, options: Options, budget: Budget) -> None:
        self.program = program
        self.weights = weights
        self.file = file
        self.options = options
        self.rules = table()
        budget.grant(layers=program.size)
        self.budget = budget
        self.report = Report(file, self.rules.names(), warnings=list(program.warnings))
        self.builder = Builder(Listing(file), self.report, options, budget)
        self.errors: list[Diagnostic] = []
        self._spans: dict[int, Span] = {}
        self._reported: set[int] = set()

    def run(self) -> Imported:
        """The program. Raises `RelayError` with everything that is wrong."""
        names = [value.name for value in self.program.inputs]
        check_names(self.file, self.options, names)
        scope = Scope()
        for weight in self.program.weights:
            scope.values[weight.key] = self._weight(weight)
        inputs = [self._input(value, scope) for value in self.program.inputs]
        self.convert(self.program.block, scope)
        if self.errors:
            raise RelayError(first_ones(self.errors))
        if not self.options.partial:
            self.report.raise_if_any()
        outputs: list[Expr] = []
        for key in self.program.results:
            value = scope.get(key, MISSING)
            outputs += [self._plain(v, key) for v in (value if isinstance(value, list) else [value])]
        if not outputs:
            raise damaged(self.file, "the program has no results")
        return finish(self.builder, [v for v in inputs if v is not None], outputs)

    def _plain(self, value: Any, key: Key) -> Expr:
        if not isinstance(value, Expr):
            self.report.raise_if_any()
            notes = ["the importer does not compute this result of its operation"] if value is LEFT else []
            raise damaged(self.file, f"its result {str(key)[:60]!r} is not computed", *notes)
        return value

    def _weight(self, description: Given) -> Expr:
        array = self.weights[description.name]
        if description.shape is not None and any(d >= 0 and d != n for d, n in zip(description.shape, array.shape)):
            said = f"the weight {description.name[:60]} has the shape {array.shape}, and the program says {description.shape}"
            raise damaged(self.file, said, "the file of weights belongs to another program")
        return self.builder.weight(description.name, array)

    def _input(self, description: Given, scope: Scope) -> Var | None:
        """Make an input of the program, or a constant of its value. Raises `RelayError`."""
        b, name = self.builder, description.name
        shape: Sequence[Any] | None = self.options.shapes.get(name)
        if shape is None:
            if description.shape is None:
                notes = [f"give it, such as --shape {name}=1x3x224x224"]
                raise RelayError(error("R0804", f"{self.file}: the shape of the input {name} is not known", notes=notes))
            shape = [ANY if d < 0 else d for d in description.shape]
        elif description.shape is not None:
            check_axes(self.file, name, description.shape, shape)
        if any(isinstance(d, int) and not 0 <= d < _LARGEST for d in shape) or len(shape) > 32:
            raise damaged(self.file, f"the input {name} has the shape {str(tuple(shape))[:80]}")
        ty = TensorType(list(shape), self.options.dtypes.get(name, description.dtype))
        why = unsound(ty)
        if why is not None:
            raise damaged(self.file, f"the input {name}: {why}")
        if name in self.options.values:
            scope.values[description.key] = b.const(value_for(self.file, name, self.options.values[name], ty.shape, ty.dtype))
            return None
        b.span = b.listing.add(Layer("Input", "", (), (name,)))
        variable = b.variable(b.unique(name), ty)
        scope.values[description.key] = variable
        return variable

    # ---- operations

    def convert(self, block: Block, scope: Scope) -> None:
        """Convert a block's operations in their order; their results go to the scope."""
        b = self.builder
        for operation in block.operations:
            if operation.type in LEFT_OUT:
                continue
            layer = Layer(operation.name, "", _names(operation.operands), _names(operation.results))
            if id(operation) not in self._spans:  # the body of a loop is converted several times
                self._spans[id(operation)] = b.listing.add(layer)
            b.span = span = self._spans[id(operation)]
            results: Sequence[Any] = ()
            operands: list[Any] = []
            try:
                results = self._converted(operation, scope, operands)
            except Skipped:
                pass
            except Unsupported as why:
                if id(operation) not in self._reported:
                    self._reported.add(id(operation))
                    self.report.unsupported(operation.name, layer.label, span, why.reason)
                results = self._external(operation, scope) if self.options.partial else ()
            except Exception as wrong:
                self.errors += failure(wrong, layer, span, operands)
            self._keep(operation, results, scope)

    def _keep(self, operation: Operation, results: Sequence[Any], scope: Scope) -> None:
        """Note the results of an operation under their keys."""
        for at, key in enumerate(operation.results):
            value = results[at] if at < len(results) and results[at] is not None else LEFT if results else MISSING
            if isinstance(key, list):
                parts = value if isinstance(value, list) else []
                for i, own in enumerate(key):
                    scope.values[own] = parts[i] if i < len(parts) else MISSING
            elif key is not None:
                scope.values[key] = value
        if operation.changed is not None and results:
            scope.values[operation.changed] = results[0]

    def _external(self, operation: Operation, scope: Scope) -> list[Any]:
        """The results of an external function, as the operation names them; none where the file does not state their types."""
        operands = [scope.get(k, MISSING) for key in operation.operands for k in (key if isinstance(key, list) else [key])]
        results = operation.results
        keys = [k for key in results for k in (key if isinstance(key, list) else [key]) if k is not None]
        if MISSING in operands or LEFT in operands or operation.blocks:
            return []
        types = [stated_type(*self.program.stated(key)) for key in keys]
        externals = iter(external(self.builder, operation.name, [x for x in operands if isinstance(x, Expr)], types))
        return [
            [next(externals, MISSING) for _ in k] if isinstance(k, list) else next(externals, MISSING) if k is not None else None
            for k in results
        ]

    def _operand(self, key: Any, scope: Scope) -> Any:
        if isinstance(key, list):
            return [self._operand(k, scope) for k in key]
        if isinstance(key, np.ndarray):
            return self.builder.const(key)
        if key is None:
            return None
        value = scope.get(key)
        if value is None:
            raise Malformed(f"its operand {str(key)[:60]!r} is no result of an operation before it")
        if value is MISSING:
            raise Skipped
        if value is LEFT:
            raise Unsupported(f"its operand {str(key)[:60]!r} is a result that the importer does not compute")
        return value

    def _converted(self, operation: Operation, scope: Scope, operands: list[Any]) -> Sequence[Any]:
        rule = self.rules.find(operation.type)
        if rule is None:
            raise Unsupported(REFUSED.get(operation.type, ""))
        operands += [self._operand(key, scope) for key in operation.operands]
        why = self.rules.wrong_operands(rule, operands)
        if why:
            raise Malformed(why)
        converted = rule.convert(Node(self, operation, scope), *operands)
        return [converted] if isinstance(converted, Expr) else list(converted)

    def found(self, scope: Scope, key: Key) -> Any:
        """The value of a key behind a block. Raises `Skipped` where its operation was not converted."""
        value = scope.get(key, MISSING)
        if value is MISSING:
            if not self.errors and not self.report.entries:
                raise Malformed(f"its block does not compute {str(key)[:60]!r}")
            raise Skipped
        return value

    def body(self, node: Node, block: Block, arguments: Sequence[Expr], values: Mapping[Key, Any] = {}) -> Scope:
        """The values of a block inside an operation, converted in place with these arguments, and with other values of keys."""
        if len(arguments) != len(block.arguments):
            raise Malformed(f"its block has {len(block.arguments)} arguments, not {len(arguments)}")
        self.budget.take_nodes(1 + len(block.operations), "writing the blocks inside its operations out")
        scope, span = Scope(node.scope), self.builder.span
        scope.values.update(zip(block.arguments, arguments))
        scope.values.update(values)
        self.convert(block, scope)
        self.builder.span = span
        return scope

    def yielded(
        self, node: Node, block: Block, arguments: Sequence[Expr] = (), values: Mapping[Key, Any] = {}, kept: Sequence[Key] = ()
    ) -> list[Any]:
        """The results of a block that ends with a list of them; then the values of the keys `kept` behind it."""
        last = block.operations[-1] if block.operations else None
        if last is None or last.type != "cf.yield":
            raise Malformed("its block does not end with its results")
        scope = self.body(node, Block(block.operations[:-1], block.arguments), arguments, values)
        results = [self.found(scope, key) for key in last.operands]
        if not all(isinstance(v, Expr) for v in results):
            raise Unsupported("its block gives a list of tensors")
        return [*results, *[self.found(scope, key) for key in kept]]


def _names(keys: Sequence[Any]) -> tuple[str, ...]:
    """The names of values in the listing; numbers are written as in PIR's text."""
    flat = [k for key in keys for k in (key if isinstance(key, list) else [key])]
    return tuple([k if isinstance(k, str) else f"%{k}" for k in flat if isinstance(k, (str, int))])


def import_paddle(model: Any, options: Options = DEFAULTS, file: str = "", params: Any = None) -> Imported:
    """A program from a model of PaddlePaddle: the bytes or the path of a `.pdmodel`, `.json` or `__model__` file.

    `model` may also be a `Program` or a `TranslatedLayer` of PaddlePaddle. `params` are its weights: arrays by name, or the
    bytes or the path of a `.pdiparams` file; by default they are beside the program. Raises `RelayError`: a file is damaged
    or missing (R0802), options do not fit (R0804), operations are wrong (R0805) or cannot be converted (R0801).
    """
    if isinstance(model, (str, os.PathLike)):
        file = file or os.fspath(model)
        options = options if options.folder else replace(options, folder=os.path.dirname(os.path.abspath(file)))
    source: Source = source_of(model, file)
    with gc_paused(), np.errstate(all="ignore"):
        budget = Budget(source.name, len(source.data), options.nodes, options.bytes, options.work)
        program = source.program()
        arrays = weights_of(source, program, options, budget, params)
        return Importer(program, arrays, source.name, options, budget).run()


__all__ = ["Importer", "Scope", "Skipped", "import_paddle"]
