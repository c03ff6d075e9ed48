"""From A-normal form to code: one function of a module, and the functions inside it.

Lets become instructions in their order. Tensor operators wait in a region (`regions`) until a result is needed. Scalars
have instructions of their own (`scalars`). Tuples are made where a value needs them as one. A call whose value is the
function's own is a tail call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relaylang.backends.cpu.kernel import unsupported
from relaylang.backends.vm.code import FunctionCode
from relaylang.backends.vm.regions import Region, field_of, is_native, is_static, tensors_of
from relaylang.backends.vm.scalars import row_of
from relaylang.backends.vm.scopes import Owner, Uses
from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Constant,
    Constructor,
    Expr,
    Function,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    MetaRef,
    Pattern,
    PatternConstructor,
    PatternTuple,
    PatternVar,
    PatternWildcard,
    RefCreate,
    RefRead,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
)
from relaylang.ir.typed import typed
from relaylang.ops.record import Op
from relaylang.ops.traits import Trait
from relaylang.passes.normal_forms.to_a_normal_form import convert
from relaylang.runtime.vm.instructions import DTYPE_NUMBERS, FAULTS
from relaylang.runtime.vm.program import Packed, Spec

_MATCH = FAULTS.index("match")


class Pool:
    """The tables of a program: functions that wait for translation, constants, constructors, tensor types, kernels."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.codes: list[FunctionCode] = []
        self.numbers: dict[GlobalVar, int] = {}
        self.waiting: list[tuple[Function, FunctionCode]] = []
        self.constants: list[np.ndarray] = []
        self.constructors: list[Constructor] = []
        self.specs: list[Spec] = []
        self.packed: list[Packed] = []
        self.used: set[str] = set()
        self._known: dict[Any, int] = {}
        self._kept: list[Any] = []

    def _number(self, key: Any, table: list[Any], value: Any) -> int:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = len(table)
            table.append(value)
            self._kept.append(value)
        return found

    def constant(self, data: np.ndarray) -> int:
        return self._number(("constant", id(data)), self.constants, data)

    def constructor(self, made: Constructor) -> int:
        return self._number(("constructor", made.belong_to.name_hint, made.tag), self.constructors, made)

    def spec(self, ty: TensorType) -> int:
        spec = (ty.dtype, tuple(int(d) for d in ty.shape))  # type: ignore[arg-type]
        return self._number(("spec", spec), self.specs, spec)

    def function(self, name: GlobalVar) -> int:
        """The number of a module's function, which is translated in its turn."""
        if name.name_hint not in self.mod:
            raise RelayError(error("R0403", f"there is no function @{name.name_hint}", name.span))
        name = self.mod.get_global_var(name.name_hint)
        if name not in self.numbers:
            function = self.mod[name]
            if function.body is None:
                raise unsupported(f"@{name.name_hint} has no body", function)
            self.numbers[name] = len(self.codes)
            code = self.code(f"@{name.name_hint}", function)
            anf = convert(function, let_results=False, enter_primitive=True)
            assert isinstance(anf, Function)
            self.waiting.append((anf, code))
        return self.numbers[name]

    def code(self, name: str, node: Function | None) -> FunctionCode:
        made = FunctionCode(name, node=node)
        self.codes.append(made)
        return made

    def is_only(self, made: Constructor) -> bool:
        """Whether a type has no other constructor."""
        definition = self.mod.type_definitions.get(made.belong_to)
        return definition is not None and len(definition.constructors) == 1

    def builder(self, made: Constructor) -> int:
        """The number of a function that applies a constructor."""
        key = ("builder", made.belong_to.name_hint, made.tag)
        if key not in self._known:
            self._known[key] = len(self.codes)
            code = self.code(made.name_hint, None)
            code.params = len(made.inputs)
            operands = [("t", code.value(False)) for _ in made.inputs]
            whole = code.value(False)
            code.emit("AllocADT", ("d", whole), ("g", self.constructor(made)), ("#", len(operands)), *operands)
            code.emit("Ret", ("t", whole))
        return self._known[key]


# --- what variables stand for ---


class Value:
    """A variable's value at compile time."""

    __slots__ = ()


class Reg(Value):
    """A value of the code, and its type."""

    __slots__ = ("number", "ty")

    def __init__(self, number: int, ty: Type | None) -> None:
        self.number = number
        self.ty = ty


class Atom(Value):
    """A constant, a module's function or a constructor."""

    __slots__ = ("node",)

    def __init__(self, node: Expr) -> None:
        self.node = node


class Fields(Value):
    """A tuple, which is made where somebody needs it as one value."""

    __slots__ = ("fields",)

    def __init__(self, fields: Sequence[Value]) -> None:
        self.fields = tuple(fields)


class Coming(Value):
    """A result of a region."""

    __slots__ = ("node", "region", "variable")

    def __init__(self, region: Region, variable: Var, node: Expr) -> None:
        self.region = region
        self.variable = variable
        self.node = node


@dataclass
class _Clause:
    """A clause of a match: its pattern, the value, and the value's tag. `failed` is the label where it does not fit."""

    match: Match
    pattern: Pattern
    data: Value
    tag: int | None
    failed: int


@dataclass
class _Chain:
    """The rest of a chain of lets. Its value goes `into` another, and `join` follows; None returns it."""

    expr: Expr
    into: int | None
    join: int | None
    #: the label in front of it
    label: int | None = None
    #: the test in front of it
    clause: _Clause | None = None
    #: the end of a match that no clause fits
    fatal: bool = False
    loaded: dict[Any, Any] = field(default_factory=dict)


class Translation:
    """Translates one function; `inner` are the functions inside it that are still to come."""

    def __init__(self, pool: Pool, uses: Uses, owner: Owner, code: FunctionCode) -> None:
        self.pool = pool
        self.uses = uses
        self.owner = owner
        self.code = code
        self.env: dict[Var, Value] = {}
        self.region: Region | None = None
        self.results: dict[tuple[int, Var], Value] = {}
        self.inner: list[tuple[Function, FunctionCode]] = []
        self.loaded: dict[Any, Any] = {}
        self.refuted: set[int] = set()

    def run(self) -> None:
        code, function = self.code, self.owner.function
        code.params = len(function.params)
        for param in function.params:
            self.env[param] = self._new(param.checked_type or param.type_annotation)
        code.captured = len(self.owner.captured)
        for place, variable in enumerate(self.owner.captured):
            found = self.env[variable] = self._new(variable.checked_type)
            code.emit("LoadFree", ("d", found.number), ("m", place), node=function)
        own = self.owner.own
        if own is not None and self.uses.users.get(own):
            found = self.env[own] = self._new(own.checked_type)
            code.emit("LoadSelf", ("d", found.number), node=function)
        # What follows a branch stands behind its arms.
        work = [_Chain(function.body, None, None)]
        while work:
            self._chain(work.pop(), work)

    # --- values ---

    def _new(self, ty: Type | None) -> Reg:
        return Reg(self.code.value(is_scalar(ty)), ty)

    def _value(self, atom: Expr) -> Value:
        """What an atom stands for."""
        if not isinstance(atom, Var):
            return Atom(atom)
        found = self.env.get(atom)
        if found is None:  # a let that reads its own variable
            found = self.env[atom] = self._new(atom.checked_type)
        return self._arrived(found)

    def _arrived(self, value: Value) -> Value:
        if isinstance(value, Coming) and value.region.done:
            return self.results.get((id(value.region), value.variable), value)  # nothing needs the others
        return value

    def _number(self, value: Value, node: Expr, scalar: bool = False) -> int:
        """The number of a value in the code, which is loaded or made here."""
        if isinstance(value, Coming):
            self._flush()
            value = self._arrived(value)
        assert not isinstance(value, Coming)
        if isinstance(value, Reg):
            return value.number
        key: Any = id(value.node) if isinstance(value, Atom) else value
        if key in self.loaded:
            return self.loaded[key]
        ty = value.node.checked_type if isinstance(value, Atom) and isinstance(value.node, Constant) else None
        if isinstance(value, Atom) and isinstance(value.node, Constant):
            ty = TensorType(value.node.data.shape, value.node.dtype)
        number = self.code.value(is_scalar(ty))
        self._load(value, number, node)
        self.loaded[key] = number
        return number

    def _load(self, value: Value, number: int, node: Expr) -> None:
        """Put a value into one of the code."""
        emit = self.code.emit
        value = self._arrived(value)
        if isinstance(value, (Coming, Reg)):
            emit("Move", ("d", number), ("t", self._number(value, node)), node=node)
            return
        if isinstance(value, Fields):
            # The tuples inside are made before, each on a stack of its own.
            stack: list[Fields] = [value]
            while stack:
                item = stack[-1]
                waiting = [f for f in item.fields if isinstance(self._arrived(f), Fields) and self._arrived(f) not in self.loaded]
                if waiting:
                    stack += [self._arrived(f) for f in waiting]  # type: ignore[misc]
                    continue
                stack.pop()
                if item in self.loaded:
                    continue
                parts = [("t", self._number(self._arrived(f), node)) for f in item.fields]
                target = number if item is value else self.code.value(False)
                emit("AllocTuple", ("d", target), ("#", len(parts)), *parts, node=node)
                if item is not value:
                    self.loaded[item] = target
            return
        assert isinstance(value, Atom)
        atom = value.node
        match atom:
            case Constant(data):
                small = data.ndim == 0 and data.dtype.kind in "biu" and -(1 << 31) <= int(data) < 1 << 31
                if small and self.code.scalar[number] and data.dtype.name in DTYPE_NUMBERS:
                    emit("LoadConsti", ("s", number), ("e", DTYPE_NUMBERS[data.dtype.name]), ("i", int(data)), node=node)
                else:
                    emit("LoadConst", ("d", number), ("c", self.pool.constant(data)), node=node)
            case GlobalVar():
                emit("AllocClosure", ("d", number), ("f", self.pool.function(atom)), ("#", 0), node=node)
            case Constructor():
                emit("AllocClosure", ("d", number), ("f", self.pool.builder(atom)), ("#", 0), node=node)
            case MetaRef():
                raise RelayError(error("R0403", f"the constant {atom.name_hint} has no value", atom.span))
            case Op(name):
                raise unsupported(f"the operator {name} as a value cannot be compiled", node)
            case _:
                raise unsupported(f"{type(atom).__name__} cannot be compiled", node)

    # --- regions ---

    def _flush(self) -> None:
        """Emit the open region, if something needs its results."""
        region, self.region = self.region, None
        if region is None:
            return
        region.done = True
        wanted: list[Expr] = []
        targets: list[Reg] = []

        def result(node: Expr) -> Reg:
            wanted.append(node)
            targets.append(self._new(node.checked_type))
            return targets[-1]

        for variable, node in region.members.items():
            if not region.escapes(variable, self.uses.users, self.uses.values):
                continue
            found: Value
            if isinstance(node.checked_type, TupleType):
                found = Fields([result(field_of(node, n)) for n in range(len(node.checked_type.fields))])
            else:
                found = result(node)
            self.results[(id(region), variable)] = found
        self.pool._kept.append(region)  # its id stays its own
        if not wanted:
            return
        last = next(reversed(region.members.values()))
        numbers = list(region.inputs)
        if len(region.members) == 1 and len(wanted) == 1 and self._reshaped(last, numbers, targets):
            return
        types = [tensors_of(node.checked_type) for node in wanted]
        outputs: tuple[Spec, ...] = ()
        if region.native:
            outputs = tuple((t.dtype, tuple(t.shape)) for (t,) in types)  # type: ignore[misc, arg-type]
        number = len(self.pool.packed)
        self.pool.packed.append(Packed(len(numbers), outputs, len(wanted), module=region.module(wanted)))
        operands = [("p", number), ("#", len(numbers)), ("#", len(wanted)), *[("r", n) for n in numbers]]
        self.code.emit("InvokePacked", *operands, *[("d", t.number) for t in targets], node=last)

    def _reshaped(self, node: Expr, numbers: Sequence[int], targets: Sequence[Reg]) -> bool:
        """Emit another view of a tensor for a call that only changes its shape."""
        if not (isinstance(node, Call) and isinstance(node.op, Op) and Trait.RESHAPE in node.op.traits):
            return False
        if not is_static(node.checked_type):
            return False
        ty, source = node.checked_type, node.args[0].checked_type
        plain = isinstance(ty, TensorType) and isinstance(source, TensorType) and ty.shape and source.shape
        if not plain or len(numbers) != 1 or not isinstance(node.args[0], Var) or ty.dtype != source.dtype:  # type: ignore[union-attr]
            return False
        self.code.emit(
            "ReshapeTensor", ("d", targets[0].number), ("t", numbers[0]), ("y", self.pool.spec(ty)), node=node  # type: ignore[arg-type]
        )
        return True

    def _operator(self, variable: Var, call: Call) -> Value:
        """The value of an operator's call: a scalar instruction's, or a region's."""
        assert isinstance(call.op, Op)
        if Trait.PLACEMENT in call.op.traits:  # there is one device
            return self._value(call.args[0])
        args = [self._value(a) for a in call.args]
        scalar = self._scalar(call, args)
        if scalar is not None:
            return scalar
        native = is_native(call)
        if self.region is not None and self.region.native != native:
            self._flush()
            args = [self._arrived(a) for a in args]
        # What an operand needs may end the region that is open; it begins behind it.
        ready = [self._prepared(value, a) for value, a in zip(args, call.args)]
        if self.region is None:
            self.region = Region(native)
        region = self.region
        operands = [self._inside(region, value, a.checked_type) for value, a in zip(ready, call.args)]
        node = typed(Call(call.op, operands, call.attrs, call.type_args, call.span), call.checked_type)
        region.add(variable, node)
        return Coming(region, variable, node)

    def _scalar(self, call: Call, args: Sequence[Value]) -> Value | None:
        if not is_scalar(call.checked_type):
            return None
        types = [a.checked_type for a in call.args]
        if not all(is_scalar(ty) for ty in types):
            return None
        assert isinstance(call.op, Op) and isinstance(call.checked_type, TensorType)
        row = row_of().get((call.op.name, tuple(ty.dtype for ty in types), call.checked_type.dtype))  # type: ignore[union-attr]
        if row is None:
            return None
        numbers = [self._number(v, call) for v in args]
        made = self._new(call.checked_type)
        self.pool.used.add(row.name)
        self.code.emit(row.name, ("s", made.number), *[("r", n) for n in numbers], node=call)
        return made

    def _prepared(self, value: Value, node: Expr) -> Value:
        """A value that a region may read: constants and its own results stay, others are registers, tuples have fields."""
        ty = node.checked_type
        value = self._arrived(value)
        if isinstance(value, Reg) and isinstance(value.ty or ty, TupleType):
            return self._fields(value, value.ty or ty, node)
        if isinstance(value, Fields):
            return Fields([self._prepared(f, node) for f in value.fields]) if _has_tuples(value) else value
        return value

    def _fields(self, value: Reg, ty: Type | None, node: Expr) -> Fields:
        key = ("fields", value.number)
        if key not in self.loaded:
            assert isinstance(ty, TupleType)
            made: list[Value] = []
            for n, inner in enumerate(ty.fields):
                part = self._new(inner)
                self.code.emit("GetField", ("d", part.number), ("t", value.number), ("m", n), node=node)
                made.append(self._fields(part, inner, node) if isinstance(inner, TupleType) else part)
            self.loaded[key] = Fields(made)
        return self.loaded[key]  # type: ignore[no-any-return]

    def _inside(self, region: Region, value: Value, ty: Type | None) -> Expr:
        """A value as an expression of a region."""
        value = self._arrived(value)
        if isinstance(value, Coming):
            assert value.region is region
            return value.node
        if isinstance(value, Fields):
            types = ty.fields if isinstance(ty, TupleType) else [None] * len(value.fields)
            return typed(Tuple([self._inside(region, f, t) for f, t in zip(value.fields, types)]), ty)
        if isinstance(value, Atom):
            if isinstance(value.node, Constant):
                return typed(value.node, TensorType(value.node.data.shape, value.node.dtype))
            return region.input(self._number(value, value.node), ty)
        assert isinstance(value, Reg)
        return region.input(value.number, value.ty if isinstance(value.ty, TensorType) else ty)

    # --- chains of lets ---

    def _chain(self, chain: _Chain, work: list[_Chain]) -> None:
        """Translate lets up to a call in tail position, a branch, or the chain's value."""
        self.loaded = chain.loaded
        code = self.code
        if chain.label is not None:
            code.place(chain.label)
        if chain.fatal:
            if chain.label is None or chain.label in self.refuted:
                code.emit("Fatal", ("i", _MATCH), node=chain.expr)
            return
        if chain.clause is not None:
            self._clause(chain.clause)
        expr = chain.expr
        while isinstance(expr, Let):
            variable, value, rest = expr.variable, expr.value, expr.body
            if isinstance(value, (If, Match)):
                self._flush()
                if _is_result(variable, rest):
                    self._branches(value, chain.into, chain.join, work)
                else:
                    ty = variable.checked_type or value.checked_type
                    found = self.env[variable] = self._new(ty)
                    behind = code.label()
                    work.append(_Chain(rest, chain.into, chain.join, behind, loaded=chain.loaded))
                    self._branches(value, found.number, behind, work)
                return
            if isinstance(value, Call) and not isinstance(value.op, (Op, Constructor)):
                tail = chain.into is None and _is_result(variable, rest)
                self._call(variable, value, tail)
                if tail:
                    self.region = None
                    return
            else:
                self.env[variable] = self._bound(variable, value)
            expr = rest
        result = self._value(expr)
        node = expr
        if chain.into is None:
            number = self._number(result, node)
            code.emit("Ret", ("t", number), node=node)
        else:
            self._load(result, chain.into, node)
            assert chain.join is not None
            code.emit("Goto", ("j", chain.join), node=node)
        self.region = None

    def _bound(self, variable: Var, value: Expr) -> Value:
        """The value of a let."""
        emit = self.code.emit
        ty = variable.checked_type or value.checked_type
        match value:
            case Var():
                return self._value(value)
            case GlobalVar() | Constructor() | Constant() | MetaRef() | Op():
                return Atom(value)
            case Call(op=Op()):
                return self._operator(variable, value)
            case Call(op=Constructor() as made):
                operands = [("t", self._number(self._value(a), value)) for a in value.args]
                found = self._new(ty)
                number = self.pool.constructor(made)
                emit("AllocADT", ("d", found.number), ("g", number), ("#", len(operands)), *operands, node=value)
                return found
            case Tuple(fields):
                return Fields([self._value(f) for f in fields])
            case TupleGetItem(source, index):
                whole = self._value(source)
                if isinstance(whole, Fields):
                    return self._arrived(whole.fields[index])
                if isinstance(whole, Coming):
                    node = field_of(whole.node, index)
                    whole.region.add(variable, node)
                    return Coming(whole.region, variable, node)
                found = self._new(ty)
                emit("GetField", ("d", found.number), ("t", self._number(whole, value)), ("m", index), node=value)
                return found
            case RefCreate(source):
                number = self._number(self._value(source), value)
                found = self._new(ty)
                emit("NewRef", ("d", found.number), ("t", number), node=value)
                return found
            case RefRead(source):
                number = self._number(self._value(source), value)
                found = self._new(ty)
                emit("ReadRef", ("d", found.number), ("r", number), node=value)
                return found
            case RefWrite(cell, source):
                numbers = self._number(self._value(cell), value), self._number(self._value(source), value)
                emit("WriteRef", ("r", numbers[0]), ("t", numbers[1]), node=value)
                return Fields([])
            case Function():
                return self._closure(variable, value, ty)
        raise unsupported(f"{type(value).__name__} cannot be compiled", value)

    def _closure(self, variable: Var, function: Function, ty: Type | None) -> Value:
        if function.body is None:
            raise unsupported("a function without a body cannot be compiled", function)
        number = len(self.pool.codes)
        code = self.pool.code(f"%{variable.name_hint}", function)
        self.inner.append((function, code))
        captured = self.uses.owners[id(function)].captured
        operands = [("t", self._number(self._value(v), function)) for v in captured]
        found = self._new(ty)
        self.code.emit("AllocClosure", ("d", found.number), ("f", number), ("#", len(operands)), *operands, node=function)
        return found

    def _call(self, variable: Var, call: Call, tail: bool) -> None:
        emit, callee = self.code.emit, call.op
        args = [("t", self._number(self._value(a), call)) for a in call.args]
        count = ("#", len(args))
        target = [] if tail else [self._new(variable.checked_type or call.checked_type)]
        where = [("d", t.number) for t in target]
        if isinstance(callee, GlobalVar):
            number = self.pool.function(callee)
            emit("InvokeTail" if tail else "Invoke", *where, ("f", number), count, *args, node=call)
        else:
            closure = self._number(self._value(callee), call)
            emit("InvokeClosureTail" if tail else "InvokeClosure", *where, ("t", closure), count, *args, node=call)
        for found in target:
            self.env[variable] = found

    # --- branches ---

    def _branches(self, value: If | Match, into: int | None, join: int | None, work: list[_Chain]) -> None:
        emit = self.code.emit
        if isinstance(value, If):
            other = self.code.label()
            cond = self._number(self._value(value.cond), value)
            emit("If", ("r", cond), ("j", other), node=value)
            work.append(_Chain(value.false_branch, into, join, other))
            work.append(_Chain(value.true_branch, into, join))
            return
        data = self._value(value.data)
        if isinstance(data, Atom):
            data = Reg(self._number(data, value), value.data.checked_type)
        tag = None
        if any(isinstance(c.lhs, PatternConstructor) and not self.pool.is_only(c.lhs.constructor) for c in value.clauses):
            tag = self.code.value(True)
            emit("GetTag", ("s", tag), ("r", self._number(data, value)), node=value)
        labels = [self.code.label() for _ in value.clauses]
        chains = []
        before: int | None = None
        for clause, label in zip(value.clauses, labels):
            chains.append(_Chain(clause.rhs, into, join, before, _Clause(value, clause.lhs, data, tag, label)))
            before = label
        # Behind the clauses stands the end for values that fit none; the first clause comes last onto the stack.
        work.append(_Chain(value, into, join, before, fatal=True))
        work += reversed(chains)

    def _clause(self, clause: _Clause) -> None:
        """Test a value against a pattern, jump where it does not fit, and bind the pattern's variables."""
        emit, node = self.code.emit, clause.match
        stack: list[tuple[Pattern, Value, int | None]] = [(clause.pattern, clause.data, clause.tag)]
        while stack:
            pattern, value, tag = stack.pop()
            if isinstance(pattern, PatternVar):
                self.env[pattern.var] = value
                continue
            if not isinstance(pattern, (PatternConstructor, PatternTuple)):
                continue
            if isinstance(pattern, PatternConstructor) and not self.pool.is_only(pattern.constructor):
                if tag is None:
                    tag = self.code.value(True)
                    emit("GetTag", ("s", tag), ("r", self._number(value, node)), node=node)
                number = self.pool.constructor(pattern.constructor)
                emit("IfTag", ("r", tag), ("g", number), ("j", clause.failed), node=node)
                self.refuted.add(clause.failed)
            inner: list[tuple[Pattern, Value, int | None]] = []
            for n, part in enumerate(pattern.patterns):
                if isinstance(value, Fields):
                    inner.append((part, self._arrived(value.fields[n]), None))
                    continue
                if isinstance(part, PatternWildcard) or (isinstance(part, PatternVar) and part.var not in self.uses.users):
                    continue
                found = self._new(part.var.checked_type if isinstance(part, PatternVar) else None)
                emit("GetField", ("d", found.number), ("t", self._number(value, node)), ("m", n), node=node)
                inner.append((part, found, None))
            stack += reversed(inner)


def is_scalar(ty: Type | None) -> bool:
    """Whether values of a type are scalars, which lie in registers."""
    return isinstance(ty, TensorType) and not ty.shape and ty.dtype in DTYPE_NUMBERS


def _is_result(variable: Var, rest: Expr) -> bool:
    """Whether nothing but other names for the variable stands between it and the end of its chain."""
    while isinstance(rest, Let) and rest.value is variable:
        variable, rest = rest.variable, rest.body
    return rest is variable


def _has_tuples(value: Fields) -> bool:
    return any(isinstance(f, (Fields, Reg)) and (isinstance(f, Fields) or isinstance(f.ty, TupleType)) for f in value.fields)


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
