"""Calls of PyTorch's operators by their names in the code. Those that are missing or wrong are noted, and the rest goes on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from relaylang.diagnostics import Diagnostic
from relaylang.frontends.common import Builder, Layer, Report, Table, Unsupported, failure
from relaylang.frontends.common.complexes import unpaired
from relaylang.frontends.torch import custom
from relaylang.frontends.torch.custom import Custom
from relaylang.frontends.torch.torchscript.branches import Journal
from relaylang.frontends.torch.torchscript.calls import called, convert, plain, wrapped
from relaylang.frontends.torch.torchscript.irregular import SPECIAL
from relaylang.frontends.torch.torchscript.packed import quantised_call
from relaylang.frontends.torch.torchscript.plain_values import PLAIN, compute, number
from relaylang.frontends.torch.torchscript.quantized import SCALED
from relaylang.frontends.torch.torchscript.recurrent import CELLS
from relaylang.frontends.torch.torchscript.schemas import overload_of
from relaylang.frontends.torch.torchscript.values import MISSING, Raised, Skipped, Stored, Tensor, Undefined
from relaylang.ir import Expr

#: The namespaces of operators in the code, and their names in tables and messages.
_SPACES = {
    "torch": "aten",
    "ops.aten": "aten",
    "ops.prim": "prim",
    "": "prim",
    "ops.quantized": "quantized",
    "ops.torchvision": "torchvision",
}
#: Operators of `quantized` that are those of `aten`.
_SAME = frozenset("clamp threshold max_pool1d max_pool2d".split())
#: From this version of archives on, whole numbers have a true quotient; and `full` takes the kind of its number.
_TRUE_DIVISION, _NO_FLOAT_OF_FULL = 4, 5
#: Operators on lists, also of tensors. The same names compute with tensors.
_OF_LISTS = frozenset(("add", "mul", "slice"))


class Operators:
    """What cannot be converted goes to the report, and wrong calls to `errors`. `layer` describes the call.

    `version` is that of the archive: PyTorch gives operators the meaning that they had when it was written.
    """

    def __init__(self, builder: Builder, report: Report, rules: Table, version: int) -> None:
        self.b = builder
        self.version = version
        self.report = report
        self.rules = rules
        self.errors: list[Diagnostic] = []
        #: What a branch changes; None outside of branches that both become part of the program.
        self.journal: Journal | None = None
        self.layer = Layer("")
        #: Conversions that the caller brings, by name.
        self.converters: Mapping[str, Custom] = {}

    def operator(self, name: str, args: list[Any], named: dict[str, Any]) -> Any:
        """The result of `torch.add`, `ops.prim.dtype` or another; `MISSING` where it cannot be converted."""
        layer = self.layer
        space, _, short = name.rpartition(".")
        name = f"{_SPACES[space]}.{short}" if space in _SPACES else name
        self.layer = layer = Layer(name, layer.name, layer.inputs, layer.outputs)
        try:
            return self._result(name, args, named)
        except Skipped:
            return MISSING
        except Raised:  # the program's own error: its code goes another way, or the import ends
            raise
        except Unsupported as why:
            self.report.unsupported(name, layer.label, self.place(layer), why.reason)
        except Exception as wrong:
            self.errors += failure(wrong, layer, self.place(layer), map(plain, (*args, *named.values())))
        return MISSING

    def place(self, layer: Layer) -> Any:
        """The place of a layer in the listing, which is the present one from now on."""
        span = self.b.span
        if span is None or self.b.listing.layer_at(span) is not layer:
            self.b.span = span = self.b.listing.add(layer)
        return span

    def _result(self, name: str, args: list[Any], named: dict[str, Any]) -> Any:
        """The result of an operator of PyTorch."""
        own = custom.find(self.converters, name.removeprefix("ops."))
        if own is not None:
            return self._custom(own, name, args, named)
        space, _, short = name.partition(".")
        if space not in _SPACES.values() or (space == "aten" and not self._known(short)):
            raise Unsupported
        for value in (*args, *named.values()):
            self.usable(value)
        if space == "quantized" and short.endswith(("_prepack", "_unpack")):
            return quantised_call(self.b, short, args)
        args, named = [self.tensors(a) for a in args], {k: self.tensors(v) for k, v in named.items()}
        if self.version < _NO_FLOAT_OF_FULL:
            self._as_before(short, args, named)
        own_space = space in ("quantized", "torchvision")
        special = SPECIAL.get(short) if not own_space else None
        if special is not None:
            result = special(self, *args, **named)
            if result is not NotImplemented:
                return result
        of_list = short in _OF_LISTS and bool(args) and isinstance(args[0], list)
        if not own_space and short in PLAIN and (of_list or not any(_has_tensor(a) for a in (*args, *named.values()))):
            return compute(self.b, short, [*args, *named.values()])
        self.place(self.layer)
        if space == "quantized" and short not in _SAME:
            if short in CELLS:
                return CELLS[short](self.b, *args, **named)
            return quantised_call(self.b, short, args, named)
        if space == "prim":
            raise Unsupported
        if space == "torchvision":
            return called(self.b, self.rules, name, args, named)
        if self.journal is not None and short.endswith("_") and args and isinstance(args[0], Tensor):
            self.journal.note_tensor(args[0])
        return convert(self.b, self.rules, short, args, named)

    def _as_before(self, short: str, args: list[Any], named: dict[str, Any]) -> None:
        """Give a call of an old archive the arguments that keep its meaning: the present operator has another one."""
        if short in ("div", "div_") and self.version < _TRUE_DIVISION and len(args) == 2:
            kinds = [self.b.dtype(a.value) if isinstance(a, Tensor) else type(a).__name__ for a in args]
            if not any(("float" in kind) or ("complex" in kind) for kind in kinds):
                named.setdefault("rounding_mode", "trunc")
        elif short == "full" and named.get("dtype") is None and len(args) == 2 and isinstance(args[1], int):
            args[1] = float(args[1])

    def _known(self, short: str) -> bool:
        """Whether there is a conversion of `aten.short`, or of the operator that it is in place."""
        rules = (f"aten.{short}", f"aten.{short.removesuffix('_')}")
        return short in SPECIAL or short in PLAIN or short in SCALED or any(self.rules.find(name) is not None for name in rules)

    def _custom(self, own: Custom, name: str, args: list[Any], named: dict[str, Any]) -> Any:
        """The result of a conversion that the caller brings."""
        for value in (*args, *named.values()):
            self.usable(value)
        arguments = [self.tensors(a) for a in (*args, *named.values())]
        short = name.rsplit(".", 1)[-1]
        overload = (
            overload_of(short, arguments[: len(args)], dict(zip(named, arguments[len(args) :]))) if name.startswith("aten.") else None
        )
        values = list(overload[1].values()) if overload is not None else arguments
        self.place(self.layer)
        result = wrapped(custom.convert(self.b, own, [plain(v) for v in values]))
        target = arguments[0] if arguments else None
        if short.endswith("_") and isinstance(target, Tensor) and isinstance(result, Tensor):
            if self.journal is not None:
                self.journal.note_tensor(target)
            target.write(self.b.cast(result.value, self.b.dtype(target.value)))
            return target
        return result

    def usable(self, value: Any) -> None:
        """Raises `Skipped` or `Unsupported` for a value that must not be used."""
        if isinstance(value, (list, tuple)):
            for part in value:
                if isinstance(part, Undefined):
                    self.usable(part)
        elif value is MISSING:
            raise Skipped
        elif isinstance(value, Undefined):
            raise Unsupported(value.reason)

    def number(self, kind: str, value: Any) -> Any:
        """A value that the code says to be a number; a tensor of one element becomes one."""
        value = self.tensors(value)
        return SPECIAL[kind](self, value) if isinstance(value, Tensor) else value

    def tensors(self, value: Any) -> Any:
        """The value with tensors of the program in the place of those of the file."""
        if isinstance(value, Stored):
            return self.tensor(value)
        if isinstance(value, list) and any(isinstance(v, Stored) for v in value):
            value[:] = [self.tensors(v) for v in value]
        if isinstance(value, tuple) and any(isinstance(v, (Stored, list, tuple)) for v in value):
            return tuple([self.tensors(v) for v in value])
        return value

    def tensor(self, stored: Stored) -> Tensor:
        """A tensor of the file, as a constant or a weight."""
        if stored.made is None:
            name = stored.name or "constant"
            array = stored.array
            pair = np.iscomplexobj(array)
            array = np.stack([array.real, array.imag], -1) if pair else array
            value = self.b.const(array) if not stored.name else self.b.weight(name, array)
            stored.made = Tensor(unpaired(self.b, value) if pair else value, stored.quant)
            stored.made.number, stored.made.birth = stored.number, 0
        return stored.made

    def truth(self, value: Any) -> Any:
        """A condition: a truth value, or an expression of one. Raises `Skipped` or `Unsupported` where it cannot be used."""
        self.usable(value)
        value = self.tensors(value)
        if isinstance(value, Tensor):
            return SPECIAL["bool"](self, value)
        if isinstance(value, Expr):
            return self.b.cast(number(self.b, value), "bool")
        return bool(value)


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(isinstance(v, Tensor) or (isinstance(v, (list, tuple)) and _has_tensor(v)) for v in value)
    return isinstance(value, Tensor)


__all__ = ["Operators"]
