"""Texts that are built to break a reader: deep, long, unbalanced, or more than they seem.

`TEXTS[name](n)` makes a text whose size grows linearly with `n`. Some are programs, most have errors. `survive` reads a
text and applies every verb that it can; it returns a result or a diagnostic.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable

from relaylang.diagnostics import RelayError
from relaylang.ir import Expr, IRModule, structural_hash
from relaylang.passes.normal_forms.to_a_normal_form import to_anf
from relaylang.syntax import astext, parse
from relaylang.testing.roundtrip import reads_back
from relaylang.typing import infer

HEADER = '#[version = "0.0.5"]\n'
_NUMBERS = "type N { Z, S(N) }\n"


def nest(opening: str, inside: str, closing: str) -> Callable[[int], str]:
    """`n` brackets around something."""
    return lambda n: opening * n + inside + closing * n


def _lines(head: str, line: Callable[[int], str], tail: Callable[[int], str]) -> Callable[[int], str]:
    return lambda n: head + "".join([line(i) for i in range(n)]) + tail(n)


def _section(nodes: list[dict[str, object]], blobs: list[str]) -> str:
    return "\n#[metadata]\n" + json.dumps({"root": 1, "nodes": [{"type_key": ""}, *nodes], "b64ndarrays": blobs})


def _metadata(nodes: list[dict[str, object]], blobs: list[str] | None = None) -> str:
    """A function with the first value of a section as an attribute; the values' nodes begin at number 3."""
    top: list[dict[str, object]] = [
        {"type_key": "Map", "keys": ["X"], "data": [2]},
        {"type_key": "Array", "data": [3]},
    ]
    return "fn (a=meta[X][0]) { () }" + _section([*top, *nodes], blobs or [])


def _doubling(levels: int) -> str:
    """A list of two lists of two lists, and so on; it has `2 ** levels` elements."""
    nodes: list[dict[str, object]] = [{"type_key": "Array", "data": [i + 4, i + 4]} for i in range(levels)]
    return _metadata([*nodes, {"type_key": "runtime.String", "repr_str": "end"}])


def _chain(length: int) -> str:
    nodes: list[dict[str, object]] = [{"type_key": "Array", "data": [i + 4]} for i in range(length)]
    return _metadata([*nodes, {"type_key": "runtime.String", "repr_str": "end"}])


def _blob(rank: int, extent: int, claimed: int) -> str:
    head = struct.pack("<QQiiiBBH", 0xDD5E40F096B4A13F, 0, 1, 0, rank, 2, 32, 1)
    return base64.b64encode(head + struct.pack("<qq", extent, claimed) + b"\0" * 16).decode()


def _lying(blob: str) -> str:
    nodes: list[dict[str, object]] = [
        {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
        {"type_key": "Array", "data": [3]},
        {"type_key": "relay.Constant", "attrs": {"data": "0"}},
    ]
    return "meta[relay.Constant][0]" + _section(nodes, [blob])


TEXTS: dict[str, Callable[[int], str]] = {
    # programs, deep
    "parentheses": nest("(", "1", ")"),
    "braces": nest("{", "1", "}"),
    "tuples": nest("(", "1", ",)"),
    "calls": nest("log(", "1f", ")"),
    "functions": nest("fn () { ", "1", " }"),
    "functions of one parameter": nest("fn (%x: int32) { ", "%x", " }"),
    "ifs": nest("if (True) { ", "1", " } else { 2 }"),
    "ifs as conditions": nest("if (", "True", ") { True } else { False }"),
    "ifs in the else branch": nest("if (True) { 1 } else { ", "2", " }"),
    "lets as values": nest("let %x = ", "1", "; %x"),
    "lets in a row": _lines("", lambda i: f"let %x{i} = 1;\n", lambda n: f"%x{n - 1}"),
    "lets in parentheses": nest("(let %x = 1; ", "%x", ")"),
    "matches": nest("match (1) { %x => { ", "%x", " } }"),
    "matches of matches": nest("match (", "1", ") { %x => { %x } }"),
    "references": nest("ref(", "1", ")"),
    "reads of references": lambda n: "ref_read(" * n + "ref(" * n + "1" + ")" * (2 * n),
    "minus signs": lambda n: "-" * n + " 1",
    "a sum": lambda n: "1" + " + 1" * n,
    "a comparison": lambda n: "True" + " == True" * n,
    "closures called": nest("(fn () { ", "1", " })()"),
    "a chain of graph bindings": _lines("%0 = 1f;\n", lambda i: f"%{i + 1} = log(%{i});\n", lambda n: f"%{n}"),
    "projections": lambda n: "%t" + ".0" * n,
    "a tuple of many": lambda n: f"({'1, ' * n})",
    "a call of many": lambda n: f"%f({', '.join(['1'] * n)})",
    "many parameters": lambda n: f"fn ({', '.join([f'%x{i}' for i in range(n)])}) {{ () }}",
    "many functions": _lines(HEADER, lambda i: f"def @f{i}() {{ 1 }}\n", lambda n: ""),
    "many types": _lines(HEADER, lambda i: f"type T{i} {{ C{i}, }}\n", lambda n: ""),
    "many arms": lambda n: f"{HEADER}{_NUMBERS}def @f(%n: N[]) {{ match? (%n) {{ {'Z => { 1 }, ' * n} }} }}",
    # types and patterns, deep
    "tuple types": lambda n: f"free_var %x: {'(' * n}int32{',)' * n}; %x",
    "function types": lambda n: f"free_var %x: {'fn (' * n}int32{') -> int32' * n}; %x",
    "types in parentheses": lambda n: f"free_var %x: {'(' * n}int32{')' * n}; %x",
    "reference types": lambda n: f"free_var %x: {'ref(' * n}int32{')' * n}; %x",
    "type calls": lambda n: f"{HEADER}type L[A] {{ C(A) }}\ndef @f(%x: {'L[' * n}int32{']' * n}) {{ %x }}",
    "a wide shape": lambda n: f"free_var %x: Tensor[({'1, ' * n}1), int8]; %x",
    "tuple patterns": lambda n: f"match (%x) {{ {'(' * n}%a{',)' * n} => {{ %a }} }}",
    "constructor patterns": lambda n: f"{HEADER}{_NUMBERS}def @f(%x: N[]) {{ match? (%x) {{ {'S(' * n}%a{')' * n} => {{ 1 }} }} }}",
    "constructors": lambda n: f"{HEADER}{_NUMBERS}def @f() {{ {'S(' * n}Z{')' * n} }}",
    # attributes
    "lists of lists": lambda n: f"fn (a={'[' * n}1{']' * n}) {{ () }}",
    "maps of maps": lambda n: "fn (a=" + '{"k": ' * n + "1" + "}" * n + ") { () }",
    "many attributes": lambda n: f"fn ({', '.join([f'a{i}=1' for i in range(n)])}) {{ () }}",
    "a long list": lambda n: f"fn (a=[{'1, ' * n}1]) {{ () }}",
    # sharing
    "each twice": _lines("%0 = (1, 1);\n", lambda i: f"%{i + 1} = (%{i}, %{i});\n", lambda n: f"%{n}"),
    "each added to itself": _lines("%0 = 1f;\n", lambda i: f"%{i + 1} = add(%{i}, %{i});\n", lambda n: f"%{n}"),
    # long words
    "a long variable": lambda n: "%" + "a" * n,
    "a long dotted variable": lambda n: "%" + "a." * n + "a",
    "a long dashed variable": lambda n: "%a" + "-1" * n,
    "a long quoted variable": lambda n: '%"' + " " * n + '"',
    "a long function name": lambda n: f"{HEADER}def @{'f' * n}() {{ 1 }}",
    "a long operator": lambda n: "o" * n + "(1)",
    "a long number": lambda n: "1" * n,
    "a long fraction": lambda n: "1." + "1" * n,
    "a long string": lambda n: f'fn (a="{"s" * n}") {{ () }}',
    "a string of escapes": lambda n: 'fn (a="' + "\\x41\\n\\\\" * n + '") { () }',
    "a long comment": lambda n: "/*" + " " * n + "*/ 1",
    "a long line comment": lambda n: "//" + "x" * n + "\n1",
    "many comments": lambda n: "/* a */ " * n + "1",
    "many line comments": lambda n: "// a\n" * n + "1",
    "nested comments": nest("/*", "", "*/ "),
    "blanks": lambda n: " " * n + "1" + "\n" * n,
    # wrong texts
    "brackets never closed": lambda n: "(" * n,
    "braces never closed": lambda n: "fn () {" * n,
    "brackets never opened": lambda n: ")" * n,
    "braces never opened": lambda n: "1 }" * n,
    "comments never closed": lambda n: "/*" * n + "1",
    "a string never closed": lambda n: 'f(a="' + "x" * n,
    "quotes": lambda n: '"' * n,
    "quotes and backslashes": lambda n: '"\\' * n,
    "percent signs": lambda n: "%" * n,
    "at signs": lambda n: "@" * n,
    "words": lambda n: "let def fn type " * n,
    "semicolons": lambda n: ";" * n,
    "commas": lambda n: "(" + "," * n + ")",
    "unknown operators": lambda n: f"({', '.join([f'no{i}(1)' for i in range(n)])})",
    "unknown variables": lambda n: f"{HEADER}def @f() {{ ({', '.join([f'%no{i}' for i in range(n)])}) }}",
    "one name again and again": lambda n: f"fn ({', '.join(['%x'] * n)}) {{ () }}",
    "functions of one name": lambda n: HEADER + "def @f() { 1 }\n" * n,
    "open lets": lambda n: "let %x = " * n,
    "type errors": lambda n: f"{HEADER}def @f() {{ ({', '.join(['add(1, 2f)'] * n)}) }}",
    "control characters": lambda n: "\x00\x01\x1b[31m" * n,
    "lone surrogates": lambda n: "\ud800" * n + '"\udfff"',
    "letters of other scripts": lambda n: "é名" * n,
    "carriage returns": lambda n: "1;\r\n" * n + "1",
    # metadata
    "brackets of JSON": lambda n: "1\n#[metadata]\n" + "[" * n,
    "maps of JSON": lambda n: "1\n#[metadata]\n" + '{"nodes":' * n,
    "numbers of JSON": lambda n: '1\n#[metadata]\n{"root": ' + "9" * n + "}",
    "a chain of metadata lists": _chain,
}

#: Texts of a size of their own.
SMALL: dict[str, str] = {
    "24 levels, each twice": TEXTS["each twice"](24),
    "metadata lists that double 60 times": _doubling(60),
    "a tensor of 2^62 bytes": _lying(_blob(1, 2**60, 2**62)),
    "a tensor of a negative extent": _lying(_blob(1, -1, 4)),
    "a tensor of rank 2^30": _lying(_blob(2**30, 1, 4)),
    "a tensor that claims less than it has": _lying(_blob(1, 2, 8)),
    "a tensor of a wrong byte count": _lying(_blob(1, 2, 2**40)),
    "a byte order mark": "\ufeff1",
    "a byte order mark inside": "1 \ufeff + 2",
    "nothing": "",
}


def survive(text: str) -> IRModule | Expr | RelayError:
    """Read, check, print, compare, hash, convert to A-normal form and drop a program; return the program or the error.

    Raises `AssertionError` if the printed text is another program.
    """
    try:
        node = parse(text).value
    except RelayError as wrong:
        str(wrong)
        return wrong
    reads_back(node)
    structural_hash(node, map_free_vars=True)
    said = infer(node, fragment=not isinstance(node, IRModule))
    if any(d.severity == "error" for d in said):
        return RelayError(said[:20])
    astext(node)
    to_anf(node)  # type: ignore[type-var]
    return node
