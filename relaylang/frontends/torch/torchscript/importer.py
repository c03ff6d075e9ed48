"""TorchScript to Relay: the program's inputs and results, around the evaluation of its `forward`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from relaylang.diagnostics import RelayError, error, first_ones
from relaylang.frontends.common import Builder, Imported, Layer, Listing, Report, Unsupported, check_names, damaged, failure, finish
from relaylang.frontends.common.complexes import PARTS, Complex, constant, paired, unpaired
from relaylang.frontends.options import Options
from relaylang.frontends.torch.custom import Custom
from relaylang.frontends.torch.table import table
from relaylang.frontends.torch.torchscript.archive import Archive, Class, read_archive
from relaylang.frontends.torch.torchscript.machine import Machine
from relaylang.frontends.torch.torchscript.quantized import real
from relaylang.frontends.torch.torchscript.values import MISSING, Raised, Record, Skipped, Stored, Tensor, Undefined
from relaylang.ir import Expr, TensorType, Var
from relaylang.runtime.budget import Budget

#: Types of inputs that are numbers, and their element types.
_NUMBERS = {"int": "int64", "float": "float64", "bool": "bool", "number": "float64"}


def import_torchscript(
    data: bytes, file: str, options: Options, names: Sequence[str] = (), converters: Mapping[str, Custom] | None = None
) -> Imported:
    """A program from the bytes of a TorchScript archive. `names` replace those of forward's arguments, by position.

    `converters` has conversions that the caller brings, by the operator's name.

    Raises `RelayError`: the file is damaged (R0802), options do not fit, or an input has no shape (R0804), calls are wrong
    (R0805) or cannot be converted (R0801).
    """
    budget = Budget(file, len(data), options.nodes, options.bytes, options.work)
    archive = read_archive(data, file, budget)
    try:
        return _Importer(archive, file, options, names, converters or {}, budget).run()
    except RecursionError:
        raise damaged(file, "its code is nested too deep") from None


class _Importer:
    def __init__(
        self, archive: Archive, file: str, options: Options, names: Sequence[str], converters: Mapping[str, Custom], budget: Budget
    ) -> None:
        self.archive = archive
        self.file = file
        self.options = options
        rules = table()
        self.report = Report(file, rules.names())
        self.builder = Builder(Listing(file), self.report, options, budget)
        self.machine = Machine(archive, self.builder, self.report, rules, file)
        self.machine.converters = converters
        self.inputs: list[Var] = []
        self.given = names
        #: Inputs that are numbers of unknown value.
        self.numbers: list[str] = []

    def run(self) -> Imported:
        """The Relay program."""
        self._name_tensors()
        module = self.archive.module
        definition = self.archive.sources.find(module.kind)
        forward = definition.methods.get("forward") if isinstance(definition, Class) else None
        if forward is None:
            raise damaged(self.file, "its module has no method forward")
        self._check(forward)
        args = self._arguments(forward)
        self._attributes()
        before = self._state()
        try:
            result = self.machine.method(module, "forward", args)
            outputs = self._results(result) + self._mutated(before)
        except Raised as why:
            note = "--shape gives inputs their shapes; --value gives numbers their values"
            raise RelayError(error("R0804", f"{self.file}: the program refuses its inputs: {why}", notes=[note])) from None
        except Skipped:
            self._raise()
            raise damaged(self.file, "a result of the program is not defined") from None
        except Unsupported as why:
            self._stop(why)
            raise
        except RelayError:
            raise
        except Exception as wrong:
            raise RelayError(failure(wrong, self.machine.layer, self.builder.span)) from wrong
        self._raise()
        if not outputs:
            raise damaged(self.file, "the program has no results")
        return finish(self.builder, self.inputs, outputs)

    def _raise(self) -> None:
        """Raise the mistakes so far."""
        if self.machine.errors:
            raise RelayError(first_ones(self.machine.errors))
        wrong = self.report.diagnostic()
        if wrong is not None:
            notes = [f"{name} has no value; --value {name}=1 gives one, where the code needs it" for name in self.numbers]
            raise RelayError(replace(wrong, notes=(*wrong.notes, *notes)))

    def _stop(self, why: Unsupported) -> None:
        """Raise for code that cannot be evaluated, with the calls before it that cannot be converted."""
        b = self.builder
        span = b.span if b.span is not None else b.listing.add(Layer("forward"))
        self.report.unsupported("TorchScript code", b.listing.layer_at(span).label, span, why.reason)
        self._raise()

    # ---- inputs

    def _names(self, forward: ast.FunctionDef) -> list[str]:
        """The names of the inputs."""
        own = [p.arg for p in forward.args.args[1:]]
        if len(self.given) > len(own):
            said = f"{self.file} has {len(own)} inputs, not {len(self.given)}: {', '.join(own)}"
            raise RelayError(error("R0804", said))
        return [*self.given, *own[len(self.given) :]]

    def _check(self, forward: ast.FunctionDef) -> None:
        """Raise for shapes and element types of inputs that the program lacks."""
        stated = [*self.options.shapes, *self.options.dtypes, *self.options.values]
        names = self._names(forward)
        parts = [n for n in stated if n.rpartition(".")[0] in names or self._holder(n) is not None]
        real = {name: PARTS.get(dtype, dtype) for name, dtype in self.options.dtypes.items()}
        check_names(self.file, replace(self.options, dtypes=real), [*names, *parts], parts)

    def _arguments(self, forward: ast.FunctionDef) -> list[Any]:
        """The values of forward's arguments. All inputs without shapes are named in one diagnostic."""
        params = forward.args.args[1:]
        first = len(params) - len(forward.args.defaults)
        args: list[Any] = []
        missing: list[str] = []
        for i, (name, param) in enumerate(zip(self._names(forward), params)):
            default = forward.args.defaults[i - first] if i >= first else None
            args.append(self._argument(name, param.annotation, default, missing))
        if missing:
            rows = [f"--shape {name}=1x3x224x224" for name in missing]
            said = f"{self.file}: TorchScript states no shapes of inputs: {', '.join(missing)}"
            raise RelayError(error("R0804", said, notes=[*rows, "Options.shapes gives them in Python"]))
        return args

    def _argument(self, name: str, kind: ast.expr | None, default: ast.expr | None, missing: list[str]) -> Any:
        values, shapes = self.options.values, self.options.shapes
        text = ast.unparse(kind) if kind is not None else "Tensor"
        if name in values:
            value = values[name]
            if value is None or isinstance(value, (str, bool, int, float)):
                return value
            array = np.asarray(value)
            array = array.astype(self.options.dtypes[name]) if name in self.options.dtypes else array
            if "Tensor" not in text:
                return array.reshape(()).item()
            return Tensor(constant(self.builder, array) if np.iscomplexobj(array) else self.builder.const(array))
        inner = text.removeprefix("Optional[").removesuffix("]") if text.startswith("Optional[") else text
        if inner in _NUMBERS:
            if default is not None and name not in shapes:
                return self._default(default)
            self.numbers.append(name)
            return self._variable(name, (), self.options.dtypes.get(name, _NUMBERS[inner]))
        if inner != "Tensor" and isinstance(kind, ast.Subscript):
            return self._several(name, kind, default, missing)
        if name not in shapes:
            if default is not None:
                return self._default(default)
            if text.startswith("Optional["):
                return None
            missing.append(name)
            return None
        dtype = self.options.dtypes.get(name, "float32")
        if dtype in PARTS:
            return Tensor(unpaired(self.builder, self._variable(name, (*shapes[name], 2), PARTS[dtype])))
        return Tensor(self._variable(name, shapes[name], dtype))

    def _several(self, name: str, kind: ast.Subscript, default: ast.expr | None, missing: list[str]) -> Any:
        """A tuple or list of tensors: its parts are the inputs `name.0`, `name.1`, ..."""
        head, text = ast.unparse(kind.value), ast.unparse(kind)
        if head == "Optional":
            if not any(key.startswith(f"{name}.") for key in self.options.shapes) and default is not None:
                return self._default(default)
            inner = kind.slice
            return self._several(name, inner, default, missing) if isinstance(inner, ast.Subscript) else None
        if head == "Tuple":
            parts = kind.slice.elts if isinstance(kind.slice, ast.Tuple) else [kind.slice]
            return tuple([self._argument(f"{name}.{i}", part, None, missing) for i, part in enumerate(parts)])
        if head == "List":
            keys = [key for key in self.options.shapes if key.rpartition(".")[0] == name]
            if not keys:
                missing.append(f"{name}.0")
            return [self._argument(f"{name}.{i}", kind.slice, None, missing) for i in range(len(keys))]
        raise RelayError(error("R0801", f"{self.file}: the input {name} has the type {text}, which Relay lacks"))

    def _default(self, node: ast.expr) -> Any:
        return self.machine.constant(node)

    def _variable(self, name: str, shape: Any, dtype: str) -> Var:
        b = self.builder
        b.span = b.listing.add(Layer("Input", "", (), (name,)))
        variable = b.variable(b.unique(name), TensorType(shape, dtype))
        self.inputs.append(variable)
        return variable

    # ---- the state of modules

    def _records(self) -> list[Record]:
        """All records, with their paths."""
        records, seen = [], set()
        queue = [self.archive.module]
        while queue:
            record = queue.pop()
            if id(record) in seen:
                continue
            seen.add(id(record))
            records.append(record)
            for name, value in record.fields.items():
                if isinstance(value, Record) and id(value) not in seen:
                    value.path = value.path or (f"{record.path}.{name}" if record.path else name)
                    queue.append(value)
        return records

    def _name_tensors(self) -> None:
        """Give the file's tensors the paths of their fields as names; those in lists get them last."""
        for record in self._records():
            for name, value in record.fields.items():
                if isinstance(value, Stored):
                    value.name = value.name or f"{record.path}.{name}".lstrip(".")
        for record in self._records():
            for name, value in record.fields.items():
                for i, part in enumerate(value if isinstance(value, (list, tuple)) else ()):
                    if isinstance(part, Stored):
                        part.name = part.name or f"{record.path}.{name}.{i}".lstrip(".")

    def _holder(self, path: str) -> tuple[Record, str] | None:
        """The record that has a field, and its name there."""
        front, _, name = path.rpartition(".")
        for record in self._records():
            if record.path == front and name in record.fields and not isinstance(record.fields[name], Record):
                return record, name
        return None

    def _attributes(self) -> None:
        """Fields of modules that the caller gives: values, and shapes of those that become inputs."""
        taken = {v.name_hint for v in self.inputs}
        for path, value in self.options.values.items():
            holder = None if path in taken else self._holder(path)
            if holder is not None:
                record, name = holder
                old = record.fields[name]
                array = np.asarray(value)
                record.fields[name] = Tensor(self.builder.const(array)) if isinstance(old, Stored) else array.reshape(()).item()
        for path, shape in self.options.shapes.items():
            holder = None if path in taken else self._holder(path)
            if holder is not None and isinstance(holder[0].fields[holder[1]], Stored):
                record, name = holder
                dtype = self.options.dtypes.get(path, record.fields[name].array.dtype.name)
                record.fields[name] = Tensor(self._variable(path, shape, dtype))

    def _state(self) -> dict[tuple[int, str], Any]:
        """The fields of all records before the call."""
        state = {}
        for record in self._records():
            for name, value in record.fields.items():
                state[id(record), name] = value
        return state

    # ---- results

    def _mutated(self, before: dict[tuple[int, str], Any]) -> list[Expr]:
        """The new values of tensors in fields, in the order of their paths."""
        values = []
        for record in self._records():
            for name, value in record.fields.items():
                old = before.get((id(record), name))
                if isinstance(value, Tensor) and isinstance(old, (Stored, Tensor)) and value is not old:
                    values.append((f"{record.path}.{name}".lstrip("."), value))
                elif isinstance(value, Stored) and value.made is not None and value.made.version:
                    values.append((f"{record.path}.{name}".lstrip("."), value.made))
        return [self._result(value) for _, value in sorted(values, key=lambda pair: pair[0])]

    def _results(self, value: Any) -> list[Expr]:
        """The tensors and numbers of a result in order."""
        results, stack = [], [value]
        while stack:
            at = stack.pop()
            self.builder.budget.take_nodes(1, "taking its results apart")  # lists in lists can double, or hold themselves
            if isinstance(at, (list, tuple)):
                stack += reversed(at)
            elif isinstance(at, dict):
                stack += reversed(list(at.values()))
            elif isinstance(at, Record):
                stack += reversed(list(at.fields.values()))
            elif at is not None:
                results.append(self._result(at))
        return results

    def _result(self, value: Any) -> Expr:
        if value is MISSING:
            raise Skipped
        if isinstance(value, Undefined):
            raise Unsupported(value.reason)
        if isinstance(value, Stored):
            value = self.machine.tensor(value)
        if isinstance(value, Tensor):
            number = real(self.builder, value)
            return paired(self.builder, number) if isinstance(number, Complex) else number
        if isinstance(value, Expr):
            return value
        if isinstance(value, (bool, int, float)):
            return self.builder.const(value, "bool" if isinstance(value, bool) else "int64" if isinstance(value, int) else "float32")
        raise Unsupported("a result is no tensor and no number")


__all__ = ["import_torchscript"]
