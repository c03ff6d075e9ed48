"""Patterns as text, written as the programs that they match:

    qnn.requantize(nn.bias_add(qnn.conv2d(_, const, ...), const), ...)

| text | matches |
|---|---|
| `_` | anything |
| `const`, `1f`, `3` | a constant; a scalar of that value |
| `var`, `%x` | a variable; one of that name |
| `nn.relu(p)`, `nn.relu(...)` | a call of the operator; with any arguments |
| `nn.conv2d(p, q, groups=1)` | a call with attributes; `...` behind the arguments leaves further ones open |
| `(p, q)`, `tuple`, `p.0` | a tuple; any tuple; a field |
| `p | q` | either, the left one first; in parentheses where it stands inside |
| `nn.relu?(p, ...)` | the call around `p`, or `p` alone |
| `$a`, `$a=p` | a part with a name; where the name stands again it is the same node |
| `p : int8`, `p : Tensor[(1, _, 8), _]` | with that element type, shape (`_` for any extent), or both |
| `p @ key=value` | with that attribute (of a function, or `TOpPattern` of an operator) |
| `(exp | log)(p)` | a call of one of the operators |
| `op(p)` | a call of any operator or function; `op @ TOpPattern=0 (p)` one of a kind |
| `fn (p, q) { r }`, `fn { r }` | a function |
| `if (p) { q } else { r }`, `let p = q; r` | a branch; a let |
| `dominates(parent, path, child)` | the child, every way up from which leads along the path to the parent |
"""

from __future__ import annotations

import ast
import re
from typing import Any, NoReturn

from relaylang.diagnostics import RelayError, did_you_mean, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.ir import ANY, Constant, TensorType, const, type_text
from relaylang.ops import OPS
from relaylang.ops.extensions import find, names
from relaylang.patterns.language import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    OpNamePattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
)

_TOKEN = re.compile(
    r"""\s+|(?P<number>-?(?:\d+\.\d*(?:[eE][-+]?\d+)?|\d+(?:[eE][-+]?\d+)?)(?:f(?:16|32|64)?|i(?:8|16|32|64))?(?![\w.]))
    |(?P<string>"(?:[^"\\]|\\.)*")|(?P<rest>\.\.\.)|(?P<var>%[\w.]+)|(?P<bind>\$\w+)
    |(?P<field>\.\d+)|(?P<name>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)|(?P<sign>[()\[\]{}|,=:;?@])""",
    re.VERBOSE,
)
_DTYPE = re.compile(r"(?:u?int(?:1|2|4|8|16|32|64|128)|float(?:16|32|64|8_\w+)|bfloat16|bool)$")
_DEPTH = 100
_HELP = "`relay match --help` shows how patterns are written"
#: Words and signs of other notations, and what to write here. Functions of `relaylang.dataflow_pattern` are among them.
_HERE = {
    "*": "`_` matches anything, `...` any further arguments",
    "?": "`_` matches anything",
    "%": "`var` matches a variable",
    "wildcard": "`_` matches anything",
    "any": "`_` matches anything",
    "is_op": "a call is written as in a program: `nn.relu(_)`",
    "is_constant": "`const` matches a constant",
    "constant": "`const` matches a constant",
    "is_expr": "`1f` matches that number",
    "is_var": "`var` matches a variable, `%x` one of that name",
    "is_tuple": "`(p, q)` matches a tuple",
    "is_tuple_get_item": "`p.0` matches a field",
    "is_if": "`if (p) { q } else { r }` matches a branch",
    "is_let": "`let p = q; r` matches a let",
    "has_dtype": "`p : int8` has that element type",
    "has_shape": "`p : Tensor[(1, _), _]` has that shape",
    "has_type": "`p : Tensor[(1, 3), int8]` has that type",
    "has_attr": "`p @ key=value` has that attribute",
    "optional": "`nn.relu?(p)` matches the call or `p` alone",
}
_FUNCTIONS = re.compile(r"\b(?:" + "|".join(name for name in _HERE if "_" in name or name == "wildcard") + r")\s*\(")


class _Parser:
    """Reads one pattern. Raises `RelayError` with the place of the error."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.tokens: list[tuple[str, str, int, int]] = []
        self.at = 0
        self.depth = 0
        self.bound: dict[str, DFPattern] = {}
        text, place = source.text, 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                python = _FUNCTIONS.search(text)
                if python is not None:
                    name = python[0].rstrip("( ")
                    self.stop(f"{name} makes patterns in Python, and this one is a text", *python.span(), [_HERE[name], _HELP])
                hint = [_HERE[text[place]], _HELP] if text[place] in _HERE else None
                self.stop("this is no part of a pattern", place, place + 1, hint)
            if match.lastgroup is not None:
                self.tokens.append((match.lastgroup, match.group(), place, match.end()))
            place = match.end()
        self.tokens.append(("end", "", len(text), len(text)))

    def stop(self, what: str, first: int, last: int, notes: list[str] | None = None) -> NoReturn:
        notes = notes or [_HELP]
        raise RelayError(error("R0525", what, Span(self.source, first, max(last, first + 1)), notes=notes))

    def wrong(self, what: str, notes: list[str] | None = None) -> NoReturn:
        _, text, first, last = self.tokens[self.at]
        self.stop(f"{what}, and here is {f'`{text}`' if text else 'the end'}", first, last, notes)

    def peek(self, text: str) -> bool:
        return self.tokens[self.at][1] == text and self.tokens[self.at][0] != "string"

    def take(self, text: str) -> bool:
        if self.peek(text):
            self.at += 1
            return True
        return False

    def want(self, text: str) -> None:
        if not self.take(text):
            self.wrong(f"`{text}` is wanted")

    def placed(self, pattern: DFPattern, first: int) -> DFPattern:
        if pattern.span is None:
            pattern.span = Span(self.source, first, self.tokens[self.at - 1][3])
        return pattern

    def whole(self) -> DFPattern:
        pattern = self.pattern()
        if self.tokens[self.at][0] != "end":
            self.wrong("the pattern should end")
        return pattern

    def pattern(self) -> DFPattern:
        self.depth += 1
        if self.depth > _DEPTH:
            self.wrong(f"a pattern may be nested {_DEPTH} deep")
        first = self.tokens[self.at][2]
        pattern = self.suffixed()
        while self.take("|"):
            pattern = self.placed(AltPattern(pattern, self.suffixed()), first)
        self.depth -= 1
        return pattern

    def suffixed(self) -> DFPattern:
        first = self.tokens[self.at][2]
        pattern = self.primary()
        while True:
            kind, text, _, _ = self.tokens[self.at]
            if kind == "field":
                self.at += 1
                pattern = TupleGetItemPattern(pattern, int(text[1:]))
            elif self.take(":"):
                pattern = self.of_type(pattern)
            elif self.take("@"):
                pattern = AttrPattern(pattern, self.attribute({}))
            elif self.peek("(") and (isinstance(pattern, (AttrPattern, WildcardPattern)) or _operators(pattern)):
                self.at += 1
                args, rest, attrs = self.arguments()
                pattern = self.call(pattern, args, rest, attrs)
            else:
                return self.placed(pattern, first)
            self.placed(pattern, first)

    def primary(self) -> DFPattern:
        kind, text, first, last = self.tokens[self.at]
        self.at += 1
        if kind == "number":
            return ExprPattern(_number(text))
        if kind == "var":
            return VarPattern(text[1:])
        if kind == "bind":
            return self.binding(text)
        if text == "(" and kind == "sign":
            return self.parenthesised()
        if kind == "name":
            return self.named(text, first, last)
        self.at -= 1
        self.wrong("a pattern is wanted", [_HERE[text], _HELP] if text in _HERE else None)

    def binding(self, name: str) -> DFPattern:
        if self.peek("="):
            if name in self.bound:
                self.wrong(f"{name} has its pattern already")
            self.at += 1
            self.bound[name] = self.suffixed()
        return self.bound.setdefault(name, WildcardPattern())

    def parenthesised(self) -> DFPattern:
        items: list[DFPattern] = []
        comma = False
        while not self.peek(")"):
            items.append(self.pattern())
            if not self.take(","):
                break
            comma = True
        self.want(")")
        return items[0] if len(items) == 1 and not comma else TuplePattern(items)

    def named(self, text: str, first: int, last: int) -> DFPattern:
        if text == "_":
            return WildcardPattern()
        if text == "const":
            return ConstantPattern()
        if text == "var":
            return VarPattern()
        if text == "tuple" and not self.peek("("):
            return TuplePattern(None)
        if text == "op" and (self.peek("(") or self.peek("@")):
            return WildcardPattern()
        if text in ("fn", "if", "let"):
            return {"fn": self.function, "if": self.branch, "let": self.let}[text]()
        if text == "dominates":
            self.want("(")
            parent = self.pattern()
            self.want(",")
            path = self.pattern()
            self.want(",")
            child = self.pattern()
            self.want(")")
            return DominatorPattern(parent, path, child)
        if find(text) is None and text in _HERE:
            self.stop(f"{text} makes patterns in Python, and this one is a text", first, last, [_HERE[text], _HELP])
        if find(text) is None:
            near = did_you_mean(text, names())
            self.stop(f"there is no operator {text}", first, last, [f"did you mean {near}?"] if near else None)
        op = OpNamePattern(text)
        op.span = Span(self.source, first, last)
        optional = self.take("?")
        if not self.take("("):
            if optional:
                self.wrong("`(` is wanted")
            return op
        args, rest, attrs = self.arguments(text)
        call = self.call(op, args, rest, attrs)
        if not optional:
            return call
        if not args:
            self.stop(f"{text}? wants the pattern that stands for it where it is missing", first, last)
        return AltPattern(self.placed(call, first), args[0])

    def call(self, op: DFPattern, args: list[DFPattern], rest: bool, attrs: dict[str, Any]) -> DFPattern:
        pattern: DFPattern = CallPattern(op, None if rest and not args else args, rest and bool(args))
        return AttrPattern(pattern, attrs) if attrs else pattern

    def arguments(self, op: str = "") -> tuple[list[DFPattern], bool, dict[str, Any]]:
        args: list[DFPattern] = []
        starts: list[int] = []
        begin = self.tokens[self.at][2]
        attrs: dict[str, Any] = {}
        rest = False
        while not self.peek(")"):
            kind, _, first, last = self.tokens[self.at]
            if kind == "rest":
                self.at += 1
                rest = True
            elif kind == "name" and self.tokens[self.at + 1][1] == "=":
                name = self.tokens[self.at][1]
                if op and name not in OPS[op].schema:
                    near = did_you_mean(name, OPS[op].schema)
                    notes = [f"did you mean {near}?"] if near else [f"it has {', '.join(OPS[op].schema) or 'none'}"]
                    self.stop(f"{op} has no attribute {name}", first, last, notes)
                self.attribute(attrs)
            else:
                if rest:
                    self.wrong("`...` stands behind the arguments")
                starts.append(first)
                args.append(self.pattern())
            if not self.take(","):
                break
        self.want(")")
        count = len(OPS[op].args) if op and not rest and not OPS[op].variadic else 0
        if count and len(args) != count:
            end = self.tokens[self.at - 1][3]
            said = f"{op} takes {count} argument{'' if count == 1 else 's'}, not {len(args)}"
            notes = [f"its arguments: {', '.join(OPS[op].args)}"]
            if len(args) < count:
                notes.append(f"`...` matches further ones: `{op}({'_, ' * bool(args)}...)`")
            self.stop(said, starts[count] if len(args) > count else begin, end, notes)
        return args, rest, attrs

    def attribute(self, into: dict[str, Any]) -> dict[str, Any]:
        kind, name, _, _ = self.tokens[self.at]
        if kind != "name":
            self.wrong("an attribute's name is wanted")
        self.at += 1
        self.want("=")
        into[name] = self.value()
        return into

    def value(self) -> Any:
        kind, text, _, _ = self.tokens[self.at]
        if kind == "string":
            self.at += 1
            return ast.literal_eval(text)
        if kind == "number":
            self.at += 1
            return _number(text).data.item() if text[-1] != "f" else float(text[:-1])
        if text in ("True", "False", "None"):
            self.at += 1
            return {"True": True, "False": False, "None": None}[text]
        if text in ("[", "("):
            close = {"[": "]", "(": ")"}[text]
            self.at += 1
            items = []
            while not self.peek(close):
                items.append(self.value())
                if not self.take(","):
                    break
            self.want(close)
            return items
        self.wrong("an attribute's value is wanted")

    def of_type(self, inner: DFPattern) -> DFPattern:
        kind, text, _, _ = self.tokens[self.at]
        if kind == "name" and _DTYPE.match(text):
            self.at += 1
            return DataTypePattern(inner, text)
        if text != "Tensor":
            self.wrong("an element type, or Tensor[...], is wanted")
        self.at += 1
        self.want("[")
        self.want("(")
        dims: list[Any] = []
        while not self.peek(")"):
            kind, text, _, _ = self.tokens[self.at]
            if kind == "number" and text.isdigit():
                dims.append(int(text))
            elif text in ("_", "?"):
                dims.append(_AnyExtent() if text == "_" else ANY)
            else:
                self.wrong("an extent, `_` or `?` is wanted")
            self.at += 1
            if not self.take(","):
                break
        self.want(")")
        self.want(",")
        kind, dtype, _, _ = self.tokens[self.at]
        if kind != "name" or not (dtype == "_" or _DTYPE.match(dtype)):
            self.wrong("an element type or `_` is wanted")
        self.at += 1
        self.want("]")
        if dtype != "_" and not any(isinstance(d, _AnyExtent) for d in dims):
            return TypePattern(inner, TensorType(dims, dtype))
        shaped = ShapePattern(inner, tuple(dims))
        return shaped if dtype == "_" else DataTypePattern(shaped, dtype)

    def function(self) -> DFPattern:
        params: list[DFPattern] | None = None
        if self.take("("):
            params = []
            while not self.peek(")"):
                params.append(self.pattern())
                if not self.take(","):
                    break
            self.want(")")
        self.want("{")
        body = self.pattern()
        self.want("}")
        return FunctionPattern(params, body)

    def branch(self) -> DFPattern:
        self.want("(")
        cond = self.pattern()
        self.want(")")
        self.want("{")
        true = self.pattern()
        self.want("}")
        self.want("else")
        self.want("{")
        false = self.pattern()
        self.want("}")
        return IfPattern(cond, true, false)

    def let(self) -> DFPattern:
        var = self.suffixed()
        self.want("=")
        value = self.pattern()
        self.want(";")
        return LetPattern(var, value, self.pattern())


def _operators(pattern: DFPattern) -> bool:
    """Whether a pattern in parentheses is one of several operators, `(nn.relu | tanh)`, which may be called."""
    parts = [pattern]
    while parts:
        part = parts.pop()
        if isinstance(part, AltPattern):
            parts += [part.left, part.right]
        elif not isinstance(part, OpNamePattern):
            return False
    return isinstance(pattern, AltPattern)


class _AnyExtent:
    """An extent that a pattern leaves open."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "_"


def _number(text: str) -> Constant:
    match = re.fullmatch(r"(-?[\d.eE+-]+?)(?:(f)(16|32|64)?|(i)(8|16|32|64))?", text)
    assert match is not None
    digits, is_float, width, is_int, bits = match.groups()
    if is_int:
        return const(int(float(digits)), f"int{bits}")
    if is_float or not re.fullmatch(r"-?\d+", digits):
        return const(float(digits), f"float{width or 32}")
    return const(int(digits), "int32")


def parse_pattern(text: str, name: str = "<pattern>") -> DFPattern:
    """The pattern of a text. Raises `RelayError` (R0525) with the place of the error."""
    if not text.strip():
        raise RelayError(error("R0525", "the pattern is empty"))
    return _Parser(SourceFile(name, text)).whole()


def pattern_text(pattern: DFPattern) -> str:
    """The pattern as text, which reads back as the same where the text has words for all of it."""
    return _Writer().text(pattern)


class _Writer:
    def __init__(self) -> None:
        self.depth = 0

    def text(self, p: DFPattern) -> str:
        if self.depth > 40:
            return "..."
        self.depth += 1
        try:
            return self.write(p)
        finally:
            self.depth -= 1

    def list(self, items: tuple[DFPattern, ...]) -> str:
        return ", ".join([self.text(i) for i in items])

    def attrs(self, attrs: dict[str, Any]) -> str:
        return ", ".join([f"{k}={_value_text(v)}" for k, v in attrs.items()])

    def write(self, p: DFPattern) -> str:
        match p:
            case WildcardPattern():
                return "_" if p.pattern is None else self.text(p.pattern)
            case CallPattern():
                return self.call(p)
            case TuplePattern():
                if p.fields is None:
                    return "tuple"
                return f"({self.list(p.fields)}{',' if len(p.fields) == 1 else ''})"
            case TupleGetItemPattern():
                return f"{self.text(p.tuple)}.{'_' if p.index is None else p.index}"
            case AltPattern():
                return self.alternatives(p)
            case AttrPattern():
                return self.with_attrs(p)
            case DataTypePattern():
                return f"{self.text(p.pattern)}: {p.dtype}"
            case ShapePattern():
                return f"{self.text(p.pattern)}: Tensor[({', '.join(map(str, p.shape))}), _]"
            case TypePattern():
                return f"{self.text(p.pattern)}: {type_text(p.type)}"
            case FunctionPattern():
                params = "" if p.params is None else f"({self.list(p.params)}) "
                return f"fn {params}{{ {self.text(p.body)} }}"
            case IfPattern():
                return f"if ({self.text(p.cond)}) {{ {self.text(p.true_branch)} }} else {{ {self.text(p.false_branch)} }}"
            case LetPattern():
                return f"let {self.text(p.var)} = {self.text(p.value)}; {self.text(p.body)}"
            case DominatorPattern():
                return f"dominates({self.text(p.parent)}, {self.text(p.path)}, {self.text(p.child)})"
        return _leaf_text(p)

    def alternatives(self, p: AltPattern) -> str:
        left = p.left
        if isinstance(left, CallPattern) and left.args and left.args[0] is p.right:
            return f"{self.text(left.op)}?({self.list(left.args)})"
        return f"({self.text(left)} | {self.text(p.right)})"

    def call(self, p: CallPattern) -> str:
        callee = "op" if isinstance(p.op, WildcardPattern) and p.op.pattern is None else self.text(p.op)
        if isinstance(p.op, AltPattern):
            callee = f"({callee})"
        if p.args is None:
            return f"{callee}(...)"
        return f"{callee}({self.list(p.args)}{', ...' if p.rest else ''})"

    def with_attrs(self, p: AttrPattern) -> str:
        inner = self.text(p.pattern)
        if isinstance(p.pattern, CallPattern) and inner.endswith(")"):
            joint = "" if inner.endswith("()") else ", "
            return f"{inner[:-1]}{joint}{self.attrs(p.attrs)})"
        return " @ ".join([inner, *[f"{k}={_value_text(v)}" for k, v in p.attrs.items()]])


def _leaf_text(p: DFPattern) -> str:
    """A pattern without parts."""
    match p:
        case ConstantPattern():
            return "const"
        case VarPattern():
            return f"%{p.name}" if p.name else "var"
        case OpNamePattern():
            return p.name
        case ExprPattern(expr=Constant(data=data)) if data.ndim == 0:
            return f"{data.item():g}f" if data.dtype.kind == "f" else str(data.item())
        case ExprPattern():
            return f"<{type(p.expr).__name__}>"
    return f"<{type(p).__name__}>"


def _value_text(value: Any) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_value_text, value))}]"
    return str(value)
