"""`tvm.ir.save_json` and `load_json`: programs, types and values as the JSON of TVM 0.16, both ways."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.diagnostics import source
from relaylang.ir import Expr, IRModule
from relaylang.syntax import program_reader, program_writer
from relaylang.syntax.metadata_nodes import MetaNode
from relaylang.tvm.ir.nodes import EnvFunc, PrimType
from relaylang.tvm.ir.spans import Placed, SourceName, source_name
from relaylang.tvm.runtime.ndarray import NDArray
from relaylang.tvm.tir import FloatImm, IntImm, boxed
from relaylang.tvm.typed_results import typed
from relaylang.typing import infer


def save_json(node: Any) -> str:
    """A module, an expression, a type or a value as JSON that TVM 0.16 reads.

    Values are numbers, strings, tensors, places, functions under names, and lists and maps of all these. Raises
    `RelayError` (R0011) for a value that has no form in it.
    """
    return program_writer.save_json(_mapped(node, _plain))


def load_json(json_str: str) -> Any:
    """The value of a JSON that `save_json` or TVM wrote, since 0.6. Modules and expressions get their types.

    Raises `RelayError` (R0010) for a damaged text, and for a program with other operators than Relay's.
    """
    value = _mapped(program_reader.load_json(json_str), _shown)
    if isinstance(value, IRModule):
        return typed(value)
    if isinstance(value, Expr):
        infer(value, fragment=True)
    return value


def _mapped(value: Any, f: Callable[[Any], Any]) -> Any:
    """Lists and maps with each value in them that is neither replaced. They nest as values do, not with a program's size."""
    if type(value) in (list, tuple):
        return type(value)([_mapped(v, f) for v in value])
    if type(value) is dict:
        return {key: _mapped(v, f) for key, v in value.items()}
    return f(value)


def _plain(value: Any) -> Any:
    if isinstance(value, NDArray):
        return np.asarray(value)
    if isinstance(value, EnvFunc):
        return MetaNode("EnvFunc", other={"repr_str": value.name})
    if isinstance(value, PrimType):
        return MetaNode("PrimType", {"dtype": value.dtype})
    if isinstance(value, source.Span):
        name = source_name(value)
        texts = {key: str(getattr(value, key)) for key in ("line", "end_line", "column", "end_column")}
        return MetaNode("Span", texts, None, {"source_name": name and MetaNode("SourceName", other={"repr_str": name.name})})
    return value


def _shown(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return NDArray(value)
    if isinstance(value, (float, np.floating)):
        return FloatImm(value.dtype.name if isinstance(value, np.floating) else "float32", float(value))
    if isinstance(value, np.integer):
        return IntImm(value.dtype.name, int(value))
    if not isinstance(value, MetaNode):
        return boxed(value)
    match value.type_key:
        case "EnvFunc":
            return EnvFunc(value.other["repr_str"])
        case "PrimType":
            return PrimType(value.attrs["dtype"])
        case "Span":
            name = (value.parts or {}).get("source_name")
            places = [int(value.attrs[key]) for key in ("line", "end_line", "column", "end_column")]
            return Placed(SourceName(name.other["repr_str"]) if name else None, *places)
    return value


__all__ = ["load_json", "save_json"]
