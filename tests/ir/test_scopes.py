"""The tree of scopes: the innermost scope around two others, against a plain search, and in few steps."""

from __future__ import annotations

import random

import pytest

from relaylang.ir.scopes import Scope, ancestor, common


def path(scope: Scope) -> list[Scope]:
    """The scopes around a scope, outermost first, and itself."""
    found = [scope]
    while found[-1].parent is not found[-1]:
        found.append(found[-1].parent)
    return found[::-1]


def tree(size: int, seed: int, reach: int) -> list[Scope]:
    """Scopes, each inside one of the `reach` made before it: a small reach gives a deep tree."""
    random.seed(seed)
    made = [Scope()]
    while len(made) < size:
        made.append(Scope(random.choice(made[-reach:])))
    return made


@pytest.mark.parametrize("reach", [1, 2, 5, 400])
@pytest.mark.parametrize("seed", range(3))
def test_common_is_the_innermost_scope_around_both(seed: int, reach: int) -> None:
    made = tree(400, seed, reach)
    for _ in range(300):
        a, b = random.choice(made), random.choice(made)
        both = [x for x, y in zip(path(a), path(b)) if x is y]
        assert common(a, b) is common(b, a) is both[-1]
        assert common(a, a) is a


def test_ancestor_is_the_scope_of_a_depth() -> None:
    made = tree(300, 0, 3)
    for scope in made:
        around = path(scope)
        assert [ancestor(scope, depth) for depth in range(scope.depth + 1)] == around
        assert scope.depth == len(around) - 1


class Counted(Scope):
    """A scope that counts the steps to other scopes."""

    __slots__ = ("_jump", "_parent")
    steps = 0

    @property
    def parent(self) -> Scope:  # type: ignore[override]
        Counted.steps += 1
        return self._parent

    @parent.setter
    def parent(self, scope: Scope) -> None:
        self._parent = scope

    @property
    def jump(self) -> Scope:  # type: ignore[override]
        Counted.steps += 1
        return self._jump

    @jump.setter
    def jump(self, scope: Scope) -> None:
        self._jump = scope


def test_steps_are_a_logarithm_of_the_depth() -> None:
    depth = 1 << 15
    root = Counted()
    left = right = root
    for _ in range(depth):
        left, right = Counted(left), Counted(right)
    assert left.depth == right.depth == depth
    made = Counted.steps
    assert made <= 10 * 2 * depth  # a constant for each scope
    assert common(left, right) is root
    assert common(left, root) is root and common(left, left._parent) is left._parent
    assert Counted.steps - made <= 20 * 15
