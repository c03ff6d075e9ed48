"""LazyGradientInit: delay tensors of zeros and ones until a use needs them.

For what the gradient makes: the gradients that it begins with are zeros, and most are only added to. Inside a function
a tensor becomes a `GradCell`, which is the tensor (`Raw`) or a promise of zeros or ones. Sums with zeros and products
with zeros or ones need no tensor. The function takes and gives plain tensors, as before. A product with zeros is zeros
here, whatever the other factor is; TVM's pass says the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

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
    TensorType,
    Tuple,
    TupleGetItem,
    TupleType,
    Type,
    Var,
    bound_vars,
    children,
    post_order,
    rebuild,
)
from relaylang.ir.typemaps import HasPart, replacing
from relaylang.ir.types import written
from relaylang.ops.record import Op
from relaylang.passes.manager import Pass
from relaylang.passes.normal_forms.blocks import is_data, map_pattern, type_of
from relaylang.passes.normal_forms.to_a_normal_form import convert
from relaylang.passes.rewriting import is_kernel
from relaylang.rules.lazy_gradient import FUNCTIONS, RULES, Promise, Shortcut
from relaylang.stdlib.library import add

#: Puts a library's definition into a module.
Add = Callable[[IRModule, str], object]


def lazy_gradient_init(mod: IRModule, add: Add) -> IRModule:
    """A typed module whose functions make zeros and ones late. `add(mod, name)` adds a definition of the library.

    Functions stay as they are if they hold kernels, or take or return values other than tensors and their tuples. So do
    those that use global functions as values or types with tensors of their own. So do those without zeros and ones.
    """
    wanted = [gv for gv, f in mod.functions.items() if _takes_part(f)]
    if not wanted:
        return mod
    lazy_mod = IRModule(mod.functions, mod.type_definitions, mod.attrs)
    for name in ("FromGradCell", *FUNCTIONS):
        add(lazy_mod, name)
    change = _Lazy(lazy_mod)
    for gv in wanted:
        lazy_mod[gv] = change.function(mod.functions[gv])
    return lazy_mod


def _calls_with_data(node: Expr) -> bool:
    """Whether global functions stand at a node only where it calls one, with data, for data."""
    if not isinstance(node, Call) or not isinstance(node.op, GlobalVar):
        return not any(isinstance(c, GlobalVar) for c in children(node))
    return not any(isinstance(a, GlobalVar) for a in node.args) and all(map(is_data, map(type_of, (node, *node.args))))


def _takes_part(func: Function) -> bool:
    ty = func.checked_type
    if is_kernel(func) or func.type_params or not isinstance(ty, FuncType):
        return False
    if not all(map(is_data, (*ty.arg_types, ty.ret_type))):
        return False
    promises = False
    has_tensor = HasPart(lambda t: isinstance(t, TensorType))
    for node in post_order(func):
        if isinstance(node, Constructor) and any(map(has_tensor, node.inputs)):
            return False
        if isinstance(node, Function) and (is_kernel(node) or node.type_params):
            return False
        if not _calls_with_data(node):
            return False
        if isinstance(node, Call) and isinstance(node.op, Op):
            promises = promises or isinstance(RULES.get(node.op.name), Promise)
    return promises


class _Lazy:
    def __init__(self, mod: IRModule) -> None:
        self.cell = mod.get_global_type_var("GradCell")
        self.constructors = {c.name_hint: c for c in mod.type_definitions[self.cell].constructors}
        #: A type with each tensor in a cell.
        self.lazy = replacing(lambda t: self.cell(t) if isinstance(t, TensorType) else None)
        self.names = {name: mod.get_global_var(name) for name in ("FromGradCell", *FUNCTIONS)}

    def wrap(self, value: Expr, ty: Type) -> Expr:
        """A plain value as cells."""
        if isinstance(ty, TupleType):
            return Tuple([self.wrap(TupleGetItem(value, i), t) for i, t in enumerate(ty.fields)])
        return Call(self.constructors["Raw"], [value])

    def plain(self, value: Expr, ty: Type) -> Expr:
        """Cells as the plain value."""
        if isinstance(ty, TupleType):
            return Tuple([self.plain(TupleGetItem(value, i), t) for i, t in enumerate(ty.fields)])
        return Call(self.names["FromGradCell"], [value])

    def function(self, func: Function) -> Function:
        normal = convert(func, let_results=False)
        assert isinstance(normal, Function) and isinstance(func.checked_type, FuncType)
        fresh = {v: Var(v.name_hint, written(self.lazy(type_of(v))), v.span) for v in bound_vars(normal)}
        done: dict[int, Expr] = {}
        for node in post_order(normal.body):
            new = tuple([done[id(c)] for c in children(node)])
            done[id(node)] = self.node(node, new, fresh)
        result = Var("result")
        body: Expr = Let(result, done[id(normal.body)], self.plain(result, func.checked_type.ret_type))
        params = [Var(p.name_hint, type_of(p), p.span) for p in normal.params]
        for old, param in reversed(list(zip(normal.params, params))):
            body = Let(fresh[old], self.wrap(param, type_of(param)), body)
        return Function(params, body, func.checked_type.ret_type, (), func.attrs, func.span)

    def node(self, node: Expr, new: tuple[Expr, ...], fresh: dict[Var, Var]) -> Expr:
        match node:
            case Var():
                return fresh.get(node, node)
            case Constant():
                return self.wrap(node, type_of(node))
            case Function():
                ret_type = node.checked_type.ret_type if isinstance(node.checked_type, FuncType) else None
                params = [fresh[p] for p in node.params]
                return Function(params, new[0], written(self.lazy(ret_type)) if ret_type else None, (), node.attrs, node.span)
            case Let():
                return Let(fresh[node.variable], new[0], new[1], node.span)
            case If():
                return If(self.plain(new[0], TensorType((), "bool")), new[1], new[2], node.span)
            case Match():
                clauses = [Clause(map_pattern(c.lhs, fresh), r, c.span) for c, r in zip(node.clauses, new[1:])]
                return Match(new[0], clauses, node.complete, node.span)
            case Call(op=Op() | GlobalVar()):
                return self.call(node, new[:-1])
            case Call():
                return Call(new[-1], new[:-1], node.attrs, (), node.span)
        return rebuild(node, new)

    def call(self, node: Call, new: tuple[Expr, ...]) -> Expr:
        types = [type_of(a) for a in node.args]
        ty = type_of(node)
        rule = RULES.get(node.op.name) if isinstance(node.op, Op) else None
        if isinstance(rule, Shortcut) and types == [ty, ty]:
            left, right = Var("left", ty), Var("right", ty)
            return Call(self.names[rule.function], [Function([left, right], Call(node.op, [left, right]), ty), *new])
        plain = Call(node.op, [self.plain(a, t) for a, t in zip(new, types)], node.attrs, node.type_args, node.span)
        if isinstance(rule, Promise):
            return Call(self.constructors[rule.constructor], [Function([], plain, ty)])
        if isinstance(ty, TensorType):
            return self.wrap(plain, ty)
        result = Var("parts")
        return Let(result, plain, self.wrap(result, ty))


@dataclass(frozen=True)
class LazyGradientInit(Pass):
    """Delay tensors of zeros and ones until a use needs them; skip sums and products with them."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return lazy_gradient_init(mod, add)
