"""What `print(node)` and `repr(node)` show: Relay text, and of a huge program a line about it."""

from __future__ import annotations

from relaylang.ir import Expr, Function, IRModule, children
from relaylang.syntax.printer import astext

#: The most nodes that `repr` writes as text, and the most lines.
_NODES, _LINES = 300, 40


def text(node: IRModule | Expr) -> str:
    """Relay text without the version line, and without the metadata section."""
    return astext(node, show_meta_data=False, header=False)


def brief(node: IRModule | Expr) -> str:
    """The text of a small program, or its first lines. Of a larger one, its kind and how to see it."""
    kind = type(node).__name__
    if _is_large(node):
        return f"<{kind} of more than {_NODES} nodes; print it for its text>"
    try:
        shown = text(node).rstrip("\n")
    except Exception:  # a node that somebody filled with other values
        return f"<{kind} that has no text>"
    lines = shown.splitlines()
    if len(lines) <= _LINES:
        return shown
    return "\n".join([*lines[:_LINES], f"<{len(lines) - _LINES} more lines; print it for its text>"])


def _is_large(node: IRModule | Expr) -> bool:
    stack: list[Expr] = list(node.functions.values()) if isinstance(node, IRModule) else [node]
    seen: set[int] = set()
    while stack and len(seen) <= _NODES:
        item = stack.pop()
        if not isinstance(item, Expr) or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Function) and item.body is None:
            continue
        stack.extend(children(item))
    return len(seen) > _NODES


__all__ = ["brief", "text"]
