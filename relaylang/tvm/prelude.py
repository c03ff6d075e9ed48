"""`Prelude(mod)`: the standard definitions under TVM's names. The first use puts a definition into the module.

Usage:

    p = Prelude(mod)
    mod["main"] = Function([xs], Call(p.map, [f, xs]))      # @map and List are in `mod` now, and nothing else
    tensor_t = p.get_type("tensor_t", "float32")             # as are the tensor arrays of float32
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from relaylang.ir import ANY, Constructor, Dim, Expr, Function, GlobalTypeVar, GlobalVar, IRModule, TypeCall, free_vars
from relaylang.stdlib import library as std
from relaylang.stdlib.library import import_from_std
from relaylang.stdlib.tensor_array import (
    array_text,
    concat_text,
    gather_text,
    read_text,
    scatter_text,
    split_text,
    stack_text,
    tensor_text,
    unstack_text,
    write_text,
)
from relaylang.syntax import parse
from relaylang.typing import check

#: The constructors and type definitions that are attributes, too: attribute -> (type, constructor or None).
_SHORT: dict[str, tuple[str, str | None]] = {
    "l": ("List", None),
    "nil": ("List", "Nil"),
    "cons": ("List", "Cons"),
    "optional": ("Option", None),
    "some": ("Option", "Some"),
    "none": ("Option", "None"),
    "tree": ("Tree", None),
    "rose": ("Tree", "Rose"),
    "nat": ("nat", None),
    "z": ("nat", "zero"),
    "s": ("nat", "succ"),
}


class Prelude:
    """The standard definitions of a module; `p.map` is `@map`, `p.cons` the constructor `Cons`.

    The module looks up missing names here, so `mod.get_global_var("foldl")` and `mod.get_type("List")` work, too.
    Raises `RelayError` if the module has another definition of a needed name.
    """

    def __init__(self, mod: IRModule | None = None) -> None:
        self.mod = mod if mod is not None else IRModule()
        self.mod.library = std.add

    def __getattr__(self, name: str) -> GlobalVar | GlobalTypeVar | Constructor:
        if name.startswith("_") or "mod" not in vars(self):
            raise AttributeError(name)
        if name in _SHORT:
            ty, constructor = _SHORT[name]
            return self.mod.get_constructor(ty, constructor) if constructor else self.mod.get_global_type_var(ty)
        try:
            return self.mod.get_global_var(name)
        except KeyError:
            raise AttributeError(f"the prelude has no `{name}`") from None

    # --- tensor arrays of any shape ---

    def get_name(self, canonical: str, dtype: str) -> str:
        """`tensor_array_read` for float32 is `tensor_array_read_float32`; `tensor_t` is `tensor_float32_t`."""
        return f"tensor_{dtype}_t" if canonical == "tensor_t" else f"{canonical}_{dtype}"

    def get_global_var(self, canonical: str, dtype: str) -> GlobalVar:
        """The function of an element type. Raises `KeyError`."""
        return self.mod.get_global_var(self.get_name(canonical, dtype))

    get_var = get_global_var

    def get_type(self, canonical: str, dtype: str) -> GlobalTypeVar:
        """The type definition of an element type. Raises `KeyError`."""
        return self.mod.get_global_type_var(self.get_name(canonical, dtype))

    def get_ctor(self, ty_name: str, canonical: str, dtype: str) -> Constructor:
        """The constructor of the type definition called `ty_name`. Raises `KeyError`."""
        return self.mod.get_constructor(ty_name, self.get_name(canonical, dtype))

    def get_tensor_ctor(self, canonical: str, dtype: str) -> Constructor:
        """`tensor_nil`, `tensor0` to `tensor6`. Raises `KeyError`."""
        return self.get_ctor(self.get_name("tensor_t", dtype), canonical, dtype)

    # --- tensor arrays of one shape, as `StaticTensorArrayOps` defines them ---

    def get_name_static(self, canonical: str, dtype: str, shape: Sequence[Dim], batch_dim: int | None = None) -> str:
        """`tensor_array_read` for (2, 3) of float32 is `tensor_array_read_float32_2_3`."""
        return static_name(canonical, dtype, shape, batch_dim)

    def get_global_var_static(self, canonical: str, dtype: str, shape: Sequence[Dim], batch_dim: int | None = None) -> GlobalVar:
        """The function of an element type and a shape. Raises `KeyError`."""
        return self.mod.get_global_var(static_name(canonical, dtype, shape, batch_dim))

    def get_type_static(self, canonical: str, dtype: str, shape: Sequence[Dim]) -> GlobalTypeVar:
        """The type definition of an element type and a shape. Raises `KeyError`."""
        return self.mod.get_global_type_var(static_name(canonical, dtype, shape))

    def get_ctor_static(self, ty_name: str, name: str, dtype: str, shape: Sequence[Dim]) -> Constructor:
        """The constructor of an element type and a shape. Raises `KeyError`."""
        return self.mod.get_constructor(static_name(ty_name, dtype, shape), static_name(name, dtype, shape))

    def get_tensor_ctor_static(self, name: str, dtype: str, shape: Sequence[Dim]) -> Constructor:
        """`tensor_nil` or `tensor_constructor` of a shape. Raises `KeyError`."""
        return self.get_ctor_static("tensor_t", name, dtype, shape)


def _dims(shape: Sequence[Dim]) -> str:
    return "_".join("any" if dim is ANY else str(dim) for dim in shape)


def static_name(
    canonical: str,
    dtype: str,
    shape: Sequence[Dim],
    batch_dim: int | None = None,
    extra_shapes: Mapping[str, Sequence[Dim]] | None = None,
) -> str:
    """The name of a definition for one shape, as TVM makes it."""
    extra = [f"{name}_{_dims(dims)}" for name, dims in (extra_shapes or {}).items()]
    text = "_".join([_dims(shape), *extra]) or "scalar"
    if canonical == "tensor_t":
        return f"static_tensor_{dtype}_{text}_t"
    batched = batch_dim == 1 and canonical not in ("tensor_constructor", "tensor_nil")
    return "_".join([canonical, dtype, *["batch1"] * batched, text])


class TensorArrayOps:
    """The tensor arrays of an element type, whose tensors may have any shape of up to six dimensions."""

    def __init__(self, prelude: Prelude, dtype: str) -> None:
        self.prelude = prelude
        self.dtype = dtype
        self.list, self.nil = prelude.l, prelude.nil
        self.cons = prelude.cons

    def get_name(self, canonical: str) -> str:
        return self.prelude.get_name(canonical, self.dtype)

    def get_global_var(self, canonical: str) -> GlobalVar:
        return self.prelude.get_global_var(canonical, self.dtype)

    def get_type(self, canonical: str) -> GlobalTypeVar:
        return self.prelude.get_type(canonical, self.dtype)

    def get_ctor(self, canonical: str) -> Constructor:
        return self.prelude.get_tensor_ctor(canonical, self.dtype)

    @property
    def tensor_type_var(self) -> GlobalTypeVar:
        return self.get_type("tensor_t")

    def register(self) -> None:
        """Put all of them into the module at once."""
        source = std.library(self.dtype)
        for var in source.functions:
            if var.name_hint.endswith(f"_{self.dtype}"):
                std.add(self.prelude.mod, var.name_hint, source)


class StaticTensorArrayOps:
    """The tensor arrays of one element type and one shape. The checker knows every extent but a first `?`.

    `register()` defines all of them, each `define_...` one. Existing definitions stay.
    """

    def __init__(self, prelude: Prelude, dtype: str, shape: Sequence[Dim], batch_dim: int | None = None) -> None:
        self.prelude = prelude
        self.dtype = dtype
        self.shape = tuple(shape)
        self.batch_dim = batch_dim
        self.list, self.nil = prelude.l, prelude.nil
        self.cons = prelude.cons

    def get_name(self, canonical: str, extra_shapes: Mapping[str, Sequence[Dim]] | None = None) -> str:
        return static_name(canonical, self.dtype, self.shape, self.batch_dim, extra_shapes)

    def get_global_var(self, canonical: str) -> GlobalVar:
        return self.prelude.get_global_var_static(canonical, self.dtype, self.shape, self.batch_dim)

    def get_type(self, canonical: str) -> GlobalTypeVar:
        return self.prelude.get_type_static(canonical, self.dtype, self.shape)

    def get_ctor(self, canonical: str) -> Constructor:
        return self.prelude.get_tensor_ctor_static(canonical, self.dtype, self.shape)

    @property
    def tensor_type_var(self) -> GlobalTypeVar:
        return self.get_type("tensor_t")

    # --- helpers ---

    def is_cached(self, name: str) -> bool:
        return name in self.prelude.mod

    def _define(self, text: str, replace: bool = False) -> None:
        """Read definitions and put them into the module."""
        mod = self.prelude.mod
        parsed = parse('#[version = "0.0.5"]\n' + text, f"<std/tensor arrays of {tensor_text(self.shape, self.dtype)}>", mod)
        assert parsed.module is not None
        for gtv, data in parsed.module.type_definitions.items():
            if gtv not in mod.type_definitions:
                mod[gtv] = data
        for var, function in parsed.module.functions.items():
            if mod.functions.get(var) is not function and (replace or var.name_hint not in mod):
                mod[var] = function

    def _of_shape(self, shape: Sequence[Dim]) -> StaticTensorArrayOps:
        other = StaticTensorArrayOps(self.prelude, self.dtype, shape, self.batch_dim)
        other.define_tensor_adt()
        return other

    @property
    def _any_rows(self) -> StaticTensorArrayOps:
        """The same tensors with any extent of the first axis."""
        return self._of_shape((ANY, *self.shape[1:]))

    @property
    def _stacked(self) -> StaticTensorArrayOps:
        return self._of_shape((1 if self.batch_dim == 1 else ANY, *self.shape))

    def _function(self, canonical: str, text: Callable[[str], str]) -> None:
        name = self.get_name(canonical)
        if not self.is_cached(name):
            self._define(text(name))

    @property
    def _t(self) -> str:
        return self.get_name("tensor_t") if self.batch_dim is None else static_name("tensor_t", self.dtype, self.shape)

    @property
    def _make(self) -> str:
        return self.get_name("tensor_constructor")

    # --- definitions ---

    def define_tensor_adt(self) -> None:
        """`static_tensor_DTYPE_SHAPE_t`: no tensor, or one of the shape."""
        if self._t not in self.prelude.mod._types:
            value = tensor_text(self.shape, self.dtype)
            self._define(f"type {self._t} {{ {self.get_name('tensor_nil')}, {self._make}({value}), }}")

    def define_tensor_take(self) -> None:
        """The rows from `lower` to before `upper`."""
        if not self.shape:
            return
        out = self._any_rows
        rows = 'arange(%lower, %upper, 1, start=None, stop=None, step=None, dtype="int32")'
        self._function(
            "tensor_take",
            lambda name: (
                f"""
def @{name}(%tensor: {self._t}, %lower: int32, %upper: int32) -> {out._t} {{
  match? (%tensor) {{ {self._make}(%t) => {{ {out._make}(take(%t, {rows}, axis=0)) }}, }}
}}"""
            ),
        )

    def define_tensor_concatenate(self) -> None:
        """Two tensors joined along the first axis."""
        if not self.shape:
            return
        out = self._any_rows
        self._function(
            "tensor_concatenate",
            lambda name: (
                f"""
def @{name}(%x: {self._t}, %y: {self._t}) -> {out._t} {{
  match? ((%x, %y)) {{
    ({self._make}(%a), {self._make}(%b)) => {{ {out._make}(concatenate((%a, %b), axis=0)) }},
  }}
}}"""
            ),
        )

    def define_tensor_expand_dims(self) -> None:
        """A tensor with a new first axis."""
        out = self._stacked
        self._function(
            "tensor_expand_dims",
            lambda name: (
                f"""
def @{name}(%x: {self._t}) -> {out._t} {{
  match? (%x) {{ {self._make}(%t) => {{ {out._make}(expand_dims(%t, axis=0)) }}, }}
}}"""
            ),
        )

    def define_tensor_array(self) -> None:
        """A list of so many empty places."""
        self._function("tensor_array", lambda name: array_text(name, self._t, self.get_name("tensor_nil")))

    def define_tensor_array_read(self) -> None:
        """The element of a number. Needs @nth, which comes along."""
        self.prelude.nth  # noqa: B018
        self._function("tensor_array_read", lambda name: read_text(name, self._t))

    def define_tensor_array_write(self) -> None:
        """The list with another element of a number."""
        self.prelude.update  # noqa: B018
        self._function("tensor_array_write", lambda name: write_text(name, self._t))

    def define_tensor_array_unstack(self) -> None:
        """A tensor's rows."""
        if not self.shape:
            return
        row = self._of_shape(self.shape[1:])
        helper = self.get_name("tensor_array_unstack_helper")
        value = tensor_text(self.shape, self.dtype)
        self._function("tensor_array_unstack", lambda name: unstack_text(name, helper, value, row._t, row._make, ", axis=0"))

    def define_tensor_array_scatter(self, indices_shape: Sequence[Dim] | None = None, force_update: bool = False) -> None:
        """Each value written at its index; `indices_shape` where the number of indices is known."""
        extra = {"indices": indices_shape} if indices_shape is not None else None
        name, helper = (self.get_name(c, extra) for c in ("tensor_array_scatter", "tensor_array_scatter_helper"))
        if self.is_cached(name) and not force_update:
            return
        self.define_tensor_array_read()
        self.define_tensor_array_write()
        write, read = self.get_name("tensor_array_write"), self.get_name("tensor_array_read")
        count = indices_shape[0] if indices_shape else ANY
        self._define(scatter_text(name, helper, self._t, write, read, count), force_update)

    def define_tensor_array_split(
        self,
        value_shape: Sequence[Dim] | None = None,
        lengths_shape: Sequence[Dim] | None = None,
        force_update: bool = False,
    ) -> None:
        """A tensor cut along its first axis; the shapes where they are known."""
        name = self.get_name("tensor_array_split")
        if not self.shape or (self.is_cached(name) and not force_update):
            return
        out = self._any_rows
        out.define_tensor_array_write()
        value = self if value_shape is None else self._of_shape(value_shape)
        value.define_tensor_take()
        count = lengths_shape[0] if lengths_shape else ANY
        text = split_text(
            name,
            self.get_name("ta_split_helper"),
            out._t,
            value._t,
            out.get_name("tensor_array_write"),
            value.get_name("tensor_take"),
            count,
        )
        self._define(text, force_update)

    def define_tensor_array_concat(self) -> None:
        """All tensors joined along the first axis."""
        if not self.shape:
            return
        out = self._any_rows
        out.define_tensor_concatenate()
        nil, join = out.get_name("tensor_nil"), out.get_name("tensor_concatenate")
        self._function("tensor_array_concat", lambda name: concat_text(name, out._t, nil, join))

    def define_tensor_array_stack(self) -> None:
        """All tensors joined along a new first axis; where `batch_dim` is 1, the only one."""
        out = self._stacked
        self.define_tensor_expand_dims()
        for needed in ("map", "foldl", "hd", "tl"):
            getattr(self.prelude, needed)
        out.define_tensor_concatenate()
        join = None if self.batch_dim == 1 else out.get_name("tensor_concatenate")
        expand = self.get_name("tensor_expand_dims")
        self._function("tensor_array_stack", lambda name: stack_text(name, self._t, out._t, expand, join))

    def define_tensor_array_gather(self) -> None:
        """The tensors at some indices, stacked."""
        self.define_tensor_array_read()
        self.define_tensor_array_stack()
        stack, read = self.get_name("tensor_array_stack"), self.get_name("tensor_array_read")
        helper, out = self.get_name("tensor_array_gather_helper"), self._stacked
        self._function("tensor_array_gather", lambda name: gather_text(name, helper, self._t, out._t, stack, read))

    def define_tensor_get_data(self) -> None:
        """The tensor inside."""
        value = tensor_text(self.shape, self.dtype)
        self._function(
            "tensor_get_data",
            lambda name: f"def @{name}(%tensor: {self._t}) -> {value} {{ match? (%tensor) {{ {self._make}(%t) => {{ %t }}, }} }}",
        )

    def register(self) -> None:
        """Define all of them."""
        for name, define in vars(StaticTensorArrayOps).items():
            if name.startswith("define_"):
                define(self)


def get_tensor_array_shape(expr: Expr, dtype: str, prelude: Prelude) -> tuple[Dim, ...] | None:
    """The shape of a static tensor array's tensors; None for one of any shape. Raises `RelayError`, `ValueError`."""
    mod = prelude.mod.with_functions(prelude.mod.functions)
    mod["main"] = Function(free_vars(expr), expr)
    check(mod)
    ty = expr.checked_type
    element = ty.args[0] if isinstance(ty, TypeCall) and len(ty.args) == 1 else None
    if not isinstance(element, TypeCall) or not isinstance(element.func, GlobalTypeVar):
        raise ValueError(f"a tensor array is wanted, not `{ty!r}`")
    start, name = f"static_tensor_{dtype}_", element.func.name_hint
    if not name.startswith(start):
        return None
    text = name.removeprefix(start).removesuffix("_t")
    return () if text == "scalar" else tuple(ANY if d in ("?", "any") else int(d) for d in text.split("_"))


__all__ = [
    "Prelude",
    "StaticTensorArrayOps",
    "TensorArrayOps",
    "get_tensor_array_shape",
    "import_from_std",
    "static_name",
]
