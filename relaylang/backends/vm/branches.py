"""`if` and `match`: the ways that the code goes on, and the tests of patterns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from relaylang.backends.vm.operands import Atom, Fields, Operands, Reg, Value
from relaylang.ir import Expr, If, Match, Pattern, PatternConstructor, PatternTuple, PatternVar, PatternWildcard
from relaylang.runtime.vm.instructions import FAULTS

_MATCH = FAULTS.index("match")


@dataclass
class Clause:
    """A clause of a match: its pattern, the value, and the value's tag. `failed` is the label where it does not fit."""

    match: Match
    pattern: Pattern
    data: Value
    tag: int | None
    failed: int


@dataclass
class Chain:
    """The rest of a chain of lets. Its value goes `into` another, and `join` follows; None returns it."""

    expr: Expr
    into: int | None
    join: int | None
    #: the label in front of it
    label: int | None = None
    #: the test in front of it
    clause: Clause | None = None
    #: at the end of a match: the value that no clause fits
    unfit: Value | None = None
    #: the registers of constants and tuples that were made before it
    loaded: dict[Any, Any] = field(default_factory=dict)


class Branches:
    """The branches of one function. `refuted` are the labels that a test jumps to."""

    def __init__(self, operands: Operands) -> None:
        self.operands = operands
        self.code = operands.code
        self.pool = operands.pool
        self.refuted: set[int] = set()

    def branch(self, value: If | Match, into: int | None, join: int | None) -> list[Chain]:
        """Emit the test of an `if` or what a match needs. Returns the chains that follow, the first last."""
        emit, operands = self.code.emit, self.operands
        if isinstance(value, If):
            other = self.code.label()
            cond = operands.number(operands.value(value.cond), value)
            emit("If", ("r", cond), ("j", other), node=value)
            return [Chain(value.false_branch, into, join, other), Chain(value.true_branch, into, join)]
        data = operands.value(value.data)
        if isinstance(data, Atom):
            data = Reg(operands.number(data, value), value.data.checked_type)
        tag = None
        if any(isinstance(c.lhs, PatternConstructor) and not self.pool.is_only(c.lhs.constructor) for c in value.clauses):
            tag = self._tag(data, value)
        chains = []
        before: int | None = None
        for clause in value.clauses:
            label = self.code.label()
            chains.append(Chain(clause.rhs, into, join, before, Clause(value, clause.lhs, data, tag, label)))
            before = label
        # Behind the clauses stands the end for values that fit none.
        return [Chain(value, into, join, before, unfit=data), *reversed(chains)]

    def begin(self, chain: Chain) -> bool:
        """Place a label and a test of the tag in front of a chain. Returns whether the chain follows."""
        if chain.label is not None:
            self.code.place(chain.label)
        if chain.unfit is not None:
            if chain.label is None or chain.label in self.refuted:
                self.code.emit("Fatal", ("i", _MATCH), ("t", self.operands.number(chain.unfit, chain.expr)), node=chain.expr)
            return False
        if chain.clause is not None:
            self._clause(chain.clause)
        return True

    def _tag(self, value: Value, node: Match) -> int:
        tag = self.code.value(True)
        self.code.emit("GetTag", ("s", tag), ("r", self.operands.number(value, node)), node=node)
        return tag

    def _clause(self, clause: Clause) -> None:
        """Test a value against a pattern, jump where it does not fit, and bind the pattern's variables."""
        emit, node, operands = self.code.emit, clause.match, self.operands
        stack: list[tuple[Pattern, Value, int | None]] = [(clause.pattern, clause.data, clause.tag)]
        while stack:
            pattern, value, tag = stack.pop()
            if isinstance(pattern, PatternVar):
                operands.env[pattern.var] = value
                continue
            if not isinstance(pattern, (PatternConstructor, PatternTuple)):
                continue
            if isinstance(pattern, PatternConstructor) and not self.pool.is_only(pattern.constructor):
                if tag is None:
                    tag = self._tag(value, node)
                number = self.pool.constructor(pattern.constructor)
                emit("IfTag", ("r", tag), ("g", number), ("j", clause.failed), node=node)
                self.refuted.add(clause.failed)
            inner: list[tuple[Pattern, Value, int | None]] = []
            for n, part in enumerate(pattern.patterns):
                if isinstance(value, Fields):
                    inner.append((part, operands.arrived(value.fields[n]), None))
                    continue
                if isinstance(part, PatternWildcard) or (isinstance(part, PatternVar) and part.var not in operands.uses.users):
                    continue
                loaded = operands.new(part.var.checked_type if isinstance(part, PatternVar) else None)
                emit("GetField", ("d", loaded.number), ("t", operands.number(value, node)), ("m", n), node=node)
                inner.append((part, loaded, None))
            stack += reversed(inner)
