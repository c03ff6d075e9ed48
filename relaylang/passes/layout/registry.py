"""The functions that users register for layouts: the wanted layout of a call, and the layouts of its results.

Example:

    @register_alter_op_layout("nn.conv2d")
    def blocks_of_8(attrs, inputs, tinfos, out_type):
        return relaylang.nn.contrib_conv2d_nchwc(*inputs, **{**attrs, "data_layout": "NCHW8c", "kernel_layout": "OIHW8i8o"})

    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", blocks_of_8):
        mod = AlterOpLayout()(mod)
"""

from __future__ import annotations

import itertools
from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from typing import Any, ClassVar

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.ir import Expr
from relaylang.ops.extensions import find
from relaylang.ops.extensions import names as operator_names
from relaylang.passes.quantize.legalizations import MAPS
from relaylang.rules.layout import RULES, Rule

#: `(attributes, operands, their types, the result's type)` to a call, or None to leave it as it is.
Alter = Callable[[Any, Sequence[Expr], Sequence[Any], Any], "Expr | None"]
#: `(attributes, operands, their types, the layouts that are asked for)` to a call, or None to leave it as it is.
Convert = Callable[[Any, Sequence[Expr], Sequence[Any], Sequence[str]], "Expr | None"]

#: Operator -> function, as users registered them.
ALTER: dict[str, Alter | None] = {}
CONVERT: dict[str, Convert] = {}
#: Operator -> rule: the table's, with those of users on top.
INFER: ChainMap[str, Rule] = ChainMap({}, dict(RULES))

_TABLES: dict[str, MutableMapping[str, Any]] = {
    "FTVMAlterOpLayout": ALTER,
    "FTVMConvertOpLayout": CONVERT,
    "FInferCorrectLayout": INFER,
}


def registrations() -> dict[tuple[str, str], int]:
    """The registered rules: the identity of the function by table and operator."""
    tables = {**_TABLES, **MAPS}
    return {(name, op): id(function) for name, table in tables.items() for op, function in table.items()}


def _known(op_name: str) -> None:
    if find(op_name) is None:
        near = did_you_mean(op_name, operator_names())
        raise RelayError(error("R0501", f"there is no operator {op_name}", notes=[f"did you mean {near}?"] if near else []))


def _register(table: MutableMapping[str, Any], op_name: str, function: Any) -> Any:
    _known(op_name)

    def add(f: Any) -> Any:
        table[op_name] = f
        return f

    return add(function) if function is not None else add


def register_alter_op_layout(op_name: str, alter_layout: Alter | None = None, level: int = 10) -> Any:
    """Say which call AlterOpLayout is to make of an operator's; also a decorator. `level` is TVM's, and not used."""
    return _register(ALTER, op_name, alter_layout)


def register_convert_op_layout(op_name: str, convert_layout: Convert | None = None, level: int = 10) -> Any:
    """Say how ConvertLayout brings an operator into the layouts that are asked for; also a decorator."""
    return _register(CONVERT, op_name, convert_layout)


def register_infer_correct_layout(op_name: str, infer_layout: Rule | None = None, level: int = 10) -> Any:
    """Say which layouts an operator's operands and results have; also a decorator. `rules/layout/rule.py` has the protocol."""
    return _register(INFER, op_name, infer_layout)


class TempOpAttr:
    """A registered function for as long as a `with` block lasts. `attr_key` is `FTVMAlterOpLayout`,
    `FTVMConvertOpLayout`, `FInferCorrectLayout`, or a map of `register_legalize`. Raises `RelayError`."""

    def __init__(self, op_name: str, attr_key: str, attr_value: Any) -> None:
        _known(op_name)
        if attr_key not in _TABLES and not attr_key.startswith("FTVM") and attr_key not in MAPS:
            near = did_you_mean(attr_key, [*_TABLES, *MAPS, "FTVMLegalize"])
            notes = [f"did you mean {near}?"] if near else [f"there are {', '.join([*_TABLES, 'FTVMLegalize'])}"]
            raise RelayError(error("R0501", f"operators have no {attr_key}", notes=notes))
        self.op_name = op_name
        self.attr_key = attr_key
        self.attr_value = attr_value
        self.older_attr: Any = None

    def _table(self) -> MutableMapping[str, Any]:
        return _TABLES[self.attr_key] if self.attr_key in _TABLES else MAPS.setdefault(self.attr_key, {})

    def __enter__(self) -> TempOpAttr:
        self.older_attr = self._table().get(self.op_name, self)
        self._table()[self.op_name] = self.attr_value
        return self

    def __exit__(self, *_: object) -> None:
        if self.older_attr is self:
            self._table().pop(self.op_name, None)
        else:
            self._table()[self.op_name] = self.older_attr


class LayoutConfig:
    """Excludes nn.conv2d calls from ConvertLayout inside a `with` block.

    `skip_layers` lists the calls by their number in program order, from 0. `current` is the innermost open block.
    """

    current: ClassVar[LayoutConfig | None] = None
    _open: ClassVar[list[LayoutConfig]] = []

    def __init__(self, skip_layers: Iterable[int] | None = None) -> None:
        self.skip_layers = frozenset(skip_layers or ())
        self._numbers = itertools.count()

    def check_skip(self) -> bool:
        """Count one convolution; return whether `skip_layers` lists it."""
        return next(self._numbers) in self.skip_layers

    def reset(self) -> None:
        """Exclude nothing, and count from 0 again."""
        self.skip_layers, self._numbers = frozenset(), itertools.count()

    def __enter__(self) -> LayoutConfig:
        LayoutConfig._open.append(self)
        LayoutConfig.current = self
        return self

    def __exit__(self, *_: object) -> None:
        LayoutConfig._open.pop()
        LayoutConfig.current = LayoutConfig._open[-1] if LayoutConfig._open else None
