"""Lists of passes as text: `FoldConstant,FuseOps(fuse_opt_level=2),ConvertLayout({"nn.conv2d": ["NHWC", "default"]})`.

A name is a pass of `PASSES`, or one that the caller adds. Arguments are Python literals (numbers, strings, True, None,
lists, tuples, dictionaries), by position or by name.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Any

from relaylang.diagnostics import Diagnostic, RelayError, error
from relaylang.diagnostics.source import SourceFile, Span
from relaylang.passes.manager import Pass, as_pass, suggest
from relaylang.passes.registry import PASSES

#: A name to a pass, or to its constructor.
Registry = Mapping[str, "Callable[..., Any] | Pass"]

#: The passes that TVM 0.16's `relay.build` runs before it fuses, in its order.
STANDARD = (
    "RemoveUnusedFunctions, SimplifyInference, EliminateCommonSubexpr, CombineParallelConv2D(3), CombineParallelDense(3), "
    "CombineParallelBatchMatmul(3), FoldConstant, FoldScaleAxis, SimplifyExpr, CanonicalizeCast, CanonicalizeOps, "
    "FlattenAtrousConv, AlterOpLayout, FastMath, FoldConstant"
)


def parse_passes(text: str, more: Registry | None = None, name: str = "<passes>") -> list[Pass]:
    """The passes that a text lists, in order; `more` are passes beside those of `PASSES`, and go before them.

    Raises `RelayError` with every error in the text, each at its place.
    """
    registry: Registry = PASSES if more is None else ChainMap({}, more, PASSES)  # type: ignore[arg-type]
    source = SourceFile(name, text)
    if not text.strip().strip(","):
        raise RelayError(error("R0507", "the list of passes is empty"))
    try:
        # Parentheses let the list go over several lines; they stand at column 0 of the first one.
        tree = ast.parse(f"({text},)" if not text.rstrip().endswith(",") else f"({text})", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as problem:
        line, column = getattr(problem, "lineno", None) or 1, getattr(problem, "offset", None) or 1
        at = min(max(_offset(source, line, column - 1), 0), max(len(text) - 1, 0))
        what = problem.msg if isinstance(problem, SyntaxError) else "too deep or too long"
        notes = ["write NAME or NAME(option=value), with commas between"]
        raise RelayError(
            error("R0507", f"the list of passes is not written right: {what}", Span(source, at, at + 1), notes=notes)
        ) from None
    assert isinstance(tree.body, ast.Tuple)
    passes: list[Pass] = []
    wrong: list[Diagnostic] = []
    for item in tree.body.elts:
        parsed = _one(item, registry, source)
        if isinstance(parsed, Diagnostic):
            wrong.append(parsed)
        else:
            passes.append(parsed)
    if wrong:
        raise RelayError(wrong)
    return passes


def _offset(source: SourceFile, line: int, byte_column: int) -> int:
    """The character offset of a place that `ast` gives by line and UTF-8 column, less the added parenthesis."""
    starts = source.line_starts()
    line = min(line, len(starts))
    raw = source.line(line).encode("utf-8")
    column = byte_column - (1 if line == 1 else 0)
    return starts[line - 1] + len(raw[: max(column, 0)].decode("utf-8", "replace"))


def _span(node: Any, source: SourceFile) -> Span:
    first = _offset(source, node.lineno, node.col_offset)
    last = _offset(source, node.end_lineno or node.lineno, node.end_col_offset or node.col_offset + 1)
    return Span(source, first, last)


def _dotted(node: ast.expr) -> str | None:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool, int), "True or False"),
    "str": ((str,), "a text"),
    "None": ((type(None),), "None"),
    "Sequence": ((list, tuple), "a list"),
    "list": ((list, tuple), "a list"),
    "Mapping": ((dict,), "a dictionary"),
    "dict": ((dict,), "a dictionary"),
    "Callable": ((), "a function, which a list of passes cannot give"),
}


def _wanted(annotation: str, value: Any) -> str | None:
    """The kind of an option by its annotation, where a value has another kind. None where it fits or nothing is known."""
    words = []
    for part in re.sub(r"\[[^|]*\]", "", annotation.strip("'\"")).split("|"):
        kind = _KINDS.get(part.strip())
        if kind is None:
            return None
        types, word = kind
        if isinstance(value, types) and (bool in types or not isinstance(value, bool)):
            return None
        words.append(word)
    return " or ".join(sorted(words, key=len))


def _one(item: ast.expr, registry: Registry, source: SourceFile) -> Pass | Diagnostic:
    span = _span(item, source)
    callee = item.func if isinstance(item, ast.Call) else item
    name = _dotted(callee)
    if name is None:
        return error("R0507", "a pass is a name, or a name with options in parentheses", span)
    maker = registry.get(name)
    if maker is None:
        notes = suggest(name, list(registry)) or ["relay opt --list shows the passes that there are"]
        return error("R0505", f"there is no pass {name}", _span(callee, source), notes=notes)
    args: list[Any] = []
    options: dict[str, Any] = {}
    if isinstance(item, ast.Call):
        wrong = _no_plain_values(item, name, source)
        if wrong is not None:
            return wrong
        args = [ast.literal_eval(a) for a in item.args]
        options = {str(k.arg): ast.literal_eval(k.value) for k in item.keywords}
    if isinstance(maker, Pass):
        if args or options:
            return error("R0501", f"{name} takes no options", span)
        return maker
    wrong = _wrong_options(maker, name, args, options, span)
    if wrong is not None:
        return wrong
    try:
        return as_pass(maker(*args, **options))
    except RelayError as problem:
        first = problem.diagnostics[0]
        return error(first.code, first.title, span, notes=first.notes)
    except (TypeError, ValueError, KeyError, AttributeError) as problem:
        return error("R0501", f"{name} does not take these options: {problem}", span)


def _no_plain_values(item: ast.Call, name: str, source: SourceFile) -> Diagnostic | None:
    """The error of options as they are written: each is a value of its own, without names and calls."""
    for value in [*item.args, *[k.value for k in item.keywords]]:
        try:
            ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            return error(
                "R0507",
                f"an option of {name} is no plain value",
                _span(value, source),
                notes=['options are numbers, strings ("NHWC"), True, False, None, lists and dictionaries of such'],
            )
    if any(k.arg is None for k in item.keywords):
        return error("R0507", f"the options of {name} are written one by one", _span(item, source))
    return None


def _wrong_options(maker: Any, name: str, args: list[Any], options: dict[str, Any], span: Span) -> Diagnostic | None:
    """What the signature of a pass says against options."""
    try:
        signature = inspect.signature(maker)
    except (TypeError, ValueError):
        return None
    known = [p.name for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    unknown = [o for o in options if o not in known]
    if unknown and not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        has = f"it has {', '.join(known)}" if known else "it has none"
        return error("R0501", f"{name} has no option {unknown[0]}", span, notes=suggest(unknown[0], known) or [has])
    try:
        bound = signature.bind(*args, **options)
    except TypeError as problem:
        return error("R0501", f"{name}({', '.join(known)}): {problem}", span)
    for option, value in bound.arguments.items():
        wanted = _wanted(str(signature.parameters[option].annotation), value)
        if wanted is not None and signature.parameters[option].kind is signature.parameters[option].POSITIONAL_OR_KEYWORD:
            return error("R0501", f"{option} of {name} is {wanted}, not {value!r:.60}", span)
    return None
