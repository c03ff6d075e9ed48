"""The higher-order gradient: reverse mode through lets, branches, references, functions and data.

After Pearlmutter & Siskind, "Reverse-mode AD in a functional framework". The form is that of Wang et al. in
"Demystifying Differentiable Programming". A tensor becomes a pair of itself and a reference to its gradient. The
reference `bp` holds the remaining work backwards. Each call of an operator wraps it in a function. That function first
adds to the gradients of its operands, then does the earlier work.

    let %y = op(%x)    becomes    let %v = op(%x.0)
                                  let %y = (%v, ref(zeros_like(%v)))
                                  let %old = ref_read(bp)
                                  ref_write(bp, fn () { ref_write(%x.1, ref_read(%x.1) + ...); %old() })

Functions, branches and references stay what they are, over pairs. The result is an ordinary program, of which the
gradient may be taken again.
"""

from __future__ import annotations

from collections.abc import Iterator

from relaylang.diagnostics import RelayError, error
from relaylang.ir import (
    Call,
    Clause,
    Constant,
    Constructor,
    Expr,
    Function,
    FuncType,
    GlobalVar,
    If,
    IRModule,
    Let,
    Match,
    RefCreate,
    RefRead,
    RefType,
    RefWrite,
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    bound_vars,
    children,
    rebuild,
    rewrite,
)
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import typed
from relaylang.ir.typemaps import HasPart, TypeMap, replacing
from relaylang.ir.types import written
from relaylang.ir.visit import Walk, walk
from relaylang.ops.record import Op
from relaylang.passes.normal_forms.blocks import free_name, is_data, map_pattern, type_of
from relaylang.passes.normal_forms.to_a_normal_form import convert
from relaylang.passes.rewriting import is_kernel, is_opaque
from relaylang.rules.gradient import RULES, NoGradient
from relaylang.rules.gradient.common import holds_float, ones, plus, zeros
from relaylang.typing import check

_UNIT = TupleType([])
_BP = RefType(FuncType([], _UNIT))


def reverse_type() -> TypeMap:
    """Types with each tensor as a pair of the tensor and a reference to its gradient."""
    return replacing(lambda t: TupleType([t, RefType(t)]) if isinstance(t, TensorType) else None)


class _Lets:
    """Bindings, one after the other. `push` gives the variable."""

    def __init__(self) -> None:
        self.bound: list[tuple[Var, Expr]] = []

    def push(self, value: Expr, ty: Type | None = None, name: str = "x") -> Var:
        variable = typed(Var(name), ty)
        self.bound.append((variable, typed(value, ty)))
        return variable

    def around(self, body: Expr) -> Expr:
        for variable, value in reversed(self.bound):
            body = Let(variable, value, body, value.span)
        return body


def _field(value: Expr, index: int, ty: Type | None = None) -> TupleGetItem:
    return typed(TupleGetItem(value, index), ty)


def _pair(value: Expr, ty: Type, lets: _Lets) -> Expr:
    """A value as a pair with a new gradient of zeros; tuples field by field."""
    if isinstance(ty, TupleType):
        fields = [_pair(lets.push(_field(value, i), t), t, lets) for i, t in enumerate(ty.fields)]
        return lets.push(Tuple(fields))
    return lets.push(Tuple([value, RefCreate(zeros(value))]))


def _plain(value: Expr, ty: Type, lets: _Lets) -> Var:
    """The tensors of a value of pairs."""
    if isinstance(ty, TupleType):
        fields = [_plain(lets.push(_field(value, i)), t, lets) for i, t in enumerate(ty.fields)]
        return lets.push(Tuple(fields), ty)
    return lets.push(_field(value, 0), ty)


def _cells(value: Expr, ty: Type, lets: _Lets) -> Iterator[tuple[Expr, TensorType]]:
    """The references to a value's gradients, in order."""
    if isinstance(ty, TupleType):
        for i, t in enumerate(ty.fields):
            yield from _cells(lets.push(_field(value, i)), t, lets)
    else:
        assert isinstance(ty, TensorType)
        yield lets.push(_field(value, 1)), ty


def _gradients(value: Expr, ty: Type, lets: _Lets) -> Expr:
    """What a value's references hold, as a value of its type."""
    if isinstance(ty, TupleType):
        return lets.push(Tuple([_gradients(lets.push(_field(value, i)), t, lets) for i, t in enumerate(ty.fields)]))
    return lets.push(RefRead(lets.push(_field(value, 1))))


def _refuse(what: str, node: Expr) -> RelayError:
    return RelayError(error("R0511", f"there is no gradient through {what}", node.span))


class _Reverse:
    """Functions in reverse mode. Global functions take `bp` as their first parameter, local ones see it around them."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        self.taken = {gv.name_hint for gv in mod.functions}
        self.names: dict[GlobalVar, GlobalVar] = {}
        self.wanted: list[GlobalVar] = []
        self.new: dict[Var, Var] = {}
        self.bp = Var("bp", _BP)
        self.reverse_type = reverse_type()
        self.has_tensor = HasPart(lambda t: isinstance(t, TensorType))

    def named(self, gv: GlobalVar) -> GlobalVar:
        if gv not in self.names:
            if gv not in self.mod.functions or is_opaque(self.mod.functions[gv]):
                raise _refuse(f"@{gv.name_hint}, which has no body here", gv)
            self.names[gv] = GlobalVar(free_name(f"{gv.name_hint}_grad", self.taken))
            self.wanted.append(gv)
        return self.names[gv]

    def normal(self, func: Function) -> Function:
        """A function in A-normal form, with a new variable for each that it binds."""
        normal = convert(func, let_results=False)
        assert isinstance(normal, Function)
        for var in bound_vars(normal):
            self.new[var] = Var(var.name_hint, written(self.reverse_type(type_of(var))), var.span)
        return normal

    def function(self, func: Function) -> Walk:
        if is_kernel(func):
            raise _refuse("a kernel; DefuseOps dissolves them", func)
        body = yield self.block(func.body)
        ty = func.checked_type
        assert isinstance(ty, FuncType)
        params = [self.new[p] for p in func.params]
        return Function(params, body, written(self.reverse_type(ty.ret_type)), func.type_params, func.attrs, func.span)

    def whole(self, gv: GlobalVar) -> Function:
        """A global function in reverse mode."""
        self.bp = Var("bp", _BP)
        reverse: Function = walk(self.function(self.normal(self.mod.functions[gv])))
        return Function([self.bp, *reverse.params], reverse.body, reverse.ret_type, reverse.type_params, reverse.attrs, reverse.span)

    def atom(self, expr: Expr) -> Expr:
        if isinstance(expr, Var):
            return self.new[expr]
        if isinstance(expr, Constructor) and any(map(self.has_tensor, expr.inputs)):
            raise _refuse(f"the constructor {expr.name_hint}, which fixes a tensor's type", expr)
        if isinstance(expr, GlobalVar):
            ty = expr.checked_type
            if not isinstance(ty, FuncType) or ty.type_params:
                raise _refuse(f"@{expr.name_hint} as a value", expr)
            params = [Var(f"p{i}", self.reverse_type(t)) for i, t in enumerate(ty.arg_types)]
            return Function(params, Call(self.named(expr), [self.bp, *params]), self.reverse_type(ty.ret_type))
        return expr

    def block(self, expr: Expr) -> Walk:
        lets = _Lets()
        while isinstance(expr, Let):
            value = yield self.value(expr.value, type_of(expr.variable), lets)
            lets.bound.append((self.new[expr.variable], value))
            expr = expr.body
        return lets.around(self.atom(expr))

    def value(self, value: Expr, ty: Type, lets: _Lets) -> Walk:
        if isinstance(value, Constant):
            return _pair(lets.push(value, ty), ty, lets)
        if isinstance(value, Function):
            return (yield self.function(value))
        if isinstance(value, If):
            yes = yield self.block(value.true_branch)
            no = yield self.block(value.false_branch)
            return If(lets.push(_field(self.atom(value.cond), 0)), yes, no, value.span)
        if isinstance(value, Match):
            clauses = []
            for clause in value.clauses:
                body = yield self.block(clause.rhs)
                clauses.append(Clause(map_pattern(clause.lhs, self.new), body, clause.span))
            return Match(self.atom(value.data), clauses, value.complete, value.span)
        if isinstance(value, Call) and isinstance(value.op, Op):
            return self.operator(value, ty, lets)
        if isinstance(value, Call) and isinstance(value.op, GlobalVar):
            args = [self.atom(a) for a in value.args]
            return Call(self.named(value.op), [self.bp, *args], value.attrs, (), value.span)
        if isinstance(value, Call):
            return Call(self.atom(value.op), [self.atom(a) for a in value.args], value.attrs, (), value.span)
        if isinstance(value, (Var, GlobalVar, Constructor)):
            return self.atom(value)
        if not children(value) and not isinstance(value, Tuple):
            raise _refuse(f"a {type(value).__name__}", value)
        return rebuild(value, tuple([self.atom(c) for c in children(value)]))

    def operator(self, call: Call, ty: Type, lets: _Lets) -> Expr:
        """A call of an operator: its value now, its part of the way back for later."""
        assert isinstance(call.op, Op)
        args = [self.atom(a) for a in call.args]
        types = [type_of(a) for a in call.args]
        if not all(map(is_data, [ty, *types])):
            raise _refuse(f"{call.op.name} of a value that is not a tensor", call)
        operands = [_plain(a, t, lets) for a, t in zip(args, types)]
        plain = Call(call.op, operands, call.attrs, call.type_args, call.span)
        result = lets.push(plain, ty)
        pair = _pair(result, ty, lets)
        if not holds_float(ty) or not any(map(holds_float, types)):
            return pair
        back = _Lets()
        cells = list(_cells(pair, ty, back))
        grads = [back.push(RefRead(cell), t, "g") for cell, t in cells]
        parts = _rule(call, plain, grads)
        for arg, part, t in zip(args, parts, types):
            if part is None or not holds_float(t):
                continue
            wanted = part if isinstance(part, list) else [part]
            for (cell, _), one in zip(list(_cells(arg, t, back)), wanted):
                if one is not None:
                    value = rewrite(one, lambda old, new: result if old is plain else new)
                    back.push(RefWrite(cell, plus(RefRead(cell), value)))
        old = lets.push(RefRead(self.bp), name="old")
        lets.push(RefWrite(self.bp, Function([], back.around(Call(old, [])), _UNIT)))
        return pair


def _rule(call: Call, plain: Call, grads: list[Var]) -> list:
    assert isinstance(call.op, Op)
    rule = RULES.get(call.op.name)
    if rule is None:
        raise RelayError(error("R0511", f"{call.op.name} has no gradient", call.span))
    try:
        return rule(plain, grads if isinstance(plain.checked_type, TupleType) else grads[0])
    except NoGradient as problem:
        raise RelayError(error("R0511", f"there is no gradient of {problem}", call.span)) from None


def gradient(func: Function, mod: IRModule | None = None) -> Function:
    """A typed function of the same parameters, tensors and tuples of them, that returns `(result, (gradient, ...))`.

    The result's own gradient is 1 everywhere. The functions of the module that it calls are added to the module in
    reverse mode, as `<name>_grad`. Raises `RelayError` (R0511).
    """
    home = mod if mod is not None else IRModule()
    check(func, module=mod, fragment=True)
    with gc_paused():
        derivative, more = _top(func, _Reverse(home))
    for gv, function in more.items():
        home[gv] = function
    return derivative


def _top(func: Function, reverse: _Reverse) -> tuple[Function, dict[GlobalVar, Function]]:
    ty = func.checked_type
    assert isinstance(ty, FuncType)
    for param in func.params:
        if not is_data(type_of(param)):
            raise _refuse(f"the parameter %{param.name_hint}, which is no tensor", func)
    if not is_data(ty.ret_type):
        raise _refuse("a result that is no tensor", func)
    lets = _Lets()
    reverse.bp = bp = lets.push(RefCreate(Function([], Tuple([]), _UNIT)), name="bp")
    bp.type_annotation = _BP
    normal = reverse.normal(func)
    params = [Var(p.name_hint, type_of(p), p.span) for p in func.params]
    for old, param in zip(normal.params, params):
        lets.bound.append((reverse.new[old], _pair(param, type_of(param), lets)))
    result = lets.push(walk(reverse.block(normal.body)))
    value = _plain(result, ty.ret_type, lets)
    for cell, t in list(_cells(result, ty.ret_type, lets)):
        if value.checked_type is t:  # nothing has been added to its gradient
            lets.push(RefWrite(cell, ones(value)))
            continue
        read = lets.push(RefRead(cell), t)  # parts of a tuple may be one value
        lets.push(RefWrite(cell, plus(read, ones(read))))
    lets.push(Call(lets.push(RefRead(bp)), []))
    gradients = [_gradients(reverse.new[p], type_of(p), lets) for p in normal.params]
    function = Function(params, lets.around(Tuple([value, Tuple(gradients)])), None, func.type_params, func.attrs, func.span)
    more: dict[GlobalVar, Function] = {}
    while reverse.wanted:
        gv = reverse.wanted.pop()
        more[reverse.names[gv]] = reverse.whole(gv)
    return function, more


__all__ = ["gradient", "reverse_type"]
