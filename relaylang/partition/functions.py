"""What a code generator does with a module's partitions: lift them, give them up again, hand them over.

A partition is a function with the attribute `Compiler`; `PartitionGraph` makes it a function of the module under its
`global_symbol`.
"""

from __future__ import annotations

from collections.abc import Iterable

from relaylang.diagnostics import RelayError, error
from relaylang.ir import Call, Expr, Function, GlobalVar, IRModule, Let, Var, post_order, rebuilt
from relaylang.ir.structural import structural_equal
from relaylang.ir.typed import retype
from relaylang.partition.inline import inline_named
from relaylang.typing import check


def outline_compiler_functions(mod: IRModule, compiler_filter: str = "") -> IRModule:
    """A typed module in which every called partition is a function of the module, under its `global_symbol`.

    `compiler_filter` names the one compiler that is meant; empty, all are. Partitions are lifted where they stand as
    callees, and where a let binds them. Several of one name, which must be equal, become one function. Raises
    `RelayError` (R0527) for a partition without a name, or with another function's name.
    """
    names = {gv.name_hint: gv for gv in mod.functions}
    functions = dict(mod.functions)
    lifted: dict[str, Function] = {}
    for gv, func in mod.functions.items():
        if func.body is None or _is_partition(func, compiler_filter):
            continue
        bound = {
            n.variable: n.value
            for n in post_order(func)
            if isinstance(n, Let) and isinstance(n.value, Function) and _is_partition(n.value, compiler_filter)
        }
        done: dict[int, Expr] = {}
        for node in post_order(func):
            new = retype(rebuilt(node, done), node)
            if isinstance(node, Call):
                callee = bound.get(node.op) if isinstance(node.op, Var) else node.op
                if isinstance(callee, Function) and _is_partition(callee, compiler_filter):
                    assert isinstance(new, Call)
                    target = _lift(callee, names, functions, lifted)
                    new = retype(Call(target, new.args, None, (), node.span), node)
            done[id(node)] = new
        functions[gv] = _without_lets(done[id(func)], set(bound))
    if not lifted:
        return mod
    result = IRModule(functions, mod.type_definitions, mod.attrs)
    check(result)
    return result


def _is_partition(func: Function, compiler_filter: str) -> bool:
    compiler = func.attrs.get("Compiler")
    return compiler is not None and compiler_filter in ("", compiler)


def _lift(func: Function, names: dict[str, GlobalVar], functions: dict[GlobalVar, Function], lifted: dict[str, Function]) -> GlobalVar:
    name = func.attrs.get("global_symbol")
    if not name:
        compiler = func.attrs["Compiler"]
        raise RelayError(error("R0527", f"a partition of {compiler} has no global_symbol", func.span))
    known = lifted.get(name) or (functions[names[name]] if name in names else None)
    if known is None:
        names[name] = GlobalVar(name)
        functions[names[name]] = lifted[name] = func
    elif known is not func and not structural_equal(known, func):
        raise RelayError(error("R0527", f"the module has another function @{name} than this partition", func.span))
    lifted.setdefault(name, func)
    return names[name]


def _without_lets(func: Expr, variables: set[Var]) -> Function:
    """The function without the lets of these variables, which are used no more."""
    assert isinstance(func, Function)
    if not variables:
        return func
    kept = {n for n in post_order(func) if isinstance(n, Var)} & variables
    done: dict[int, Expr] = {}
    for node in post_order(func):
        drop = isinstance(node, Let) and node.variable in variables and node.variable not in kept
        done[id(node)] = done[id(node.body)] if drop else retype(rebuilt(node, done), node)  # type: ignore[attr-defined]
    result = done[id(func)]
    assert isinstance(result, Function)
    return result


def mark_compiler_functions_as_extern(mod: IRModule, compiler_filter: str = "") -> IRModule:
    """A module whose partitions are marked `Extern` and nothing else: their code exists elsewhere by now."""
    functions = {
        gv: Function(f.params, f.body, f.ret_type, f.type_params, {"Extern": 1}, f.span) if _is_partition(f, compiler_filter) else f
        for gv, f in mod.functions.items()
    }
    result = mod.with_functions(functions)
    check(result)
    return result


def inline_compiler_functions(mod: IRModule, global_vars: Iterable[GlobalVar | str]) -> IRModule:
    """A typed module without these partitions: their calls have what they compute in place, composites unfolded.

    Raises `RelayError` (R0527) for a name that is no partition of the module.
    """
    dropped = set()
    for name in dict.fromkeys(v if isinstance(v, str) else v.name_hint for v in global_vars):
        func = mod[name] if name in mod else None
        if not isinstance(func, Function) or "Compiler" not in func.attrs:
            raise RelayError(error("R0527", f"@{name} is no partition of the module", func.span if func is not None else None))
        dropped.add(mod.get_global_var(name))
    return inline_named(mod, dropped)


__all__ = ["inline_compiler_functions", "mark_compiler_functions_as_extern", "outline_compiler_functions"]
