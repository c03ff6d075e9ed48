"""Weights of four bits, two to a byte: they stay so in memory, and a product of few rows reads the bytes.

The weight of such a product is a program in existing operators, so every stage of the graph says what it computes. A kernel
knows it by its form (`_weight`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from relaylang.backends.cpu.gemm import LINE
from relaylang.backends.cpu.isa import Isa
from relaylang.backends.cpu.kernel import Kernel, Recipe, Sink, Tensor
from relaylang.backends.cpu.lower.few_rows import DOTS, UNITS, Product, R, four_sums, pass_on, units, written_out
from relaylang.ir import Call, Constant, Expr, Function, FuncType, Var, children, post_order, rewrite, structural_equal
from relaylang.ir.typed import retype, typed, typed_constant, typed_tuple, typed_var
from relaylang.kernels import ir
from relaylang.kernels.nest import Buf, Index, Nest, Scalar
from relaylang.kernels.sizes import has_sizes
from relaylang.ops.build import scalar
from relaylang.passes.rewriting import is_call, is_primitive
from relaylang.rules.decompositions.common import dtype_of, known, make, reshape, shape_of
from relaylang.rules.quantization.blocks import packed

#: Up to this many rows, a product reads packed weights. More rows gain by floats, which are made once.
MOST_ROWS = 16
#: The columns that a product sums at a time.
_COLUMNS = 4
#: Codes are asked for so many bytes ahead: a line of them takes longer to use than processors expect.
_AHEAD = 4096
_P, _S, _Z, _X = (
    ir.Var("p4", "const uint8*"),
    ir.Var("s4", "const float32*"),
    ir.Var("z4", "const uint8*"),
    ir.Var("x", "const float32*"),
)


# -- the form --------------------------------------------------------------------------------------------------------------


def _weight(parts: Sequence[Expr], rows: int, columns: int, lanes: int) -> Expr:
    """The weight (rows, columns) in float32, of codes, scales and zero points.

    The codes (rows * blocks, size / 2) are uint8. The lower bits of so many bytes as a vector has lanes are neighbours, the
    upper bits are the next ones. Each block has a scale (float32) and a zero point (uint8).
    """
    codes, scales, zeros = parts
    count, half = known(codes)
    split = (count, half // lanes, 1, lanes)
    lines = reshape(codes, split)
    low, high = make("bitwise_and", [lines, scalar(15, "uint8")], split), make("right_shift", [lines, scalar(4, "uint8")], split)
    both = make("concatenate", [typed_tuple([low, high])], (count, half // lanes, 2, lanes), "uint8", axis=2)
    shift = make("cast", [zeros], (count,), "int32", dtype="int32")
    operands = [reshape(both, (count, 2 * half)), scales, shift]
    real = make("qnn.dequantize", operands, (count, 2 * half), "float32", axis=0, out_dtype="float32")
    lying = reshape(real, (rows, count // rows * 2 * half))
    if known(lying)[1] == columns:
        return lying
    return make("strided_slice", [lying], (rows, columns), begin=[0, 0], end=[rows, columns], strides=[1, 1])


@dataclass(frozen=True)
class Nibbles:
    """The buffers of a packed weight: codes, scales and zero points, as `_weight` has them."""

    codes: Buf
    scales: Buf
    zeros: Buf

    @property
    def size(self) -> int:
        """The neighbours in a block."""
        return 2 * self.codes.shape[1]


def nibbles_of(kernel: Kernel, weight: Expr) -> Nibbles | None:
    """The buffers of a weight that is packed for the kernel's vectors; None for another."""
    leaves = [node for node in post_order(weight) if isinstance(node, Var)]
    if len(leaves) != 3 or kernel.isa.lanes == 1 or kernel.source is None:
        return None
    codes, extents = known(leaves[0]) if shape_of(leaves[0]) is not None else (), shape_of(weight)
    if len(codes) != 2 or extents is None or codes[1] % kernel.isa.lanes or not extents[0] or codes[0] % extents[0]:
        return None
    if not structural_equal(weight, _weight(leaves, extents[0], extents[1], kernel.isa.lanes)):
        return None
    function, numbers, *_ = kernel.source
    params = [p for p in function.params if p not in numbers]
    if len(params) != len(kernel.params):  # one is a tuple
        return None
    buffers = dict(zip(params, kernel.params))
    return Nibbles(*[buffers[leaf] for leaf in leaves])


# -- the graph -------------------------------------------------------------------------------------------------------------


def with_nibbles(function: Function, isa: Isa) -> Function:
    """Let kernels of few rows read constant weights of four bits in blocks, as `rules.quantization.blocks` writes them.

    The blocks are whole pairs of vectors; others become floats when the program is loaded.
    """
    if isa.lanes == 1:
        return function
    #: The packed weights by the calls that make them in floats, None for calls that make others.
    known_parts: dict[Expr, list[Constant] | None] = {}

    def read(old: Expr, new: Expr) -> Expr:
        new = retype(new, old)
        if not isinstance(new, Call) or not is_primitive(new.op):
            return new
        assert isinstance(new.op, Function)
        weights = _weights(new.op)
        parts_of: dict[Var, list[Constant]] = {}
        for param, arg in zip(new.op.params, new.args):
            if param not in weights:
                continue
            if arg not in known_parts:
                dequantize = _dequantize(arg)
                known_parts[arg] = None if dequantize is None else _packed(*dequantize, isa.lanes)
            parts = known_parts[arg]
            if parts is not None:
                parts_of[param] = parts
        return retype(_reading(new, parts_of, isa.lanes), old) if parts_of else new

    body = rewrite(function.body, read)
    return retype(Function(function.params, body, function.ret_type, (), function.attrs, function.span), function)


def _weights(kernel: Function) -> set[Expr]:
    """The parameters of a kernel that are weights of products of few rows, and nothing else."""
    weights: set[Expr] = set()
    others: set[Expr] = {kernel.body}
    for node in post_order(kernel.body):
        if not isinstance(node, Call):
            others.update(children(node))
            continue
        shape = shape_of(node)
        few = shape is not None and not has_sizes(shape) and 0 < math.prod(shape[:-1]) <= MOST_ROWS
        if few and is_call(node, "nn.dense") and {dtype_of(node), *map(dtype_of, node.args)} == {"float32"}:
            others.add(node.args[0])
            weights.add(node.args[1])
        else:
            others.update(node.args)
    return weights - others


def _dequantize(weight: Expr) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The codes in blocks, and the scale and the zero point of each, that a kernel dequantises to a matrix."""
    if not isinstance(weight, Call) or not is_primitive(weight.op):
        return None
    assert isinstance(weight.op, Function)
    blocks = _blocks(weight)
    if blocks is None:
        return None
    values: dict[Expr, Expr] = dict(zip(weight.op.params, weight.args))
    codes, scales, zeros = (c.data if isinstance(c := values.get(arg, arg), Constant) else None for arg in blocks.args)
    if codes is None or scales is None or zeros is None or codes.ndim != 2:
        return None
    if scales.size == zeros.size == 1 or blocks.attrs.axis in (0, -2):
        return codes, *(np.broadcast_to(part.reshape(-1), len(codes)) for part in (scales, zeros))  # type: ignore[return-value]
    return None


def _blocks(weight: Call) -> Call | None:
    """The dequantisation of blocks whose rows, without the zeros after the last block, are the weight's."""
    shape = shape_of(weight)
    assert isinstance(weight.op, Function)
    node = weight.op.body
    if is_call(node, "strided_slice"):
        a = node.attrs
        if a.begin is None or any(a.begin) or a.axes is not None or any(step != 1 for step in a.strides or ()):
            return None
        node = node.args[0]
    rows = shape_of(node)
    if is_call(node, "reshape"):
        node = node.args[0]
    codes = shape_of(node)
    if shape is None or rows is None or codes is None or not len(shape) == len(rows) == len(codes) == 2 or 0 in shape:
        return None
    fits = rows[0] == shape[0] and rows[1] % codes[1] == 0
    return node if fits and is_call(node, "qnn.dequantize") else None


def _packed(codes: np.ndarray, scales: np.ndarray, zeros: np.ndarray, lanes: int) -> list[Constant] | None:
    """The operands of `_weight`. None for codes of more bits, and for blocks that are no pairs of vectors."""
    if codes.shape[1] % (2 * lanes) or codes.dtype.kind not in "iu" or not np.isfinite(scales).all():
        return None
    least = int(codes.min())
    numbers, shift = codes.astype("int64") - least, zeros.astype("int64") - least
    if numbers.max() > 15 or shift.min() < 0 or shift.max() > 255:
        return None
    pairs = numbers.reshape(len(codes), -1, 2, lanes).swapaxes(2, 3)
    parts = (packed(pairs, 4).reshape(len(codes), -1), scales.astype("float32"), shift.astype("uint8"))
    return [typed_constant(np.ascontiguousarray(part)) for part in parts]


def _reading(call: Call, parts_of: Mapping[Var, Sequence[Constant]], lanes: int) -> Call:
    """The call of a kernel that reads packed weights in place of some parameters."""
    inner = call.op
    assert isinstance(inner, Function)
    params: list[Var] = []
    args: list[Expr] = []
    weights: dict[int, Expr] = {}
    for param, arg in zip(inner.params, call.args):
        if param not in parts_of:
            params.append(param)
            args.append(arg)
            continue
        own = [
            typed_var(f"{name}{len(params)}", part.checked_type) for name, part in zip(("codes", "scales", "zeros"), parts_of[param])
        ]
        params += own
        args += parts_of[param]
        rows, columns = known(param)
        weights[id(param)] = _weight(own, rows, columns, lanes)
    body = rewrite(inner.body, lambda old, new: weights.get(id(old)) or retype(new, old))
    types = [p.checked_type or p.type_annotation for p in params]
    kernel = Function(params, body, inner.ret_type, (), inner.attrs, inner.span)
    return Call(typed(kernel, FuncType(types, body.checked_type)), args, None, (), call.span)  # type: ignore[arg-type]


# -- the loops -------------------------------------------------------------------------------------------------------------


def lower_nibbles(kernel: Kernel, data: Tensor, weight: Nibbles, sink: Sink) -> None:
    """Emit a product of float32 data with a packed weight. The sink takes rows block by block (`fused_ready`)."""
    columns, depth = sink.anchor.shape[-1], data.shape[-1]
    rows = math.prod(data.shape[:-1])
    padded = weight.codes.shape[0] // columns * weight.size
    x = kernel.in_memory(data if padded == depth else _with_zeros(data, padded))
    product = Product(1, rows, columns, padded, (0, padded, 1), (0, padded // 2, 1))
    dots = kernel.space.pick("unit", UNITS, DOTS)
    # The sums of four columns, what they are multiplied by, and two vectors of the weight.
    several = max(1, min(rows, 4, (kernel.isa.registers - 6) // _COLUMNS))
    c0, cn, blocks = ir.Var("c0"), ir.Var("cn"), padded // weight.size
    left = ir.number(columns) - c0
    unit: ir.Body = [
        ir.Let("c0", ir.Var("p") * dots),
        ir.Let("cn", ir.minimum(left, dots) if columns % dots else ir.number(dots)),
        ir.Local("r", "float32", (rows, dots)),
        ir.Let(_P.name, ir.address(weight.codes, c0 * (padded // 2))),
        ir.Let(_S.name, ir.address(weight.scales, c0 * blocks)),
        ir.Let(_Z.name, ir.address(weight.zeros, c0 * blocks)),
    ]
    start: ir.Expr = ir.number(0)
    for count in (_COLUMNS, 1):
        end = cn // count * count
        body: ir.Body = []
        full = rows // several * several
        for first, last, size in ((0, full, several), (full, rows, rows - full)):
            if first < last:
                begin = ir.Let(_X.name, ir.address(x, ir.Var("i") * padded))
                sums = [begin, *_sums(product, weight.size, kernel.isa.lanes, size, count, dots)]
                body.append(ir.Loop("i", ir.number(first), ir.number(last), sums, step=size))
        unit.append(ir.Loop("j", start, end, body, step=count))
        start = end
    units(kernel, product, -(-columns // dots), [*unit, *pass_on(sink, product, dots)])


def _with_zeros(data: Tensor, depth: int) -> Tensor:
    """The data with zeros behind each row, where a weight's last blocks have no columns."""
    *_, own = data.shape

    def at(nest: Nest, index: Sequence[Index]) -> Scalar:
        inside, k = nest.inside(index[-1], 0, own)
        value = data.at(nest, [*index[:-1], k])
        return value if inside is None else inside.select(value, 0)

    return Recipe((*data.shape[:-1], depth), data.dtype, at)


def _sums(product: Product, size: int, lanes: int, rows: int, count: int, apart: int) -> ir.Body:
    """The sums of `count` columns from `j` on with `rows` rows from `i` on, whose results are so far `apart`."""
    vec, ints = ir.vector("float32", lanes), ir.vector("int32", lanes)
    blocks = product.depth // size
    a = ir.Local("a", vec, (rows, count), ir.REGISTERS, zero=True)
    i, j, b, t, m, c = (ir.Var(name) for name in ("i", "j", "b", "t", "m", "c"))
    scale, zero = ir.Var("scale", vec), ir.Var("zero", ints)
    pairs = ir.Var("pairs", ints)
    block = (j + c) * blocks + b
    steps: ir.Body = []
    for half, code in enumerate((pairs & 15, pairs >> 4)):
        w = ir.Var(f"w{half}", vec)
        x = ir.load(_X, m * product.depth + b * size + t * (2 * lanes) + half * lanes, lanes=lanes)
        steps += [
            ir.Let(w.name, ir.cast(code - zero, vec) * scale),
            written_out("m", rows, ir.store(a, ir.fma(w, x, ir.load(a, m, c)), m, c)),
        ]
    column = [
        ir.Let(scale.name, ir.splat(ir.load(_S, block), lanes)),
        ir.Let(zero.name, ir.splat(ir.cast(ir.load(_Z, block), "int32"), lanes)),
        ir.loop(
            "t",
            0,
            size // (2 * lanes),
            [ir.Let(pairs.name, ir.cast(ir.load(_P, block * (size // 2) + t * lanes, lanes=lanes), ints)), *steps],
        ),
    ]
    ends: ir.Body = []
    for row in range(rows):
        to = j + (i + row) * apart
        if count == 1:
            ends.append(ir.store(R, ir.Intrinsic("sum", (ir.load(a, row, 0),), "float32"), to))
        else:
            ends.append(ir.Block(four_sums([ir.load(a, row, n) for n in range(count)], lanes, to)))
    step = count * size // 2
    first = j * (product.depth // 2) + b * step + _AHEAD
    asked = [ir.Call("__builtin_prefetch", (ir.address(_P, first + n),)) for n in range(0, step, LINE)] if count > 1 else []
    return [a, ir.loop("b", 0, blocks, [*asked, written_out("c", count, *column)]), *ends]


__all__ = ["Nibbles", "lower_nibbles", "nibbles_of", "with_nibbles"]
