"""The facts about operators that passes, backends and the checker ask for in place of names.

    Op("nn.relu", DATA, None, identity, E, 1, traits={Trait.UNARY, Trait.MONOTONE, Trait.IDEMPOTENT})

A trait is a fact of the operator itself: it holds for every call. What a transformation does with an operator is a row
of that transformation's table.
"""

from __future__ import annotations


class Fact:
    """One trait. It bears the name of the attribute of `Trait` that holds it."""

    __slots__ = ("name",)
    name: str

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Trait.{self.name}"

    def __reduce__(self) -> str | tuple[object, ...]:
        return getattr, (Trait, self.name)

    def __deepcopy__(self, memo: object) -> Fact:
        return self


# Passes ask for traits at every node. An attribute of a plain class is found several times as fast as an enumeration's
# member.
class Trait:
    """The facts about operators. A form of another operator names that operator in the record's `of`."""

    #: A function of each element of one tensor; the shape stays.
    UNARY = Fact()
    #: A function of each pair of elements of two tensors, which are broadcast.
    BINARY = Fact()
    #: Its arguments are broadcast against each other; each element of the result comes from the elements at its place.
    BROADCAST = Fact()
    #: Some of its arguments' extents are broadcast, though it is no `BROADCAST`: batches, or scales.
    PARTS_BROADCAST = Fact()
    #: A `BINARY` operator whose result is bool.
    COMPARISON = Fact()
    #: The second argument is a vector along one axis of the first.
    VECTOR = Fact()

    #: f(x, y) is f(y, x).
    COMMUTATIVE = Fact()
    #: f(f(x, y), z) is f(x, f(y, z)) for whole numbers; floats may round otherwise.
    ASSOCIATIVE = Fact()
    #: A larger element has no smaller result.
    MONOTONE = Fact()
    #: f(f(x)) is f(x).
    IDEMPOTENT = Fact()
    #: The result is the first argument wherever nothing is trained, placed or marked.
    IDENTITY = Fact()

    #: Combines the elements along axes.
    REDUCTION = Fact()
    #: A `REDUCTION` whose result counts places along the axes.
    ARG_REDUCTION = Fact()

    #: A convolution of data and a weight, with `data_layout` and `kernel_layout`.
    CONV = Fact()
    #: A transposed convolution of data and a weight, with `data_layout` and `kernel_layout`.
    CONV_TRANSPOSE = Fact()
    #: A product of matrices.
    MATMUL = Fact()
    #: A function of each window of the data, with `layout`.
    POOL = Fact()
    #: A `POOL`, `GLOBAL_POOL` or `ADAPTIVE_POOL` that takes the largest element.
    LARGEST = Fact()
    #: A `POOL`, `GLOBAL_POOL` or `ADAPTIVE_POOL` that takes the mean.
    AVERAGE = Fact()
    #: A function of all of the space, with `layout`.
    GLOBAL_POOL = Fact()
    #: A function of a given number of windows, with `layout`.
    ADAPTIVE_POOL = Fact()

    #: The same elements in the same order, in another shape.
    RESHAPE = Fact()
    #: Every element is the same number.
    FILL = Fact()
    #: The operator reads the last argument's type alone.
    LIKE = Fact()
    #: Reads its argument's shape, and none of its elements.
    EXTENTS = Fact()
    #: The argument is a tuple of tensors.
    OF_TUPLE = Fact()

    #: Places its argument on a device.
    PLACEMENT = Fact()
    #: Passes keep the call although its value is its argument's: it stops evaluation, fusion or recomputation.
    BARRIER = Fact()
    #: Marks a value for a later pass.
    MARK = Fact()
    #: Keeps the computations before and after it in different kernels; fusion removes the call.
    SEPARATION = Fact()
    #: Stands for code that exists already: fusion makes no kernel of it.
    NON_COMPUTATIONAL = Fact()
    #: A call has an effect beside its value.
    STATEFUL = Fact()
    #: Some values of its arguments are errors, also where there is nothing to compute.
    REFUSES_VALUES = Fact()
    #: The value comes from a generator's key.
    RANDOM = Fact()

    #: Quantized numbers from real ones.
    QUANTISE = Fact()
    #: Real numbers from quantized ones.
    DEQUANTISE = Fact()
    #: The form of `of` for tensors of quantized numbers.
    QUANTISED = Fact()
    #: The form of `of` with arguments in place of attributes.
    DYNAMIC = Fact()
    #: The form of `of` by an approximation.
    FAST = Fact()
    #: The form of `of` with channels in blocks.
    BLOCKED = Fact()


__all__ = ["Fact", "Trait"]
