"""The worklist alone: nodes that wait, whatever they are."""

from __future__ import annotations

import itertools

from relaylang.ir import Type, Var, scalar_type
from relaylang.typing.terms import Unknown, find
from relaylang.typing.worklist import Waiting
from tests.typing.parts import Parts

INT, FLOAT = scalar_type("int32"), scalar_type("float32")


def test_a_node_gets_its_type_once_it_is_known() -> None:
    parts, cause, result = Parts(), Unknown(), Unknown()
    parts.solver.wait(Waiting(Var("x"), result, lambda waiting: find(cause)), [cause])
    parts.worklist.work()
    assert find(result) is result
    parts.solver.unify(cause, INT)
    parts.worklist.work()
    assert find(result) is INT


def test_a_node_may_wait_on() -> None:
    parts, first, second, result = Parts(), Unknown(), Unknown(), Unknown()
    asked = 0

    def again(waiting: Waiting) -> Type | None:
        nonlocal asked
        asked += 1
        if type(find(second)) is Unknown:
            parts.solver.wait(waiting, [second])
            return None
        return FLOAT

    parts.solver.wait(Waiting(Var("x"), result, again), [first])
    parts.solver.unify(first, INT)
    parts.worklist.work()
    assert asked == 1 and find(result) is result
    parts.solver.unify(second, INT)
    parts.worklist.work()
    assert asked == 2 and find(result) is FLOAT


def test_what_is_done_is_not_asked_again() -> None:
    parts, cause = Parts(), Unknown()
    waiting = Waiting(Var("x"), Unknown(), lambda _: INT)
    waiting.done = True
    parts.solver.wait(waiting, [cause])
    parts.solver.unify(cause, INT)
    parts.worklist.work()
    assert type(find(waiting.result)) is Unknown


def test_a_late_type_that_differs_is_reported() -> None:
    parts, cause, result = Parts(), Unknown(), Unknown()
    parts.solver.wait(Waiting(Var("x"), result, lambda _: INT), [cause])
    parts.solver.unify(result, FLOAT)
    parts.solver.unify(cause, INT)
    parts.worklist.work()
    assert parts.said == [("R0302", "the result of `%x` must be `float32`, not `int32`")]


def test_one_type_makes_another_known() -> None:
    """A thousand nodes, each of which waits for the one before."""
    parts = Parts()
    unknowns = [Unknown() for _ in range(1_000)]
    for before, result in itertools.pairwise(unknowns):
        parts.solver.wait(Waiting(Var("x"), result, lambda _: INT), [before])
    parts.solver.unify(unknowns[0], INT)
    parts.worklist.work()
    assert all(find(u) is INT for u in unknowns)
