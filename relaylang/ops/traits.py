"""The facts about operators that passes, backends and the checker ask for in place of names.

    Op("nn.relu", DATA, None, identity, E, 1, traits={Trait.UNARY, Trait.MONOTONE, Trait.IDEMPOTENT})

A trait is a fact of the operator itself: it holds for every call. What a transformation does with an operator is a row
of that transformation's table.
"""

from __future__ import annotations

from enum import Enum, auto


class Trait(Enum):
    """A fact about an operator. A form of another operator names that operator in the record's `of`."""

    __hash__ = object.__hash__  # an enumeration's own hash is slow, and records are made when a program starts

    #: A function of each element of one tensor; the shape stays.
    UNARY = auto()
    #: A function of each pair of elements of two tensors, which are broadcast.
    BINARY = auto()
    #: Its arguments are broadcast against each other; each element of the result comes from the elements at its place.
    BROADCAST = auto()
    #: A `BINARY` operator whose result is bool.
    COMPARISON = auto()
    #: The second argument is a vector along one axis of the first.
    VECTOR = auto()

    #: f(x, y) is f(y, x).
    COMMUTATIVE = auto()
    #: f(f(x, y), z) is f(x, f(y, z)) for whole numbers; floats may round otherwise.
    ASSOCIATIVE = auto()
    #: A larger element has no smaller result.
    MONOTONE = auto()
    #: f(f(x)) is f(x).
    IDEMPOTENT = auto()
    #: The result is the first argument wherever nothing is trained, placed or marked.
    IDENTITY = auto()

    #: Combines the elements along axes.
    REDUCTION = auto()
    #: A `REDUCTION` whose result counts places along the axes.
    ARG_REDUCTION = auto()

    #: A convolution of data and a weight, with `data_layout` and `kernel_layout`.
    CONV = auto()
    #: A transposed convolution of data and a weight, with `data_layout` and `kernel_layout`.
    CONV_TRANSPOSE = auto()
    #: A product of matrices.
    MATMUL = auto()
    #: A function of each window of the data, with `layout`.
    POOL = auto()
    #: A `POOL`, `GLOBAL_POOL` or `ADAPTIVE_POOL` that takes the largest element.
    LARGEST = auto()
    #: A `POOL`, `GLOBAL_POOL` or `ADAPTIVE_POOL` that takes the mean.
    AVERAGE = auto()
    #: A function of all of the space, with `layout`.
    GLOBAL_POOL = auto()
    #: A function of a given number of windows, with `layout`.
    ADAPTIVE_POOL = auto()

    #: The same elements in the same order, in another shape.
    RESHAPE = auto()
    #: Every element is the same number.
    FILL = auto()
    #: The last argument gives nothing but its type.
    LIKE = auto()
    #: Looks at its argument's shape, at no element.
    EXTENTS = auto()
    #: The argument is a tuple of tensors.
    OF_TUPLE = auto()

    #: Says where its argument is.
    PLACEMENT = auto()
    #: Passes keep the call although its value is its argument's: it stops evaluation, fusion or recomputation.
    BARRIER = auto()
    #: Marks a value for a later pass.
    MARK = auto()
    #: Keeps what is in front and behind in different kernels; fusion takes the call away.
    SEPARATION = auto()
    #: Stands for code that exists already: fusion makes no kernel of it.
    NON_COMPUTATIONAL = auto()
    #: A call has an effect beside its value.
    STATEFUL = auto()
    #: The value comes from a generator's key.
    RANDOM = auto()

    #: Quantized numbers from real ones.
    QUANTISE = auto()
    #: Real numbers from quantized ones.
    DEQUANTISE = auto()
    #: The form of `of` for tensors of quantized numbers.
    QUANTISED = auto()
    #: The form of `of` with arguments in place of attributes.
    DYNAMIC = auto()
    #: The form of `of` by an approximation.
    FAST = auto()
    #: The form of `of` with channels in blocks.
    BLOCKED = auto()


__all__ = ["Trait"]
