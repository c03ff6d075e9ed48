"""From A-normal form to code: one function of a module, and the functions inside it.

Lets become instructions in their order. Tensor operators wait in a region (`regions`) until a result is needed. Scalars
have instructions of their own (`scalars`). Tuples are made where a value needs them as one (`operands`). A call whose value
is the function's own is a tail call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relaylang.backends.cpu.kernel import unsupported
from relaylang.backends.vm.branches import Branches, Chain
from relaylang.backends.vm.code import FunctionCode
from relaylang.backends.vm.contracts import check_contract
from relaylang.backends.vm.operands import Atom, Coming, Fields, Operands, Value
from relaylang.backends.vm.operators import external_value, operator_value
from relaylang.backends.vm.pool import Pool
from relaylang.backends.vm.regions import field_of
from relaylang.backends.vm.scopes import Owner, Uses
from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    Let,
    Match,
    MetaRef,
    RefCreate,
    RefRead,
    RefWrite,
    Tuple,
    TupleGetItem,
    Var,
)
from relaylang.ops.record import Op


class Translation:
    """Translates one function; `inner` are the functions inside it that are still to come."""

    def __init__(self, pool: Pool, uses: Uses, owner: Owner, code: FunctionCode) -> None:
        self.pool = pool
        self.uses = uses
        self.owner = owner
        self.code = code
        self.operands = Operands(pool, uses, code)
        self.branches = Branches(self.operands)
        self.inner: list[tuple[Function, FunctionCode]] = []

    def run(self) -> None:
        code, function, operands = self.code, self.owner.function, self.operands
        code.params = len(function.params)
        for param in function.params:
            operands.env[param] = operands.new(param.checked_type or param.type_annotation)
        code.captured = len(self.owner.captured)
        for place, variable in enumerate(self.owner.captured):
            register = operands.env[variable] = operands.new(variable.checked_type)
            code.emit("LoadFree", ("d", register.number), ("m", place), node=function)
        own = self.owner.own
        if own is not None and self.uses.users.get(own):
            register = operands.env[own] = operands.new(own.checked_type)
            code.emit("LoadSelf", ("d", register.number), node=function)
        # What follows a branch stands behind its arms.
        work = [Chain(function.body, None, None)]
        while work:
            self._chain(work.pop(), work)

    def _chain(self, chain: Chain, work: list[Chain]) -> None:
        """Translate lets up to a call in tail position, a branch, or the chain's value."""
        code, operands = self.code, self.operands
        operands.loaded = chain.loaded
        if not self.branches.begin(chain):
            return
        expr = chain.expr
        while isinstance(expr, Let):
            variable, value, rest = expr.variable, expr.value, expr.body
            if isinstance(value, (If, Match)):
                operands.flush()
                if _is_result(variable, rest):
                    work += self.branches.branch(value, chain.into, chain.join)
                else:
                    register = operands.env[variable] = operands.new(variable.checked_type or value.checked_type)
                    behind = code.label()
                    work.append(Chain(rest, chain.into, chain.join, behind, loaded=chain.loaded))
                    work += self.branches.branch(value, register.number, behind)
                return
            if isinstance(value, Call) and not isinstance(value.op, (Op, Constructor)):
                tail = chain.into is None and _is_result(variable, rest)
                outside = self._outside(value.op)
                if outside is not None:
                    operands.env[variable] = external_value(operands, variable, value, outside)
                else:
                    self._call(variable, value, tail)
                    if tail:
                        operands.region = None
                        return
            else:
                operands.env[variable] = self._bound(variable, value)
            expr = rest
        result = operands.value(expr)
        if chain.into is None:
            code.emit("Ret", ("t", operands.number(result, expr)), node=expr)
        else:
            operands.load(result, chain.into, expr)
            assert chain.join is not None
            code.emit("Goto", ("j", chain.join), node=expr)
        operands.region = None

    def _outside(self, callee: Expr) -> Function | None:
        """The function of another compiler that a callee is, by its name or by a let's."""
        known = self.operands.env.get(callee) if isinstance(callee, Var) else None
        return self.pool.outside(known.node if isinstance(known, Atom) else callee)

    def _read(self, atom: Expr, node: Expr) -> int:
        """The register of an atom that `node` reads."""
        return self.operands.number(self.operands.value(atom), node)

    def _bound(self, variable: Var, value: Expr) -> Value:
        """The value of a let."""
        emit, operands = self.code.emit, self.operands
        ty = variable.checked_type or value.checked_type
        match value:
            case Var():
                return operands.value(value)
            case GlobalVar() | Constructor() | Constant() | MetaRef() | Op():
                return Atom(value)
            case Call(op=Op()):
                return operator_value(operands, variable, value)
            case Call(op=Constructor() as constructor):
                parts = [("t", self._read(a, value)) for a in value.args]
                result = operands.new(ty)
                number = self.pool.constructor(constructor)
                emit("AllocADT", ("d", result.number), ("g", number), ("#", len(parts)), *parts, node=value)
                return result
            case Tuple(fields):
                return Fields([operands.value(f) for f in fields])
            case TupleGetItem(source, index):
                tuple_fields = operands.value(source)
                if isinstance(tuple_fields, Fields):
                    return operands.arrived(tuple_fields.fields[index])
                if isinstance(tuple_fields, Coming):
                    node = field_of(tuple_fields.node, index)
                    tuple_fields.region.add(variable, node)
                    return Coming(tuple_fields.region, variable, node)
                result = operands.new(ty)
                emit("GetField", ("d", result.number), ("t", operands.number(tuple_fields, value)), ("m", index), node=value)
                return result
            case RefCreate(source):
                number = self._read(source, value)
                result = operands.new(ty)
                emit("NewRef", ("d", result.number), ("t", number), node=value)
                return result
            case RefRead(source):
                number = self._read(source, value)
                result = operands.new(ty)
                emit("ReadRef", ("d", result.number), ("r", number), node=value)
                return result
            case RefWrite(cell, source):
                emit("WriteRef", ("r", self._read(cell, value)), ("t", self._read(source, value)), node=value)
                return Fields([])
            case Function():
                return self._closure(variable, value)
        raise unsupported(f"{type(value).__name__} cannot be compiled", value)

    def _closure(self, variable: Var, function: Function) -> Value:
        if function.body is None:
            raise unsupported("a function without a body cannot be compiled", function)
        number = len(self.pool.codes)
        self.inner.append((function, self.pool.code(f"%{variable.name_hint}", function)))
        captured = [("t", self._read(v, function)) for v in self.uses.owners[id(function)].captured]
        closure = self.operands.new(variable.checked_type or function.checked_type)
        self.code.emit("AllocClosure", ("d", closure.number), ("f", number), ("#", len(captured)), *captured, node=function)
        return closure

    def _call(self, variable: Var, call: Call, tail: bool) -> None:
        emit, callee = self.code.emit, call.op
        if isinstance(callee, GlobalVar):
            self.pool.function(callee)
            check_contract(self.operands, call, self.pool.mod[callee.name_hint])
        args = [("t", self._read(a, call)) for a in call.args]
        count = ("#", len(args))
        where: list[tuple[str, int]] = []
        result = None
        if not tail:
            result = self.operands.new(variable.checked_type or call.checked_type)
            where = [("d", result.number)]
        if isinstance(callee, GlobalVar):
            emit("InvokeTail" if tail else "Invoke", *where, ("f", self.pool.function(callee)), count, *args, node=call)
        else:
            closure = ("t", self._read(callee, call))
            emit("InvokeClosureTail" if tail else "InvokeClosure", *where, closure, count, *args, node=call)
        if result is not None:
            self.operands.env[variable] = result


def _is_result(variable: Var, rest: Expr) -> bool:
    """Whether nothing but other names for the variable stands between it and the end of its chain."""
    while isinstance(rest, Let) and rest.value is variable:
        variable, rest = rest.variable, rest.body
    return rest is variable


def translated(pool: Pool, entries: Sequence[GlobalVar]) -> Mapping[str, int]:
    """Translate functions of the module and all that they call. Returns their numbers."""
    for name in entries:
        pool.function(name)
    done = 0
    while done < len(pool.waiting):
        function, code = pool.waiting[done]
        done += 1
        uses = Uses(function)
        inner = [(function, code)]
        while inner:
            item, own = inner.pop()
            translation = Translation(pool, uses, uses.owners[id(item)], own)
            translation.run()
            inner += translation.inner
    return {name.name_hint: number for name, number in pool.numbers.items()}
