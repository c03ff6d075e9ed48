"""Types in Relay text. Two type variables of one name get different names where they meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any as AnyValue

from relaylang.ir.extents import names_in
from relaylang.ir.types import (
    READABLE,
    ComputedDim,
    Dim,
    FuncType,
    GlobalTypeVar,
    RefType,
    SymbolicDim,
    TensorType,
    TupleType,
    Type,
    TypeCall,
    TypeVar,
    computed_text,
    dim_text,
)

#: How many parts a type has at most that stands in a comment: ours, TVM's.
LARGEST = (READABLE, 100_000)


class TypeText:
    """Writes types. One type object is written once; type variables are named when they are first met.

    `meta(type_key, value)` gives the `meta[...]` text of an extent that nothing binds.
    """

    __slots__ = ("_comments", "_in_scope", "_kept", "_meta", "_named", "_sizes", "_texts", "_tvm")

    def __init__(self, style: str, meta: Callable[[str, AnyValue], str]) -> None:
        self._meta = meta
        self._tvm = style == "tvm"
        self._texts: dict[int, str] = {}
        self._comments: dict[int, str] = {}
        self._sizes: dict[int, int] = {}
        self._named: dict[int, str] = {}
        self._in_scope: dict[str, int] = {}
        self._kept: list[Type] = []

    def comment(self, ty: Type) -> str:
        """` /* ty=TYPE */`, or nothing where the type is larger than anybody reads.

        A value's type can be larger than the program. The types of `n` nested tuples have `n * n` parts together. If each
        tuple holds the one before it twice, they have two to the power of `n`.
        """
        text = self._comments.get(id(ty))
        if text is None:
            short = type(ty) is TensorType or self._size(ty) <= LARGEST[self._tvm]
            text = self._comments[id(ty)] = f" /* ty={self.text(ty)} */" if short else ""
            self._kept.append(ty)
        return text

    def _size(self, root: Type) -> int:
        """How many parts a type's text has. Each type object is looked at once."""
        sizes = self._sizes
        stack = [root]
        while stack:
            ty = stack[-1]
            if id(ty) in sizes:
                stack.pop()
                continue
            match ty:
                case TupleType(fields):
                    parts: Sequence[Type] = fields
                case FuncType(arg_types, ret_type):
                    parts = (*arg_types, ret_type)
                case TypeCall(_, args):
                    parts = args
                case RefType(value):
                    parts = (value,)
                case _:
                    parts = ()
            waiting = [part for part in parts if id(part) not in sizes]
            if waiting:
                stack += waiting
                continue
            sizes[id(ty)] = 1 + sum([sizes[id(part)] for part in parts])
            self._kept.append(ty)
            stack.pop()
        return sizes[id(root)]

    def text(self, ty: Type) -> str:
        """The type in Relay text."""
        text = self._texts.get(id(ty))
        if text is None:
            text = self._tensor(ty) if type(ty) is TensorType else self._write(ty)
            self._texts[id(ty)] = text
            self._kept.append(ty)
        return text

    def name(self, var: TypeVar) -> str:
        """A type variable's name."""
        return self._named.get(id(var), var.name_hint)

    def enter(self, variables: Sequence[TypeVar]) -> list[str]:
        """Bring type variables into scope. Returns their names, none of which is another's in scope."""
        names = []
        for var in variables:
            name = self._named.get(id(var), var.name_hint)
            number = 0
            while not self._tvm and self._in_scope.get(name, id(var)) != id(var):
                number += 1
                name = f"{var.name_hint}{number}"
            if name != var.name_hint:
                self._named[id(var)] = name
            self._in_scope.setdefault(name, id(var))
            names.append(name)
            self._kept.append(var)
        return names

    def leave(self, variables: Sequence[TypeVar], names: Sequence[str]) -> None:
        """Take type variables out of scope again."""
        for var, name in zip(variables, names):
            if self._in_scope.get(name) == id(var):
                del self._in_scope[name]

    def _tensor(self, ty: TensorType) -> str:
        return self.tensor(ty) if ty.shape else ty.dtype

    def tensor(self, ty: TensorType) -> str:
        """A tensor type in full: `Tensor[(), float32]` for a scalar."""
        dims = ", ".join([str(d) if type(d) is int else self.extent(d) for d in ty.shape])
        return f"Tensor[({dims}), {ty.dtype}]"

    def extent(self, var: Dim) -> str:
        """An extent: its name where a function binds it, else its place in the metadata section.

        One computed of such names is written out; TVM's text has no form for it but `?`.
        """
        if not isinstance(var, TypeVar):
            return dim_text(var)
        if isinstance(var, ComputedDim) and not all(isinstance(name, SymbolicDim) for name in names_in(var)):
            return "?" if self._tvm else computed_text(var.type_key, var.operands, self.extent)
        if isinstance(var, SymbolicDim):
            return self._meta(var.type_key, var)
        name = self.name(var)
        return name if self._in_scope.get(name) == id(var) else self._meta("tir.Var", var)

    def _write(self, ty: Type) -> str:
        out: list[str] = []
        stack: list[Type | str | tuple[FuncType, list[str]]] = [ty]
        while stack:
            t = stack.pop()
            if isinstance(t, str):
                out.append(t)
            elif isinstance(t, tuple):
                self.leave(t[0].type_params, t[1])
            elif isinstance(t, TensorType):
                out.append(self._tensor(t))
            elif isinstance(t, TypeVar):
                out.append(self.name(t))
            elif isinstance(t, GlobalTypeVar):
                out.append(t.name_hint)
            elif isinstance(t, TupleType):
                stack.append(",)" if len(t.fields) == 1 else ")")
                _listed(stack, t.fields)
                stack.append("(")
            elif isinstance(t, TypeCall):
                stack.append("]")
                _listed(stack, t.args)
                stack += ["[", t.func]
            elif isinstance(t, RefType):
                stack += [")", t.value, "ref("]
            elif isinstance(t, FuncType):
                fresh = [p for p in t.type_params if self._in_scope.get(self.name(p)) != id(p)]
                names = self.enter(fresh)
                if fresh:
                    stack.append((FuncType((), t.ret_type, fresh), names))
                stack += [t.ret_type, ") -> "]
                _listed(stack, t.arg_types)
                params = f"[{', '.join(map(self.name, t.type_params))}]" if t.type_params else ""
                stack.append(f"fn {params}(")
            else:
                out.append("_")
        return "".join(out)


def _listed(stack: list, types: Sequence[Type]) -> None:
    """Push types with commas between them, so that they are popped in order."""
    for i in range(len(types) - 1, -1, -1):
        stack.append(types[i])
        if i:
            stack.append(", ")
