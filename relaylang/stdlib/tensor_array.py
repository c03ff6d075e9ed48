"""Tensor arrays in Relay text: lists of tensors that a loop fills, reads, splits and joins.

`dynamic_text(dtype)` holds tensors of any shape up to six dimensions in one type, `tensor_DTYPE_t`, with a constructor a
rank. `Static` writes the same functions for one shape, where the checker knows every extent but the first.
"""

from __future__ import annotations

from collections.abc import Sequence

from relaylang.ir import ANY, Dim

DTYPES = ("float32", "float16", "float64", "int32", "uint8", "int8", "int16", "uint16", "int64")
_RANKS = range(7)
_LENGTH = 'take(shape_of({}, dtype="int32"), 0)'
_RANGE = 'arange(%lower, %upper, 1, start=None, stop=None, step=None, dtype="int32")'


def tensor_text(shape: Sequence[Dim], dtype: str) -> str:
    """A tensor type as text."""
    return f"Tensor[({', '.join(map(str, shape))}), {dtype}]"


def array_text(name: str, tensor: str, nil: str) -> str:
    """A list of so many empty places."""
    return f"""
def @{name}(%n: int32) -> List[{tensor}] {{
  if (%n == 0) {{ Nil }} else {{ Cons({nil}, @{name}(%n - 1)) }}
}}
"""


def read_text(name: str, tensor: str) -> str:
    return f"""
def @{name}(%ta: List[{tensor}], %n: int32) -> {tensor} {{ @nth(%ta, %n) }}
"""


def write_text(name: str, tensor: str) -> str:
    return f"""
def @{name}(%ta: List[{tensor}], %n: int32, %v: {tensor}) -> List[{tensor}] {{ @update(%ta, %n, %v) }}
"""


def scatter_text(name: str, helper: str, tensor: str, write: str, read: str, indices: Dim = ANY) -> str:
    """Each value written at its index."""
    many = _LENGTH.format("%indices") if indices is ANY else str(indices)
    return f"""
def @{helper}(%ta: List[{tensor}], %i: int32, %limit: int32, %indices: Tensor[({indices},), int32], %values: List[{tensor}])
    -> List[{tensor}] {{
  if (%i == %limit) {{ %ta }} else {{
    @{helper}(@{write}(%ta, take(%indices, %i), @{read}(%values, %i)), %i + 1, %limit, %indices, %values)
  }}
}}

def @{name}(%ta: List[{tensor}], %indices: Tensor[({indices},), int32], %values: List[{tensor}]) -> List[{tensor}] {{
  @{helper}(%ta, 0, {many}, %indices, %values)
}}
"""


def split_text(name: str, helper: str, tensor: str, value: str, write: str, take: str, lengths: Dim = ANY) -> str:
    """A tensor cut along its first axis into parts of given lengths."""
    many = _LENGTH.format("%lengths") if lengths is ANY else str(lengths)
    return f"""
def @{helper}(%ta: List[{tensor}], %value: {value}, %offset: int32, %i: int32, %limit: int32,
    %lengths: Tensor[({lengths},), int32]) -> List[{tensor}] {{
  if (%i == %limit) {{ %ta }} else {{
    let %next = %offset + take(%lengths, %i);
    let %rest = @{helper}(%ta, %value, %next, %i + 1, %limit, %lengths);
    @{write}(%rest, %i, @{take}(%value, %offset, %next))
  }}
}}

def @{name}(%ta: List[{tensor}], %value: {value}, %lengths: Tensor[({lengths},), int32]) -> List[{tensor}] {{
  @{helper}(%ta, %value, 0, 0, {many}, %lengths)
}}
"""


def concat_text(name: str, tensor: str, nil: str, concatenate: str) -> str:
    """All tensors joined along their first axis."""
    return f"""
def @{name}(%ta: List[{tensor}]) -> {tensor} {{
  match (%ta) {{
    Nil => {{ {nil} }},
    Cons(%only, Nil) => {{ %only }},
    Cons(%first, %others) => {{ @{concatenate}(%first, @{name}(%others)) }},
  }}
}}
"""


def stack_text(name: str, tensor: str, result: str, expand: str, concatenate: str | None) -> str:
    """All tensors joined along a new first axis."""
    if concatenate is None:
        body = f"@{expand}(@hd(%ta))"
    else:
        body = f"let %grown = @map(@{expand}, %ta);\n  @foldl(@{concatenate}, @hd(%grown), @tl(%grown))"
    return f"""
def @{name}(%ta: List[{tensor}]) -> {result} {{
  {body}
}}
"""


def gather_text(name: str, helper: str, tensor: str, result: str, stack: str, read: str) -> str:
    """The tensors at some indices, stacked."""
    return f"""
def @{helper}(%ta: List[{tensor}], %chosen: List[{tensor}], %i: int32, %limit: int32, %indices: Tensor[(?,), int32])
    -> {result} {{
  if (%i == 0) {{ @{stack}(%chosen) }} else {{
    @{helper}(%ta, Cons(@{read}(%ta, take(%indices, %i - 1)), %chosen), %i - 1, %limit, %indices)
  }}
}}

def @{name}(%ta: List[{tensor}], %indices: Tensor[(?,), int32]) -> {result} {{
  let %limit = {_LENGTH.format("%indices")};
  @{helper}(%ta, Nil, %limit, %limit, %indices)
}}
"""


def unstack_text(name: str, helper: str, value: str, tensor: str, make: str, axis: str) -> str:
    """A tensor's parts along its first axis."""
    return f"""
def @{helper}(%i: int32, %up: int32, %t: {value}) -> List[{tensor}] {{
  if (%i == %up) {{ Nil }} else {{ Cons({make}(take(%t, %i{axis})), @{helper}(%i + 1, %up, %t)) }}
}}

def @{name}(%t: {value}) -> List[{tensor}] {{ @{helper}(0, {_LENGTH.format("%t")}, %t) }}
"""


def dynamic_text(dtype: str) -> str:
    """The tensor arrays of an element type whose tensors may have any shape of up to six dimensions."""

    def named(canonical: str) -> str:
        return f"{canonical}_{dtype}"

    def arms(*lines: str) -> str:
        return "\n".join(f"    {line}," for line in lines)

    t = f"tensor_{dtype}_t"
    make = [named(f"tensor{rank}") for rank in _RANKS]
    shapes = [tensor_text([ANY] * rank, dtype) for rank in _RANKS]
    constructors = ", ".join(f"{c}({shape})" for c, shape in zip(make, shapes))
    takes = arms(*(f"{make[r]}(%t) => {{ {make[r]}(take(%t, {_RANGE}, axis=0)) }}" for r in _RANKS if r))
    grows = arms(*(f"{make[r]}(%t) => {{ {make[r + 1]}(expand_dims(%t, axis=0)) }}" for r in _RANKS if r < 6))
    joins = arms(*(f"({make[r]}(%a), {make[r]}(%b)) => {{ {make[r]}(concatenate((%a, %b), axis=0)) }}" for r in range(1, 5)))
    out = [
        f"""#[version = "0.0.5"]
type {t} {{ {named("tensor_nil")}, {constructors}, }}

def @{named("tensor_take")}(%tensor: {t}, %lower: int32, %upper: int32) -> {t} {{
  match? (%tensor) {{
{takes}
  }}
}}

def @{named("tensor_expand_dims")}(%x: {t}) -> {t} {{
  match? (%x) {{
{grows}
  }}
}}

def @{named("tensor_concatenate")}(%x: {t}, %y: {t}) -> {t} {{
  match? ((%x, %y)) {{
{joins}
  }}
}}
""",
        array_text(named("tensor_array"), t, named("tensor_nil")),
        read_text(named("tensor_array_read"), t),
        write_text(named("tensor_array_write"), t),
        scatter_text(
            named("tensor_array_scatter"),
            named("tensor_array_scatter_helper"),
            t,
            named("tensor_array_write"),
            named("tensor_array_read"),
        ),
        split_text(
            named("tensor_array_split"),
            named("ta_split_helper"),
            t,
            t,
            named("tensor_array_write"),
            named("tensor_take"),
        ),
        concat_text(named("tensor_array_concat"), t, named("tensor_nil"), named("tensor_concatenate")),
        stack_text(named("tensor_array_stack"), t, t, named("tensor_expand_dims"), named("tensor_concatenate")),
        gather_text(
            named("tensor_array_gather"),
            named("tensor_array_gather_helper"),
            t,
            t,
            named("tensor_array_stack"),
            named("tensor_array_read"),
        ),
    ]
    for rank in range(1, 7):
        out.append(
            unstack_text(
                named(f"tensor_array_unstack_tensor{rank}"),
                named(f"tensor_array_unstack_tensor{rank}_helper"),
                shapes[rank],
                t,
                make[rank - 1],
                "" if rank == 1 else ", axis=0",
            )
        )
    return "".join(out)
