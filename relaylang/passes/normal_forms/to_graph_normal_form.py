"""ToGraphNormalForm: dissolve lets; every use of a variable becomes the bound value itself, shared.

Lets that a graph cannot express stay. One is a function that calls itself by its name. Another, in a program with
references, is a value whose evaluation may read or write one. A graph has no order but that of its operands. A binding
that nothing uses goes away. A value of which one closure or branch alone makes use is from then on computed in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from relaylang.ir import Expr, GlobalVar, IRModule, Let, Var, children, rebuild
from relaylang.ir.bulk import gc_paused
from relaylang.ir.typed import retype
from relaylang.passes.effects import has_references, may_have_effects, pure_functions
from relaylang.passes.manager import Pass
from relaylang.passes.normal_forms.bindings import ATOMS
from relaylang.passes.rewriting import is_primitive

_P = TypeVar("_P", IRModule, Expr)


def recursive_variables(expr: Expr) -> set[Var]:
    """The variables of lets whose values mention them."""
    recursive: set[Var] = set()
    inside: set[Var] = set()
    done: set[int] = set()
    stack: list[tuple[Expr, Var | None]] = [(expr, None)]
    while stack:
        node, closes = stack.pop()
        if closes is not None:
            inside.discard(closes)
        elif isinstance(node, Var):
            if node in inside:
                recursive.add(node)
        elif id(node) not in done:
            done.add(id(node))
            if isinstance(node, Let):
                inside.add(node.variable)
                stack += [(node.body, None), (node, node.variable), (node.value, None)]
            else:
                stack += [(c, None) for c in reversed(children(node))]
    return recursive


def convert(expr: Expr, *, references: bool | None = None, pure: frozenset[GlobalVar] = frozenset()) -> Expr:
    """One expression in graph normal form.

    `references` says whether the program around it has any, `pure` which of its functions have no effects.
    """
    if type(expr) in ATOMS or is_primitive(expr):
        return expr
    if references is None:
        references = has_references(expr)
    with gc_paused():
        kept = may_have_effects(expr, pure) if references else set()
        return _dissolve(expr, recursive_variables(expr), kept)


def _dissolve(expr: Expr, recursive: set[Var], kept: set[int]) -> Expr:
    done: dict[int, Expr] = {}
    values: dict[Var, Expr] = {}

    def copy(node: Expr) -> Expr:
        if isinstance(node, Var):
            return values.get(node, node)
        return node if type(node) in ATOMS else done[id(node)]

    seen: set[int] = set()
    stack: list[tuple[Expr, int]] = [(expr, 0)]
    while stack:
        node, step = stack.pop()
        if type(node) in ATOMS or (step == 0 and id(node) in seen):
            continue
        seen.add(id(node))
        if isinstance(node, Let):
            if step == 0:
                stack += [(node, 1), (node.value, 0)]
                continue
            keep = node.variable in recursive or id(node.value) in kept
            if step == 1:
                if not keep:
                    values[node.variable] = copy(node.value)
                stack += [(node, 2), (node.body, 0)]
                continue
            if not keep:
                done[id(node)] = copy(node.body)
                continue
        elif is_primitive(node):
            done[id(node)] = node
            continue
        elif step == 0:
            stack.append((node, 1))
            stack.extend([(c, 0) for c in reversed(children(node))])
            continue
        done[id(node)] = retype(rebuild(node, tuple([copy(c) for c in children(node)])), node)
    return copy(expr)


def to_gnf(program: _P) -> _P:
    """Graph normal form of an expression, or of every function of a module. Functions of other compilers stay as they
    are. The same program comes back where nothing changes.
    """
    if not isinstance(program, IRModule):
        return convert(program)
    references = any(has_references(f) for f in program.functions.values())
    pure = pure_functions(program) if references else frozenset()
    functions = {
        name: f if "Compiler" in f.attrs else convert(f, references=references, pure=pure) for name, f in program.functions.items()
    }
    if all(functions[name] is f for name, f in program.functions.items()):
        return program
    return program.with_functions(functions)  # type: ignore[arg-type, return-value]


@dataclass(frozen=True)
class ToGraphNormalForm(Pass):
    """Dissolve lets into shared nodes. Recursion and effects keep theirs."""

    opt_level = 1

    def run(self, mod: IRModule) -> IRModule:
        return to_gnf(mod)
