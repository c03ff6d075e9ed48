"""IR to Relay text: modules, definitions, types, and the metadata section behind them.

`expression_text` makes the text of expressions.
"""

from __future__ import annotations

from typing import Any as AnyValue

from relaylang.ir.bulk import gc_paused
from relaylang.ir.expr import (
    Expr,
    Function,
    GlobalVar,
    MetaRef,
    Pattern,
    TypeData,
)
from relaylang.ir.module import IRModule
from relaylang.ir.types import Type
from relaylang.ir.visit import walk
from relaylang.syntax.expression_text import MAX_LEVEL, Crossing, ExpressionText
from relaylang.syntax.metadata import MODULE_KEY, MetaNode
from relaylang.syntax.metadata_writer import save_metadata
from relaylang.syntax.name_text import global_text
from relaylang.syntax.rope import Text, flatten

HEADER = '#[version = "0.0.5"]\n'

_OMITTED = {
    "lossless": "/* metadata omitted */",
    "tvm": (
        "/* For debugging purposes the metadata section has been omitted.\n"
        " * If you would like to see the full metadata section you can set the \n"
        " * option to `True` when invoking `astext`. \n"
        " */"
    ),
}


def _definition(printer: ExpressionText, var: GlobalVar, function: Function) -> Text:
    """`def @f(...) { ... }`"""
    printer.start(function)
    name = "@" + var.name_hint if printer.tvm else global_text(var.name_hint)
    if function.body is None:
        return _external(printer, name, function)
    return walk(printer.function(function, 0, f"def {name}"))


def _external(printer: ExpressionText, name: str, function: Function) -> str:
    """A function that another module defines."""
    value = function.attrs.get("external")
    if not isinstance(value, (MetaNode, MetaRef)):
        value = MetaNode("relay.ExternalFunction")
    printer.kept.append(value)
    return f"def {name} = {printer.attributes.value(value)}"


def _type_data(printer: ExpressionText, data: TypeData) -> str:
    """`type List[A] { ... }`"""
    name = printer.types.text(data.header)
    if data.extern and not printer.tvm:
        return f"extern type {name}"
    names = printer.types.enter(data.type_vars)
    generics = f"[{', '.join(names)}]" if names else ""
    lines = []
    for c in data.constructors:
        inputs = f"({', '.join(map(printer.types.text, c.inputs))})" if c.inputs else ""
        lines.append(f"  {c.name_hint}{inputs},\n")
    printer.types.leave(data.type_vars, names)
    return f"type {name}{generics} {{\n{''.join(lines) or '  ' + chr(10)}}}"


def _module(printer: ExpressionText, mod: IRModule) -> Text:
    """Type definitions, then functions, each in alphabetical order."""
    out: list[AnyValue] = []
    if mod.attrs and not printer.tvm:
        printer.meta[MODULE_KEY] = [mod.attrs]
    for header in sorted(mod.type_definitions, key=lambda t: t.name_hint):
        out += ["\n", _type_data(printer, mod.type_definitions[header]), "\n"]
    for var in sorted(mod.functions, key=lambda v: v.name_hint):
        out += ["\n", _definition(printer, var, mod.functions[var]), "\n"]
    return out[1:]


def _print(printer: ExpressionText, node: AnyValue) -> list[str]:
    match node:
        case IRModule():
            return flatten(_module(printer, node))
        case TypeData():
            return [_type_data(printer, node)]
        case Type():
            return [printer.types.text(node)]
        case Pattern():
            return [printer.pattern(node)]
    return flatten(printer.expression(node))


def _metadata(printer: ExpressionText) -> str:
    return "#[metadata]\n" + save_metadata(printer.meta, typed=printer.tvm and printer.show_types)


def astext(
    node: IRModule | Expr | Type | TypeData | Pattern,
    style: str = "lossless",
    show_types: bool = True,
    show_meta_data: bool = True,
    meta: dict[str, list[AnyValue]] | None = None,
    header: bool | None = None,
    show_spans: bool = False,
) -> str:
    """A module, function, expression, type or pattern as Relay text.

    In the `style` "lossless", `parse` of the text gives a structurally equal program, bit for bit in constants. Printing
    that program gives the same text. The style "tvm" writes the bytes that TVM 0.16 printed.

    `show_types` writes `/* ty=... */` behind expressions with a checked type. Constants without a literal stand in a
    metadata section behind the text. `show_meta_data=False` replaces the section by a comment. With a dict as `meta`,
    they go there instead: type key -> values, indexed as in the text. `show_spans` adds each node's place in its source,
    as TVM does. `header` is whether to write the version line; by default modules and expressions have it, types do not.
    """
    return "".join(text_blocks(node, style, show_types, show_meta_data, meta, header, show_spans))


def text_blocks(
    node: IRModule | Expr | Type | TypeData | Pattern,
    style: str = "lossless",
    show_types: bool = True,
    show_meta_data: bool = True,
    meta: dict[str, list[AnyValue]] | None = None,
    header: bool | None = None,
    show_spans: bool = False,
) -> list[str]:
    """The text of `astext` in pieces, which are written one after another: a long text need not be in memory twice."""
    if style not in MAX_LEVEL:
        raise ValueError(f"style must be 'lossless' or 'tvm', not {style!r}")
    if not isinstance(node, (IRModule, Expr, Type, TypeData, Pattern)):
        raise TypeError(f"astext takes a module, an expression, a type or a pattern, not {type(node).__name__}")
    section = show_meta_data or meta is not None
    printer = ExpressionText(node, style, show_types, section, show_spans)
    with gc_paused():
        try:
            blocks = _print(printer, node)
        except Crossing:
            printer = ExpressionText(node, style, show_types, section, show_spans, careful=True)
            blocks = _print(printer, node)
    if header if header is not None else isinstance(node, (IRModule, Expr)):
        blocks.insert(0, HEADER)
    if meta is not None:
        for key, values in printer.meta.items():
            meta.setdefault(key, []).extend(values)
    elif printer.meta:
        blocks += ["\n", _metadata(printer) if show_meta_data else _OMITTED[style]]
    return blocks
