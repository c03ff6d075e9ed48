"""Unification: a union-find forest over types and extents. It knows nothing of expressions, calls or programs.

Nothing here recurses on a type's depth, and a type without unknowns is looked at once.
"""

from __future__ import annotations

from collections.abc import Iterable

from relaylang.ir.typemaps import parts, with_parts
from relaylang.ir.types import (
    ANY,
    ComputedDim,
    Dim,
    Extent,
    FuncType,
    GlobalTypeVar,
    RefType,
    TensorType,
    Type,
    TypeCall,
    TypeVar,
    extent_dtype,
)
from relaylang.typing.terms import (
    LEAVES,
    POISON,
    DimUnknown,
    OpenTensor,
    Unknown,
    find,
    find_dim,
    fresh_for,
    open_names,
    substitute,
    unify_computed,
)


class Solver:
    """The state of one inference: bindings, what waits for them, and types seen as a whole."""

    def __init__(self) -> None:
        self.ready: list[object] = []  # what waited for a type that is known now
        self.loosened = False  # whether the last unification met `?` against a number
        self.known: dict[int, Type] = {}  # composite types without unknowns, by identity
        self._whole: dict[int, tuple[Type, Type]] = {}  # composite types that are known through their unknowns, and what as
        self.interned: dict[tuple[object, ...], TensorType] = {}
        self.conflict: tuple[Type, Type] | None = None  # where the last unification failed
        self.infinite = False  # whether it failed since a type would contain itself

    # --- looking at types ---

    def intern(self, ty: TensorType) -> TensorType:
        """One object for all equal tensor types, so that comparing them is comparing identities."""
        widths = tuple([extent_dtype(d) for d in ty.shape]) if Extent in map(type, ty.shape) else ()
        return self.interned.setdefault((ty.shape, ty.dtype, widths), ty)

    def is_known(self, ty: Type) -> bool:
        """Whether a resolved type has no unknowns."""
        kind = type(ty)
        if kind is TensorType or kind is TypeVar or kind is GlobalTypeVar:
            return True
        return id(ty) in self.known

    def head(self, ty: Type) -> Type:
        """The type with all that is known put in; of a function's type, only that it is one.

        Functions nest deep, and each call takes off one layer of a type whose parameters may be unknown.
        """
        ty = find(ty)
        return ty if isinstance(ty, FuncType) else self.resolve(ty)

    def resolve(self, ty: Type) -> Type:
        """The type with all that is known put in. Types without unknowns are noted as known."""
        ty = find(ty)
        if type(ty) is TensorType or type(ty) in LEAVES or id(ty) in self.known:
            return ty
        done: dict[int, Type] = {}
        keep: list[Type] = []
        stack = [ty]
        while stack:
            node = stack[-1]
            if id(node) in done:
                stack.pop()
                continue
            if type(node) is OpenTensor:
                done[id(node)] = self._resolve_tensor(node)
                stack.pop()
                continue
            known = self._whole.get(id(node))
            if known is not None:
                done[id(node)] = known[1]
                stack.pop()
                continue
            new: list[Type] = []
            missing: list[Type] = []
            for part in parts(node):
                part = find(part)
                if type(part) is TensorType or type(part) in LEAVES or id(part) in self.known:
                    new.append(part)
                elif id(part) in done:
                    new.append(done[id(part)])
                else:
                    missing.append(part)
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            old = parts(node)
            resolved = node if all(a is b for a, b in zip(old, new)) else with_parts(node, new)
            done[id(node)] = resolved
            keep.append(resolved)
            if all(self.is_known(part) for part in new):
                self.known[id(resolved)] = resolved
                if resolved is not node:
                    self._whole[id(node)] = node, resolved
        return done[id(ty)]

    def _resolve_tensor(self, ty: OpenTensor) -> TensorType:
        shape = tuple(find_dim(d) for d in ty.shape)
        if any(map(open_names, shape)):
            return ty if shape == ty.shape else OpenTensor(shape, ty.dtype, ty.span)
        return self.intern(TensorType(shape, ty.dtype, ty.span))

    def unknowns_in(self, ty: Type) -> list[Unknown]:
        """The unknowns inside a type, each once."""
        unknowns: dict[int, Unknown] = {}
        seen: set[int] = set()
        stack = [ty]
        while stack:
            node = find(stack.pop())
            if type(node) is Unknown:
                unknowns[id(node)] = node
            elif id(node) not in seen and id(node) not in self.known:
                seen.add(id(node))
                stack.extend(reversed(parts(node)))
        return list(unknowns.values())

    def is_poisoned(self, ty: Type) -> bool:
        """Whether something inside a type has been reported already."""
        seen: set[int] = set()
        stack = [ty]
        while stack:
            node = find(stack.pop())
            if node is POISON:
                return True
            if id(node) not in seen and id(node) not in self.known:
                seen.add(id(node))
                stack.extend(parts(node))
        return False

    def close_dims(self, ty: TensorType) -> TensorType:
        """A tensor type whose open extents are `?`: nothing said what they are."""
        shape = tuple(ANY if open_names(d) else d for d in map(find_dim, ty.shape))
        return self.intern(TensorType(shape, ty.dtype))

    # --- what waits ---

    def wait(self, item: object, types: Iterable[Type]) -> None:
        """Put an item into `ready` when the first unknown of one of these types is bound."""
        for unknown in [u for ty in types for u in self.unknowns_in(ty)[:1]]:
            self.wait_for(item, unknown)

    def wait_for(self, item: object, unknown: Unknown) -> None:
        """Put an item into `ready` when an unknown is bound. It never is, where the unknown is bound already."""
        root = find(unknown)
        if type(root) is Unknown:
            if root.waiters is None:
                root.waiters = []
            root.waiters.append(item)

    # --- unification ---

    def unify(self, left: Type, right: Type) -> bool:
        """Make two types the same. False where they differ; `conflict` says in what. `?` agrees with every extent."""
        if find(left) is find(right):
            return True
        self.infinite = False
        before, self.loosened = self.loosened, False
        bound: list[tuple[Type, Type]] = []
        stack = [(left, right)]
        seen: set[tuple[int, int]] = set()
        keep: list[Type] = []  # made on the way: an identity in `seen` must not be given out again
        while stack:
            pair_left, pair_right = stack.pop()
            a, b = find(pair_left), find(pair_right)
            if a is b:
                continue
            kind = type(a)
            if kind is Unknown or type(b) is Unknown:
                if kind is not Unknown:
                    a, b = b, a
                if not self.bind(a, b):  # type: ignore[arg-type]
                    return False
                continue
            if a is POISON or b is POISON:
                continue
            if a is not pair_left or b is not pair_right:
                bound.append((pair_left, pair_right))
            if isinstance(a, TensorType):
                if not isinstance(b, TensorType) or not self._unify_tensors(a, b):
                    self.conflict = (a, b)
                    return False
                continue
            if kind is not type(b) or kind in LEAVES:
                self.conflict = (a, b)
                return False
            if (id(a), id(b)) in seen:
                continue
            seen.add((id(a), id(b)))
            if isinstance(a, FuncType) and isinstance(b, FuncType):
                if len(a.arg_types) == len(b.arg_types) and (a.type_params or b.type_params):
                    a, b = self._same_params(a, b)
                    keep += (a, b)
            mine, theirs = parts(a), parts(b)
            if len(mine) != len(theirs) or (isinstance(a, TypeCall) and find(a.func) is not find(b.func)):  # type: ignore[attr-defined]
                self.conflict = (a, b)
                return False
            stack.extend(zip(reversed(mine), reversed(theirs)))
        if self.loosened:
            for one, other in reversed(bound):
                self._loosen(one, other)
        else:
            self.loosened = before
        return True

    def _loosen(self, left: Type, right: Type) -> None:
        """Bind two types that agree to the type that both can have: `?` where one extent is open."""
        merged = self._merge(self.resolve(left), self.resolve(right))
        for ty in (left, right):
            if type(ty) is Unknown and find(ty) is not merged:
                while type(ty.link) is Unknown:
                    ty = ty.link
                ty.link = merged

    def agree(self, left: Type, right: Type) -> Type | None:
        """Make two types the same and return what both are: `?` where one of two extents is open. None: they differ."""
        before, self.loosened = self.loosened, False
        if not self.unify(left, right):
            return None
        loosened, self.loosened = self.loosened, before
        return self._merge(self.resolve(left), self.resolve(right)) if loosened else find(left)

    def _same_params(self, a: FuncType, b: FuncType) -> tuple[FuncType, FuncType]:
        """Two polymorphic function types over the same parameters; those that one has more of are instantiated."""
        if len(a.type_params) < len(b.type_params):
            b, a = self._same_params(b, a)
            return a, b
        if len(a.type_params) > len(b.type_params):
            self.loosened = True
        mapping: dict[int, Type] = {id(p): q for p, q in zip(a.type_params, b.type_params)}
        mapping.update(fresh_for(a.type_params[len(b.type_params) :], None))
        instance = substitute(FuncType(a.arg_types, a.ret_type), mapping)
        assert isinstance(instance, FuncType)
        return instance, b

    def _unify_tensors(self, a: TensorType, b: TensorType) -> bool:
        if a.dtype != b.dtype or len(a.shape) != len(b.shape):
            return False
        if a.shape == b.shape:
            return True
        return all(self.unify_dims(m, n) for m, n in zip(a.shape, b.shape))

    def unify_dims(self, left: Dim, right: Dim) -> bool:
        """Make two extents the same; `?` agrees with all."""
        left, right = find_dim(left), find_dim(right)
        if left is right:
            return True
        if type(left) is DimUnknown:
            left.link = right
            return True
        if type(right) is DimUnknown:
            right.link = left
            return True
        if left is ANY or right is ANY:
            self.loosened = True
            return True
        if isinstance(left, ComputedDim) or isinstance(right, ComputedDim):
            same = unify_computed(left, right)
            self.loosened = self.loosened or same is None
            return same is not False
        return not isinstance(left, TypeVar) and left == right

    def bind(self, unknown: Unknown, ty: Type) -> bool:
        """Say what an unknown is. False where it would contain itself."""
        if type(ty) is Unknown:
            if _rank(ty) > _rank(unknown):  # the unknown that stays is reported, should it never be known
                unknown, ty = ty, unknown
            if unknown.waiters:
                ty.waiters = unknown.waiters if ty.waiters is None else ty.waiters + unknown.waiters
            unknown.link = ty
            unknown.waiters = None
            return True
        if not isinstance(ty, TensorType) and type(ty) not in LEAVES:
            ty = self.resolve(ty)
            if id(ty) not in self.known and any(u is unknown for u in self.unknowns_in(ty)):
                self.conflict = (unknown, ty)
                self.infinite = True
                return False
        unknown.link = ty
        if unknown.waiters:
            self.ready.extend(unknown.waiters)
            unknown.waiters = None
        return True

    def join(self, left: Type, right: Type) -> Type | None:
        """The type of a value that comes from either of two places: `?` where the extents differ in being known."""
        self.loosened = False
        if not self.unify(left, right):
            return None
        if not self.loosened:
            left = find(left)
            return find(right) if left is POISON else left
        return self._merge(self.resolve(left), self.resolve(right))

    def _merge(self, left: Type, right: Type) -> Type:
        done: dict[tuple[int, int], Type] = {}
        stack = [(left, right)]
        while stack:
            a, b = stack[-1]
            key = (id(a), id(b))
            if key in done:
                stack.pop()
                continue
            if isinstance(a, TensorType) and isinstance(b, TensorType):
                done[key] = self.intern(_merged(a, b)) if type(a) is TensorType else a
                stack.pop()
                continue
            mine, theirs = parts(a), parts(b)
            if isinstance(a, FuncType) and isinstance(b, FuncType):  # the less polymorphic one
                done[key] = b if len(b.type_params) < len(a.type_params) else a
                stack.pop()
                continue
            if a is b or type(a) is not type(b) or isinstance(a, RefType) or not mine:
                done[key] = find(b) if a is POISON or type(a) is Unknown else a
                stack.pop()
                continue
            missing = [pair for pair in zip(mine, theirs) if (id(pair[0]), id(pair[1])) not in done]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            done[key] = with_parts(a, [done[id(m), id(n)] for m, n in zip(mine, theirs)])
        return done[id(left), id(right)]


def _merged(a: TensorType, b: TensorType) -> TensorType:
    return TensorType(tuple(ANY if m is ANY or n is ANY else m for m, n in zip(a.shape, b.shape)), a.dtype)


def _rank(unknown: Unknown) -> int:
    return 2 if unknown.free else 1 if unknown.derived else 0


__all__ = ["Solver"]
