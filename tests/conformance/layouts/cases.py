"""Small programs around convolutions, the layouts that they are brought into, and a digest of the results."""

from __future__ import annotations

import hashlib
from typing import Any

import relaylang as relay
from relaylang.ir import (
    Call,
    Constant,
    Expr,
    Function,
    GlobalVar,
    IRModule,
    Let,
    TupleGetItem,
    Var,
    children,
    post_order,
)
from relaylang.ops import Trait, having
from relaylang.ops.record import Op
from relaylang.transform import (
    AlterOpLayout,
    CanonicalizeOps,
    ConvertLayout,
    InferType,
    PassContext,
    Sequential,
    SimplifyInference,
    TempOpAttr,
)
from tests.conformance.blocks import in_blocks

#: The request: the most channels in a block, for AlterOpLayout; or the layouts, for ConvertLayout.
HOW: dict[str, Any] = {
    "blocks of 16": [16],
    "blocks of 4": [4],
    "NHWC": {"nn.conv2d": ["NHWC", "default"], "nn.max_pool2d": ["NHWC"]},
    "NCHW4c": {"nn.conv2d": ["NCHW4c", "OIHW4o4i"]},
    "HWNC": {"nn.conv2d": ["HWNC", "default"]},
}
#: For programs of other operators.
OTHERS: dict[str, Any] = {
    "all NHWC": {
        **{
            n: ["NHWC", "default"]
            for n in (
                "nn.conv2d",
                "nn.conv2d_transpose",
                "nn.deformable_conv2d",
                "qnn.conv2d",
                "qnn.conv2d_transpose",
                "vision.roi_align",
                "vision.roi_pool",
            )
        },
        **{n: ["NDHWC", "default"] for n in ("nn.conv3d", "nn.conv3d_transpose")},
        **{n: ["NHWC"] for n in ("image.resize2d", "nn.max_pool2d", "nn.avg_pool2d", "nn.global_avg_pool2d")},
        "nn.conv2d_backward_weight": ["NHWC", "HWIO"],
    },
    "all NCHW": {"nn.conv2d": ["NCHW", "default"], "nn.max_pool2d": ["NCHW"], "image.resize2d": ["NCHW"]},
    "convolutions NHWC": {"nn.conv2d": ["NHWC", "default"], "qnn.conv2d": ["NHWC", "OHWI"]},
}

_NEXT = "nn.conv2d({}, %v, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3])"
_POOL = "nn.max_pool2d({}, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0])"


def _after(*lines: str, more: str = "") -> str:
    """A program of a convolution %0 and what follows it, the last line its result."""
    params = "%x: Tensor[(1, 8, 8, 8), float32], %w: Tensor[(16, 8, 3, 3), float32], %v: Tensor[(16, 16, 3, 3), float32]"
    first = "%0 = nn.conv2d(%x, %w, padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3])"
    body = "".join(f"  %{i} = {line};\n" for i, line in enumerate(lines[:-1], 1))
    return f'#[version = "0.0.5"]\ndef @main({params}{more}) {{\n  {first};\n{body}  {lines[-1]}\n}}\n'


def _b(shape: str) -> str:
    return f", %b: Tensor[({shape}), float32]"


SMALL = {
    "bias": _after(
        "expand_dims(%b, axis=1, num_newaxis=2)",
        "add(%0, %1)",
        "multiply(%s, %2)",
        "nn.relu(%3)",
        more=_b("16") + ", %s: Tensor[(16, 1, 1), float32]",
    ),
    "bias_add": _after("nn.bias_add(%0, %b)", "nn.relu(%1)", more=_b("16")),
    "scalar": _after("multiply(2f, %0)", "add(%1, 1f)", "sigmoid(%2)"),
    "row": _after("add(%0, %b)", "multiply(%1, %q)", more=_b("8") + ", %q: Tensor[(1, 16, 1, 1), float32]"),
    "small left": _after("add(%b, %0)", more=_b("1, 16, 1, 1")),
    "residual": _after("nn.relu(%0)", _NEXT.format("%1"), "add(%2, %1)", _POOL.format("%3"), "nn.global_max_pool2d(%4)"),
    "left": _after("add(%b, %0)", more=_b("1, 16, 8, 8")),
    "right": _after("add(%0, %b)", more=_b("1, 16, 8, 8")),
    "concatenate": _after(_NEXT.format("%0"), "(%0, %1)", "concatenate(%2, axis=1)", "nn.relu(%3)"),
    "concatenate with plain": _after("(%0, %b)", "concatenate(%1, axis=1)", "nn.relu(%2)", more=_b("1, 16, 8, 8")),
    "split": _after(
        "split(%0, indices_or_sections=[8], axis=1)", "%1.0", "%1.1", "nn.relu(%2)", "(%4, %3)", "concatenate(%5, axis=1)"
    ),
    "sum": _after("nn.relu(%0)", "sum(%1, axis=[1], keepdims=True)", "add(%0, %2)"),
    "mean": _after("mean(%0, axis=[2, 3])", "nn.relu(%1)"),
    "max of all": _after("max(%0)"),
    "exclude": _after("sum(%0, axis=[1], exclude=True)"),
    "pad": _after("nn.pad(%0, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])", "nn.relu(%1)"),
    "pad of channels": _after("nn.pad(%0, 0f, pad_width=[[0, 0], [1, 1], [1, 1], [1, 1]])", "nn.relu(%1)"),
    "transpose": _after("transpose(%0, axes=[0, 2, 3, 1])", "nn.relu(%1)"),
    "slice": _after("strided_slice(%0, begin=[0, 0], end=[1, 8], strides=[1, 1], axes=None)", "nn.relu(%1)"),
    "slice of all": _after("strided_slice(%0, begin=[0, 0, 1, 0], end=[1, 8, 5, 8], strides=[1, 1, 2, 1], axes=None)", "nn.relu(%1)"),
    "slice along axes": _after("strided_slice(%0, begin=[0], end=[8], strides=[1], axes=[1])", "nn.relu(%1)"),
    "prelu": _after("nn.prelu(%0, %b)", "nn.relu(%1)", more=_b("16")),
    "upsampling": _after("nn.upsampling(%0, scale_h=2f, scale_w=2f)", "nn.relu(%1)"),
    "resize": _after("image.resize2d(%0, size=[16, 16], roi=[0f, 0f, 0f, 0f])", "nn.relu(%1)"),
    "l2_normalize": _after("nn.l2_normalize(%0, eps=0.1f, axis=[1])", "nn.relu(%1)"),
    "batch_norm": _after("nn.batch_norm(%0, %b, %b, %b, %b)", "%1.0", "nn.relu(%2)", more=_b("16")),
    "squeeze": _after("nn.global_avg_pool2d(%0)", "squeeze(%1, axis=[2, 3])", "nn.relu(%2)"),
    "topk": _after('topk(%0, k=2, axis=2, dtype="int32")', "%1.0", "nn.relu(%2)"),
    "slice_like": _after(_POOL.format("%0"), "slice_like(%0, %1, axes=[2, 3])", "add(%2, %1)"),
    "argmax": _after("argmax(%0, axis=[1])"),
    "lrn": _after("nn.lrn(%0)", "nn.relu(%1)"),
    "tuple": _after("nn.relu(%0)", "(%1, %0)", "%2.0", _NEXT.format("%3"), "(%4, %2)"),
    "two ways": _after("nn.relu(%0)", "nn.batch_flatten(%1)", _NEXT.format("%1"), "(%2, %3)"),
    "where": _after("less(%0, 1f)", "where(%1, %0, %0)"),
    "pools": _after(
        "nn.avg_pool2d(%0, pool_size=[3, 3], padding=[1, 1, 1, 1])", "nn.adaptive_avg_pool2d(%1, output_size=[2, 2])", "nn.relu(%2)"
    ),
    "cast": _after('cast(%0, dtype="int32")', "nn.batch_flatten(%1)"),
    "lets": _after("(%0,)", "%0")
    .replace("%0 =", "let %a =")
    .replace("%1 = (%0,)", "let %c = nn.relu(%a)")
    .replace("  %0\n", f"  {_NEXT.format('%c')}\n"),
}


def _program(params: str, *lines: str) -> str:
    body = "".join(f"  %{i} = {line};\n" for i, line in enumerate(lines[:-1]))
    return f'#[version = "0.0.5"]\ndef @main({params}) {{\n{body}  {lines[-1]}\n}}\n'


_X = "%x: Tensor[(1, 8, 8, 8), float32], "
_QX = "%x: Tensor[(1, 8, 8, 8), uint8], "
_CONV = "padding=[1, 1, 1, 1], channels=16, kernel_size=[3, 3]"
WIDE = {
    "of TensorFlow": _program(
        _X + "%w: Tensor[(3, 3, 8, 16), float32], %b: Tensor[(16), float32]",
        f'nn.conv2d(%x, %w, {_CONV}, data_layout="NHWC", kernel_layout="HWIO")',
        "add(%0, %b)",
        "nn.relu(%1)",
        'nn.max_pool2d(%2, pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], layout="NHWC")',
        "nn.pad(%3, 0f, pad_width=[[0, 0], [1, 1], [2, 2], [0, 0]])",
        "mean(%4, axis=[1, 2])",
    ),
    "depthwise": _program(
        _X + "%w: Tensor[(8, 1, 3, 3), float32]",
        "nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups=8, channels=8, kernel_size=[3, 3])",
        "clip(%0, a_min=0f, a_max=6f)",
    ),
    "transposed": _program(
        _X + "%w: Tensor[(8, 16, 3, 3), float32]",
        "nn.conv2d_transpose(%x, %w, channels=16, kernel_size=[3, 3], strides=[2, 2])",
        "nn.relu(%0)",
    ),
    "conv3d": _program(
        "%x: Tensor[(1, 8, 4, 8, 8), float32], %w: Tensor[(16, 8, 3, 3, 3), float32]",
        "nn.conv3d(%x, %w, padding=[1, 1, 1, 1, 1, 1], channels=16, kernel_size=[3, 3, 3])",
        "nn.max_pool3d(%0, pool_size=[2, 2, 2], strides=[2, 2, 2], padding=[0, 0, 0, 0, 0, 0])",
        "nn.relu(%1)",
    ),
    "conv3d transposed": _program(
        "%x: Tensor[(1, 8, 4, 8, 8), float32], %w: Tensor[(8, 16, 3, 3, 3), float32]",
        "nn.conv3d_transpose(%x, %w, channels=16, kernel_size=[3, 3, 3])",
        "nn.relu(%0)",
    ),
    "deformable": _program(
        _X + "%o: Tensor[(1, 18, 6, 6), float32], %w: Tensor[(16, 8, 3, 3), float32]",
        "nn.deformable_conv2d(%x, %o, %w, channels=16, kernel_size=[3, 3])",
        "nn.relu(%0)",
        "nn.max_pool2d(%1, pool_size=[2, 2], padding=[0, 0, 0, 0])",
    ),
    "roi_align": _program(
        _X + "%w: Tensor[(16, 8, 3, 3), float32], %r: Tensor[(4, 5), float32]",
        f"nn.conv2d(%x, %w, {_CONV})",
        'vision.roi_align(%0, %r, pooled_size=[2, 2], spatial_scale=0.5f, sample_ratio=2, layout="NCHW", mode="avg")',
        "nn.relu(%1)",
    ),
    "roi_pool": _program(
        _X + "%w: Tensor[(16, 8, 3, 3), float32], %r: Tensor[(4, 5), float32]",
        f"nn.conv2d(%x, %w, {_CONV})",
        'vision.roi_pool(%0, %r, pooled_size=[2, 2], spatial_scale=0.5f, layout="NCHW")',
        "nn.relu(%1)",
    ),
    "quantised": _program(
        _QX + "%w: Tensor[(16, 8, 3, 3), int8], %b: Tensor[(16), int32], %y: Tensor[(1, 16, 8, 8), uint8]",
        f'qnn.conv2d(%x, %w, 1, 2, 0.5f, 0.25f, {_CONV}, out_dtype="int32")',
        "nn.bias_add(%0, %b)",
        'qnn.requantize(%1, 0.125f, 0, 0.5f, 3, axis=1, out_dtype="uint8")',
        "qnn.add(%2, %y, 0.5f, 3, 0.5f, 3, 0.5f, 3)",
        "(%3, %2)",
        "(0.5f, 0.5f)",
        "(3, 3)",
        "qnn.concatenate(%4, %5, %6, 0.5f, 3, axis=1)",
    ),
    "quantised by channels": _program(
        _QX + "%w: Tensor[(16, 8, 3, 3), int8], %s: Tensor[(16), float32]",
        f'qnn.conv2d(%x, %w, 1, 2, 0.5f, %s, {_CONV}, out_dtype="int32")',
        'qnn.requantize(%0, %s, 0, 0.5f, 3, axis=1, out_dtype="uint8")',
    ),
    "quantised transposed": _program(
        _QX + "%w: Tensor[(8, 16, 3, 3), int8]",
        'qnn.conv2d_transpose(%x, %w, 1, 2, 0.5f, 0.25f, channels=16, kernel_size=[3, 3], out_dtype="int32")',
        'qnn.requantize(%0, 0.125f, 0, 0.5f, 3, axis=1, out_dtype="int8")',
    ),
    "gradient of a weight": _program(
        "%g: Tensor[(1, 16, 6, 6), float32], %x: Tensor[(1, 8, 8, 8), float32]",
        "nn.conv2d_backward_weight(%g, %x, channels=16, kernel_size=[3, 3], padding=[0, 0, 0, 0], "
        'kernel_layout="NCHW", out_layout="OIHW")',
    ),
}


def cases(networks: dict[str, str]) -> dict[str, tuple[str, Any]]:
    """Every program with its request, by name."""
    found = {f"{name}, {what}": (text, how) for name, text in {**networks, **SMALL}.items() for what, how in HOW.items()}
    return found | {f"{name}, {what}": (text, how) for name, text in WIDE.items() for what, how in OTHERS.items()}


def read(text: str) -> IRModule:
    found = relay.parse(text)
    return getattr(found, "module", found)


def ours(text: str, how: Any) -> IRModule:
    """What the passes here make of a program."""
    with PassContext(opt_level=3):
        mod = Sequential([InferType(), SimplifyInference(), CanonicalizeOps()])(read(text))
        if isinstance(how, list):
            with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", in_blocks(relay, how[0])):
                return Sequential([AlterOpLayout(), InferType()])(mod)
        return Sequential([ConvertLayout(how), InferType()])(mod)


_BINARY = frozenset(having(Trait.BINARY))


def digest(mod: IRModule) -> str:
    """A number for `@main` that is the same for programs that compute the same in the same way.

    Sharing does not count. Nor do axes put in front of an operand only to broadcast it. A padding is that of each side.
    """
    func = mod["main"]
    numbers: dict[int, str] = {id(p): f"parameter {i}" for i, p in enumerate(func.params)}
    lets = 0
    for node in post_order(func):
        if isinstance(node, Let):
            numbers[id(node.variable)] = f"let {lets}"
            lets += 1
    for node in post_order(func):
        kids = [numbers[id(c)] for c in children(node)]
        said = type(node).__name__
        if isinstance(node, Op):
            said = node.name
        elif isinstance(node, (Var, GlobalVar)):
            said = numbers.get(id(node), node.name_hint)
            numbers[id(node)] = said
            continue
        elif isinstance(node, Constant):
            said = f"{node.data.dtype} {node.data.shape} {node.data.tobytes().hex()}"
        elif isinstance(node, TupleGetItem):
            said += f" {node.index}"
        elif isinstance(node, Let):
            said += numbers[id(node.variable)]
        elif isinstance(node, Function):
            said += f" {len(node.params)}"
        elif isinstance(node, Call) and isinstance(node.op, Op):
            said = " ".join(f"{name}={_attribute(name, node.attrs[name])}" for name in node.op.schema)
            if node.op.name in _BINARY:
                kids[:2] = [numbers[id(_spread(a))] for a in node.args]
        numbers[id(node)] = hashlib.sha256("\n".join([said, *kids]).encode()).hexdigest()
    return numbers[id(func)][:8]


def _attribute(name: str, value: Any) -> Any:
    return tuple(value) * 2 if name == "padding" and len(value) in (2, 3) else value


def _spread(arg: Expr) -> Expr:
    while isinstance(arg, Call) and isinstance(arg.op, Op) and arg.op.name == "expand_dims" and arg.attrs.axis == 0:
        arg = arg.args[0]
    return arg
