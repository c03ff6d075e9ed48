"""A tree whose nodes are scopes, and the one search for the innermost scope around two others.

A scope knows its depth, its parent, and `jump`, an ancestor further up. The jumps' distances bound a walk to any ancestor
by the logarithm of the depth. A new scope takes constant time. The tree of post-dominators has the same shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self


class Scope:
    """A node of a tree of scopes; an outermost scope is its own parent."""

    __slots__ = ("depth", "jump", "parent")
    depth: int
    jump: Self
    parent: Self

    def __init__(self, parent: Self | None = None) -> None:
        if parent is None:
            self.depth = 0
            self.parent = self.jump = self
        else:
            self.hang(parent)

    def hang(self, parent: Self) -> None:
        """Put the scope, which has no scopes inside yet, into another one."""
        self.parent = parent
        self.depth = parent.depth + 1
        far = parent.jump
        self.jump = far.jump if parent.depth - far.depth == far.depth - far.jump.depth else parent


S = TypeVar("S", bound=Scope)


def common(a: S, b: S) -> S:
    """The innermost scope that holds both, or is one of them and holds the other. Both must be of one tree."""
    if a.depth < b.depth:
        a, b = b, a
    a = ancestor(a, b.depth)
    while a is not b:
        if a.jump is b.jump:
            a, b = a.parent, b.parent
        else:
            a, b = a.jump, b.jump
    return a


def ancestor(scope: S, depth: int) -> S:
    """The scope of this depth around another one, which is at least as deep."""
    while scope.depth > depth:
        scope = scope.jump if scope.jump.depth >= depth else scope.parent
    return scope


__all__ = ["Scope", "ancestor", "common"]
