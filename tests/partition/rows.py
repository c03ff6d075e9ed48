"""Small programs around the rows of the accelerators' pattern tables: what each condition is about, once met and once
not. Parameters whose names begin with `c` become constants (ones; zeros where the name begins with `cz`)."""

from __future__ import annotations

_F = "Tensor[(1, 4, 8, 8), float32]"
_CONV = "nn.conv2d({data}, {weight}, padding=[1, 1, 1, 1], channels={channels}, kernel_size=[3, 3]{more})"


def _main(params: str, body: str) -> str:
    return f"def @main({params}) {{ {body} }}"


def _conv(
    body: str,
    *,
    weight: str = "%cw",
    channels: int = 6,
    more: str = "",
    data: str = "%x",
    x: str = _F,
    w: str = "Tensor[(6, 4, 3, 3), float32]",
    extra: str = "",
) -> str:
    conv = _CONV.format(data=data, weight=weight, channels=channels, more=more)
    return _main(f"%x: {x}, %w: {w}, %cw: {w}{', ' + extra if extra else ''}", body.replace("CONV", conv))


_B3, _B1 = "%cb: Tensor[(6, 1, 1), float32]", "%cb: Tensor[(6), float32]"
_SAME = "%r: Tensor[(1, 6, 8, 8), float32]"
_NHWC = 'data_layout="NHWC", kernel_layout="HWIO"'
_XL, _WL = "Tensor[(1, 8, 8, 4), float32]", "Tensor[(3, 3, 4, 6), float32]"

FLOATS: dict[str, str] = {
    "conv2d": _conv("CONV"),
    "conv2d, open weight": _conv("CONV", weight="%w"),
    "conv2d relu": _conv("nn.relu(CONV)"),
    "conv2d relu, open weight": _conv("nn.relu(CONV)", weight="%w"),
    "conv2d sigmoid": _conv("sigmoid(CONV)"),
    "conv2d bias_add": _conv("nn.bias_add(CONV, %cb)", extra=_B1),
    "conv2d bias_add, axis 3": _conv("nn.bias_add(CONV, %cb, axis=3)", extra="%cb: Tensor[(8), float32]"),
    "conv2d bias_add, open bias": _conv("nn.bias_add(CONV, %b)", extra="%b: Tensor[(6), float32]"),
    "conv2d bias_add relu": _conv("nn.relu(nn.bias_add(CONV, %cb))", extra=_B1),
    "conv2d add": _conv("add(CONV, %cb)", extra=_B3),
    "conv2d add relu": _conv("nn.relu(add(CONV, %cb))", extra=_B3),
    "conv2d add, open bias": _conv("add(CONV, %b)", extra="%b: Tensor[(6, 1, 1), float32]"),
    "conv2d add of rank 4": _conv("nn.relu(add(CONV, %cb))", extra="%cb: Tensor[(1, 6, 1, 1), float32]"),
    "conv2d add of a tensor": _conv("add(CONV, %r)", extra=_SAME),
    "conv2d add sum": _conv("add(add(CONV, %cb), %r)", extra=f"{_B3}, {_SAME}"),
    "conv2d add sum relu": _conv("nn.relu(add(add(CONV, %cb), %r))", extra=f"{_B3}, {_SAME}"),
    "conv2d add sum of another shape": _conv("add(add(CONV, %cb), %r)", extra=f"{_B3}, %r: Tensor[(8, 8), float32]"),
    "conv2d add tanh": _conv("tanh(add(CONV, %cb))", extra=_B3),
    "conv2d add clip": _conv("clip(add(CONV, %cb), a_min=0f, a_max=6f)", extra=_B3),
    "conv2d swish": _conv("%0 = CONV; multiply(%0, sigmoid(%0))"),
    "conv2d gelu": _conv("%0 = CONV; multiply(multiply(%0, add(erf(divide(%0, 1.4f)), 1f)), 0.5f)"),
    "conv2d mish": _conv("%0 = CONV; multiply(%0, tanh(log(add(exp(%0), 1f))))"),
    "conv2d NHWC": _conv("CONV", more=f", {_NHWC}", x=_XL, w=_WL),
    "conv2d NHWC, batch 2": _conv("CONV", more=f", {_NHWC}", x="Tensor[(2, 8, 8, 4), float32]", w=_WL),
    "conv2d NHWC bias_add relu": _conv("nn.relu(nn.bias_add(CONV, %cb, axis=3))", more=f", {_NHWC}", x=_XL, w=_WL, extra=_B1),
    "conv2d NHWC add": _conv("nn.relu(add(CONV, %cb))", more=f", {_NHWC}", x=_XL, w=_WL, extra=_B1),
    "conv2d NHWC groups": _conv("CONV", more=f", groups=2, {_NHWC}", x=_XL, w="Tensor[(3, 3, 2, 6), float32]"),
    "conv2d NHWC depthwise": _conv(
        "CONV", channels=4, more=', groups=4, data_layout="NHWC", kernel_layout="HWOI"', x=_XL, w="Tensor[(3, 3, 4, 1), float32]"
    ),
    "conv2d NHWC depthwise, strides 3": _conv(
        "CONV",
        channels=4,
        more=', strides=[3, 3], groups=4, data_layout="NHWC", kernel_layout="HWOI"',
        x=_XL,
        w="Tensor[(3, 3, 4, 1), float32]",
    ),
    "conv2d NHWC padded": _conv(
        "CONV", data="nn.pad(%x, 0f, pad_width=[[0, 0], [1, 1], [1, 1], [0, 0]])", more=f", {_NHWC}", x=_XL, w=_WL
    ),
    "conv2d float16": _conv("CONV", x="Tensor[(1, 4, 8, 8), float16]", w="Tensor[(6, 4, 3, 3), float16]"),
    "conv2d int64": _conv("CONV", x="Tensor[(1, 4, 8, 8), int64]", w="Tensor[(6, 4, 3, 3), int64]"),
    "conv2d int32": _conv("nn.relu(CONV)", x="Tensor[(1, 4, 8, 8), int32]", w="Tensor[(6, 4, 3, 3), int32]"),
    "dense": _main("%x: Tensor[(2, 3), float32], %cw: Tensor[(5, 3), float32]", "nn.dense(%x, %cw, units=5)"),
    "dense, open weight": _main("%x: Tensor[(2, 3), float32], %w: Tensor[(5, 3), float32]", "nn.dense(%x, %w, units=5)"),
    "dense add": _main(
        "%x: Tensor[(2, 3), float32], %cw: Tensor[(5, 3), float32], %cb: Tensor[(5), float32]", "add(nn.dense(%x, %cw, units=5), %cb)"
    ),
    "dense add sum": _main(
        "%x: Tensor[(2, 3), float32], %cw: Tensor[(5, 3), float32], %cb: Tensor[(5), float32], %r: Tensor[(2, 5), float32]",
        "add(add(nn.dense(%x, %cw, units=5), %cb), %r)",
    ),
    "dense bias_add": _main(
        "%x: Tensor[(2, 3), float32], %cw: Tensor[(5, 3), float32], %cb: Tensor[(5), float32]",
        "nn.bias_add(nn.dense(%x, %cw, units=5), %cb)",
    ),
    "dense add relu": _main(
        "%x: Tensor[(2, 3), float32], %cw: Tensor[(5, 3), float32], %cb: Tensor[(5), float32]",
        "nn.relu(add(nn.dense(%x, %cw, units=5), %cb))",
    ),
    "dense add gelu": _main(
        "%x: Tensor[(2, 3), float32], %cw: Tensor[(5, 3), float32], %cb: Tensor[(5), float32]",
        "%0 = add(nn.dense(%x, %cw, units=5), %cb); %1 = add(multiply(power(%0, 3f), 0.044715f), %0);"
        " multiply(multiply(add(tanh(multiply(%1, 0.797884583f)), 1f), 0.5f), %0)",
    ),
    "instance_norm": _main(f"%x: {_F}, %cg: Tensor[(4), float32], %cb: Tensor[(4), float32]", "nn.instance_norm(%x, %cg, %cb)"),
    "instance_norm, open scale": _main(
        f"%x: {_F}, %g: Tensor[(4), float32], %cb: Tensor[(4), float32]", "nn.instance_norm(%x, %g, %cb)"
    ),
    "max_pool2d": _main(f"%x: {_F}", "nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2])"),
    "max_pool2d, ceil": _main(f"%x: {_F}", "nn.max_pool2d(%x, pool_size=[3, 3], strides=[2, 2], ceil_mode=True)"),
    "max_pool2d NHWC": _main(f"%x: {_XL}", 'nn.max_pool2d(%x, pool_size=[2, 2], strides=[2, 2], layout="NHWC")'),
    "max_pool2d NHWC, dilated": _main(f"%x: {_XL}", 'nn.max_pool2d(%x, pool_size=[2, 2], dilation=[2, 2], layout="NHWC")'),
    "avg_pool2d NHWC": _main(f"%x: {_XL}", 'nn.avg_pool2d(%x, pool_size=[2, 2], strides=[2, 2], layout="NHWC")'),
    "global_avg_pool2d": _main(f"%x: {_F}", "nn.global_avg_pool2d(%x)"),
    "global_max_pool2d NHWC": _main(f"%x: {_XL}", 'nn.global_max_pool2d(%x, layout="NHWC")'),
    "l2 pool": _main(f"%x: {_XL}", 'sqrt(nn.avg_pool2d(power(%x, 2f), pool_size=[2, 2], layout="NHWC"))'),
    "add": _main(f"%x: {_F}, %y: {_F}", "add(%x, %y)"),
    "add int64": _main("%x: Tensor[(2), int64], %y: Tensor[(2), int64]", "add(%x, %y)"),
    "add int8": _main("%x: Tensor[(2), int8], %y: Tensor[(2), int8]", "add(%x, %y)"),
    "maximum": _main(f"%x: {_F}, %y: {_F}", "maximum(%x, %y)"),
    "multiply float64": _main("%x: Tensor[(2), float64], %y: Tensor[(2), float64]", "multiply(%x, %y)"),
    "reshape int32": _main("%x: Tensor[(2, 3), int32]", "reshape(%x, newshape=[6])"),
    "softmax": _main("%x: Tensor[(2, 3), float32]", "nn.softmax(%x)"),
    "batch_matmul": _main(
        "%x: Tensor[(2, 3, 4), float32], %y: Tensor[(2, 5, 4), float32]", "nn.batch_matmul(%x, %y, transpose_b=True)"
    ),
    "layer_norm": _main(
        "%x: Tensor[(2, 3), float32], %cg: Tensor[(3), float32], %cb: Tensor[(3), float32]", "nn.layer_norm(%x, %cg, %cb)"
    ),
    "concatenate": _main("%x: Tensor[(2, 3), float32]", "concatenate((%x, %x))"),
}


def _qnn(
    result: str = "int8",
    *,
    x: str = "int8",
    w: str = "int8",
    b: str = "int32",
    sums: str = "int32",
    zero: str = "0",
    wzero: str = "0",
    scale: str = "0.5f",
    bias: bool = True,
    tail: str = "R",
    groups: int = 1,
    kernel: str = "(3, 3, 4, 4)",
    layout: str = "HWIO",
    pad: str = "",
    padding: str = "[0, 0, 0, 0]",
    strides: str = "[1, 1]",
    more: str = "",
    batch: int = 1,
    wide: bool = False,
) -> str:
    """A quantized convolution with its bias and requantization in NHWC."""
    data = f"nn.pad(%x, {zero}, pad_width={pad})" if pad else "%x"
    conv = (
        f"qnn.conv2d({data}, %cw, {zero}, {wzero}, 0.5f, {'%cs' if wide else scale}, padding={padding}, strides={strides},"
        f' groups={groups}, channels=4, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="{layout}", out_dtype="{sums}"{more})'
    )
    inner = f"nn.bias_add({conv}, %cb, axis=3)" if bias else conv
    root = f'qnn.requantize({inner}, 0.25f, 0, 0.5f, 0, axis=3, out_dtype="{result}")'
    scales = ", %cs: Tensor[(4), float32]" if wide else ""
    params = f"%x: Tensor[({batch}, 8, 8, 4), {x}], %cw: Tensor[{kernel}, {w}], %cb: Tensor[(4), {b}]{scales}"
    return _main(params, tail.replace("R", root))


_WIDTHS = "[[0, 0], [1, 1], [1, 1], [0, 0]]"
_DENSE = (
    "%x: Tensor[(1, 3), int8], %cw: Tensor[(5, 3), int8], %cb: Tensor[(5), int32]",
    'qnn.requantize(nn.bias_add(qnn.dense(%x, %cw, 0, WZ, 0.5f, 0.5f, units=5, out_dtype="int32"), %cb), 0.25f, 0, 0.5f, 0,'
    ' out_dtype="int8")',
)


def _pool(name: str, dtype: str = "int8", batch: int = 1, layout: str = "NHWC", tail: str = "P") -> str:
    size = "" if "global" in name else "pool_size=[2, 2], strides=[2, 2], padding=[0, 0, 0, 0], "
    data = "%x" if "max" in name else 'cast(%x, dtype="int32")'
    pool = f'nn.{name}({data}, {size}layout="{layout}")'
    whole = pool if "max" in name else f'cast({pool}, dtype="{dtype}")'
    return _main(f"%x: Tensor[({batch}, 8, 8, 4), {dtype}]", tail.replace("P", whole))


def _binary(name: str, dtype: str = "int8", zero: str = "3", tail: str = "B", right: str = "%y", scale: str = "0.5f") -> str:
    call = f"qnn.{name}(%x, {right}, {scale}, {zero}, 0.5f, {zero}, 0.5f, {zero})"
    params = f"%x: Tensor[(1, 8, 8, 4), {dtype}], %y: Tensor[(1, 8, 8, 4), {dtype}], %c: {dtype}, %cc: Tensor[(4), {dtype}]"
    return _main(params, tail.replace("B", call))


def _float_between(name: str, dtype: str, scale: str, zero: int) -> str:
    alpha = ", alpha=0.5f" if "leaky" in name else ""
    real = 'qnn.dequantize(%x, 0.1f, 0, out_dtype="float32")'
    call = f'qnn.quantize({name}({real}{alpha}), {scale}, {zero}, out_dtype="{dtype}")'
    return _main(f"%x: Tensor[(1, 8, 8, 4), {dtype}]", call)


INTEGERS: dict[str, str] = {
    "qnn conv": _qnn(),
    "qnn conv clip": _qnn(tail="clip(R, a_min=0f, a_max=100f)"),
    "qnn conv without bias": _qnn(bias=False),
    "qnn conv without bias behind a bias": _main(
        "%x: Tensor[(1, 8, 8, 4), int32], %cw: Tensor[(3, 3, 4, 4), int8], %cb: Tensor[(4), int32]",
        'qnn.requantize(qnn.conv2d(cast(nn.bias_add(%x, %cb, axis=3), dtype="int8"), %cw, 0, 0, 0.5f, 0.5f, channels=4,'
        ' kernel_size=[3, 3], padding=[0, 0, 0, 0], data_layout="NHWC", kernel_layout="HWIO", out_dtype="int32"),'
        ' 0.25f, 0, 0.5f, 0, axis=3, out_dtype="int8")',
    ),
    "qnn conv uint8": _qnn("uint8", x="uint8", w="uint8"),
    "qnn conv uint8 to int8": _qnn("int8", x="uint8", w="int8"),
    "qnn conv int16": _qnn("int16", x="int16", b="int64", sums="int64"),
    "qnn conv int16, zero point": _qnn("int16", x="int16", b="int64", sums="int64", zero="2"),
    "qnn conv, weight's zero point": _qnn(wzero="1"),
    "qnn conv, scale of each channel": _qnn(wide=True),
    "qnn conv relu": _qnn(tail="R").replace("nn.bias_add", "nn.relu(nn.bias_add").replace("%cb, axis=3)", "%cb, axis=3))"),
    "qnn conv to int32": _qnn("int32"),
    "qnn conv, batch 2": _qnn(batch=2),
    "qnn conv padded": _qnn(pad=_WIDTHS),
    "qnn conv padded twice": _qnn(pad=_WIDTHS, padding="[1, 1, 1, 1]"),
    "qnn conv padded by two on a side": _qnn(pad="[[0, 0], [0, 2], [1, 1], [0, 0]]"),
    "qnn conv dilated": _qnn(more=", dilation=[2, 2]"),
    "qnn conv groups": _qnn(groups=2, kernel="(3, 3, 2, 4)"),
    "qnn depthwise": _qnn(groups=4, kernel="(3, 3, 4, 1)", layout="HWOI"),
    "qnn depthwise without bias": _qnn(groups=4, kernel="(3, 3, 4, 1)", layout="HWOI", bias=False),
    "qnn depthwise, strides 3": _qnn(groups=4, kernel="(3, 3, 4, 1)", layout="HWOI", strides="[3, 3]"),
    "qnn dense": _main(_DENSE[0], _DENSE[1].replace("WZ", "0")),
    "qnn dense, weight's zero point": _main(_DENSE[0], _DENSE[1].replace("WZ", "1")),
    "qnn dense clip": _main(_DENSE[0], f"clip({_DENSE[1].replace('WZ', '0')}, a_min=0f, a_max=9f)"),
    "max_pool2d int8": _pool("max_pool2d"),
    "max_pool2d int8 clip": _pool("max_pool2d", tail="clip(P, a_min=0f, a_max=9f)"),
    "max_pool2d uint8": _pool("max_pool2d", "uint8"),
    "max_pool2d int16": _pool("max_pool2d", "int16"),
    "max_pool2d int8, batch 2": _pool("max_pool2d", batch=2),
    "max_pool2d int8 NCHW": _pool("max_pool2d", layout="NCHW"),
    "avg_pool2d int8": _pool("avg_pool2d"),
    "avg_pool2d uint8": _pool("avg_pool2d", "uint8"),
    "avg_pool2d int8 clip": _pool("avg_pool2d", tail="clip(P, a_min=0f, a_max=9f)"),
    "avg_pool2d int8, batch 2": _pool("avg_pool2d", batch=2),
    "avg_pool2d int8 NCHW": _pool("avg_pool2d", layout="NCHW"),
    "global_avg_pool2d int8": _pool("global_avg_pool2d"),
    "qnn.add": _binary("add"),
    "qnn.add clip": _binary("add", tail="clip(B, a_min=0f, a_max=9f)"),
    "qnn.add int16": _binary("add", "int16", "0"),
    "qnn.add int16, zero point": _binary("add", "int16"),
    "qnn.add uint8": _binary("add", "uint8"),
    "qnn.add scalar": _binary("add", right="%c"),
    "qnn.add channels": _binary("add", right="%cc"),
    "qnn.mul": _binary("mul"),
    "qnn.mul scalar": _binary("mul", right="%c"),
    "qnn.mul channels": _binary("mul", right="%cc"),
    "qnn.mul int16, zero point": _binary("mul", "int16"),
    "qnn.subtract": _binary("subtract"),
    "softmax int8": _float_between("nn.softmax", "int8", "0.00390625f", -128),
    "softmax int8, another zero point": _float_between("nn.softmax", "int8", "0.00390625f", 0),
    "softmax int16": _float_between("nn.softmax", "int16", "0.000030517578125f", 0),
    "softmax uint8": _float_between("nn.softmax", "uint8", "0.00390625f", 0),
    "sigmoid uint8": _float_between("sigmoid", "uint8", "0.00390625f", 0),
    "sigmoid uint8, another scale": _float_between("sigmoid", "uint8", "0.1f", 0),
    "tanh uint8": _float_between("tanh", "uint8", "0.0078125f", 128),
    "tanh uint8, another zero point": _float_between("tanh", "uint8", "0.0078125f", 0),
    "leaky_relu int8": _float_between("nn.leaky_relu", "int8", "0.1f", 0),
    "mean int8": _main(
        "%x: Tensor[(1, 8, 8, 4), int8]",
        'qnn.requantize(mean(cast(%x, dtype="int32"), axis=[1, 2]), 0.5f, 0, 0.5f, 0, out_dtype="int8")',
    ),
    "resize nearest": _main(
        "%x: Tensor[(1, 8, 8, 4), int8]",
        'image.resize2d(%x, size=[16, 16], layout="NHWC", method="nearest_neighbor", roi=[0f, 0f, 0f, 0f])',
    ),
    "resize linear": _main("%x: Tensor[(1, 8, 8, 4), int8]", 'image.resize2d(%x, size=[16, 16], layout="NHWC", roi=[0f, 0f, 0f, 0f])'),
    "requantize": _main("%x: Tensor[(1, 8, 8, 4), int8]", 'qnn.requantize(%x, 0.5f, 0, 0.25f, 0, out_dtype="int8")'),
    "clip int8": _main("%x: Tensor[(1, 8, 8, 4), int8]", "clip(%x, a_min=0f, a_max=6f)"),
    "split int8": _main("%x: Tensor[(1, 8, 8, 4), int8]", "split(%x, indices_or_sections=2, axis=3)"),
    "qnn.concatenate": _main(
        "%x: Tensor[(1, 8, 8, 4), int8]",
        "qnn.concatenate((%x, %x), (0.5f, 0.5f), (0, 0), 0.5f, 0, axis=3)",
    ),
    "depth_to_space": _main("%x: Tensor[(1, 8, 8, 4), int8]", 'nn.depth_to_space(%x, block_size=2, layout="NHWC")'),
}


def _half(text: str) -> str:
    return text.replace("float32", "float16")


def _ohwi(body: str, *, groups: int = 1, kernel: str = "(6, 3, 3, 4)", extra: str = "") -> str:
    conv = (
        f"nn.conv2d(%x, %w, padding=[1, 1, 1, 1], groups={groups}, kernel_size=[3, 3],"
        f' channels={kernel[1]}, data_layout="NHWC", kernel_layout="OHWI")'
    )
    biased = f"nn.bias_add({conv}, %b, axis=3)"
    more = f", {extra}" if extra else ""
    params = f"%x: Tensor[(1, 8, 8, 4), float32], %w: Tensor[{kernel}, float32], %b: Tensor[({kernel[1]}), float32]{more}"
    return _main(params, body.replace("BIASED", biased).replace("CONV", conv))


_SUM = "%r: Tensor[(1, 8, 8, 6), float32]"
_XY = "%x: Tensor[(2, 3), float32], %w: Tensor[(5, 3), float32], %b: Tensor[(5), float32]"
_DB = "add(nn.dense(%x, %w, units=5), %b)"
_GELU = "%0 = D; %1 = erf(multiply(%0, 0.7f)); multiply(add(multiply(%1, 0.5f), 0.5f), %0)".replace("D", _DB)
_GELU_HALF = (
    _half(f'%0 = {_DB}; %1 = cast(erf(cast(multiply(%0, %s), dtype="FLOAT")), dtype="float16");').replace("FLOAT", "float32")
    + " multiply(add(multiply(%1, %s), %s), %0)"
)
_AXES = "axes=[0, 1, 2, 3]"
_V = "%x: Tensor[(2, 3, 4, 4), float32]"


def _volumes(name: str, weight: str, layout: str = "NCDHW", more: str = "") -> str:
    call = f'{name}(%x, %cw, channels=4, kernel_size=[1, 1, 1], padding=[0, 0, 0, 0, 0, 0], data_layout="{layout}"{more})'
    return _main(f"%x: Tensor[(1, 4, 4, 4, 4), float32], %cw: Tensor[{weight}, float32]", call)


GPUS: dict[str, str] = {
    "OHWI": _ohwi("CONV"),
    "OHWI bias": _ohwi("BIASED"),
    "OHWI bias by add": _ohwi("add(CONV, %b)"),
    "OHWI relu": _ohwi("nn.relu(BIASED)"),
    "OHWI sigmoid": _ohwi("sigmoid(BIASED)"),
    "OHWI silu": _ohwi("%0 = BIASED; multiply(%0, sigmoid(%0))"),
    "OHWI hardswish": _ohwi("%0 = BIASED; multiply(%0, divide(clip(add(%0, 3f), a_min=0f, a_max=6f), 6f))"),
    "OHWI residual": _ohwi("add(nn.relu(BIASED), %r)", extra=_SUM),
    "OHWI residual relu": _ohwi("nn.relu(add(%r, BIASED))", extra=_SUM),
    "OHWI residual product": _ohwi("nn.relu(multiply(sigmoid(BIASED), %r))", extra=_SUM),
    "OHWI residual of another shape": _ohwi("add(nn.relu(BIASED), %r)", extra="%r: Tensor[(1, 1, 1, 6), float32]"),
    "OHWI residual of itself": _ohwi("%0 = BIASED; add(%0, exp(%0))"),
    "OHWI residual of its input": _ohwi("add(BIASED, %x)", kernel="(4, 3, 3, 4)"),
    "OHWI depthwise": _ohwi("CONV", groups=4, kernel="(4, 3, 3, 1)"),
    "OHWI groups": _ohwi("CONV", groups=2, kernel="(6, 3, 3, 2)"),
    "OHWI float16": _half(_ohwi("nn.relu(BIASED)")),
    "OHWI float64": _ohwi("nn.relu(BIASED)").replace("float32", "float64"),
    "transposed OHWI": _main(
        "%x: Tensor[(1, 8, 8, 4), float32], %w: Tensor[(4, 3, 3, 6), float32]",
        'nn.conv2d_transpose(%x, %w, channels=6, kernel_size=[3, 3], data_layout="NHWC", kernel_layout="IHWO")',
    ),
    "transposed": _main(
        "%x: Tensor[(1, 4, 8, 8), float32], %w: Tensor[(6, 4, 3, 3), float32]",
        'nn.conv2d_transpose(%x, %w, channels=6, kernel_size=[3, 3], kernel_layout="OIHW")',
    ),
    "dense bias": _main(_XY, _DB),
    "dense bias relu": _main(_XY, f"nn.relu({_DB})"),
    "dense bias gelu": _main(_XY, _GELU),
    "dense bias gelu float16": _main(_half(_XY) + ", %s: float16", _GELU_HALF),
    "dense uint8 and int8": _main(
        "%x: Tensor[(2, 3), uint8], %w: Tensor[(5, 3), int8]", 'nn.dense(%x, %w, units=5, out_dtype="int32")'
    ),
    "dense int32": _main("%x: Tensor[(2, 3), int32], %w: Tensor[(5, 3), int32]", "nn.dense(%x, %w, units=5)"),
    "batch_matmul, plain": _main(
        "%x: Tensor[(2, 3, 4), float32], %y: Tensor[(2, 4, 5), float32]", "nn.batch_matmul(%x, %y, transpose_b=False)"
    ),
    "conv1d": _main(
        "%x: Tensor[(1, 4, 8), float32], %cw: Tensor[(6, 4, 3), float32]", "nn.conv1d(%x, %cw, channels=6, kernel_size=[3])"
    ),
    "conv3d": _volumes("nn.conv3d", "(4, 4, 1, 1, 1)"),
    "conv3d_transpose": _volumes("nn.conv3d_transpose", "(4, 4, 1, 1, 1)", more=', kernel_layout="OIDHW"'),
    "max_pool3d": _main("%x: Tensor[(1, 4, 4, 4, 4), float32]", "nn.max_pool3d(%x, pool_size=[2, 2, 2])"),
    "avg_pool3d NDHWC": _main("%x: Tensor[(1, 4, 4, 4, 4), float32]", 'nn.avg_pool3d(%x, pool_size=[2, 2, 2], layout="NDHWC")'),
    "avg_pool2d, uneven pad": _main(_V, "nn.avg_pool2d(%x, pool_size=[2, 2], padding=[0, 0, 1, 1], count_include_pad=True)"),
    "avg_pool2d": _main(_V, "nn.avg_pool2d(%x, pool_size=[2, 2], padding=[0, 0, 1, 1])"),
    "adaptive_avg_pool2d": _main(_V, "nn.adaptive_avg_pool2d(%x, output_size=[1, 1])"),
    "adaptive_max_pool2d to 2": _main(_V, "nn.adaptive_max_pool2d(%x, output_size=[2, 2])"),
    "batch_norm": _main(
        _V + "".join(f", %c{n}: Tensor[(3), float32]" for n in "gbmv"), "%0 = nn.batch_norm(%x, %cg, %cb, %cm, %cv); %0.0"
    ),
    "batch_norm, axis 2": _main(
        _V + "".join(f", %c{n}: Tensor[(4), float32]" for n in "gbmv"), "%0 = nn.batch_norm(%x, %cg, %cb, %cm, %cv, axis=2); %0.0"
    ),
    "unary": _main(_V, "erf(floor(ceil(atan(cos(sin(negative(nn.leaky_relu(abs(sqrt(log(exp(tanh(%x)))))))))))))"),
    "add of a scalar": _main(_V, "add(%x, 1f)"),
    "binary": _main(_V, "minimum(power(subtract(divide(%x, 2f), %x), %x), %x)"),
    "float16 and more": _half(_main(_V, "nn.relu(%x)")),
    "sum": _main(_V, "sum(%x, axis=[2, 3])"),
    "sum of all": _main(_V, "sum(%x)"),
    "mean of the batch": _main(_V, "mean(%x, axis=[0])"),
    "max, exclude": _main(_V, "max(%x, axis=[1], exclude=True)"),
    "concatenate channels": _main(_V, "concatenate((%x, exp(%x)), axis=1)"),
    "concatenate batches": _main(_V, "concatenate((%x, exp(%x)), axis=0)"),
    "concatenate constant": _main(f"{_V}, %cc: Tensor[(2, 3, 4, 4), float32]", "concatenate((%x, %cc), axis=1)"),
    "concatenate a tuple": _main("%x: (Tensor[(2, 3), float32], Tensor[(2, 3), float32])", "concatenate(%x, axis=1)"),
    "expand_dims": _main(_V, "expand_dims(%x, axis=1)"),
    "expand_dims in front": _main(_V, "expand_dims(%x, axis=0)"),
    "layout_transform": _main(_V, 'layout_transform(%x, src_layout="NCHW", dst_layout="NHWC")'),
    "layout_transform of blocks": _main(_V, 'layout_transform(%x, src_layout="NCHW", dst_layout="CNHW")'),
    "transpose": _main(_V, "transpose(%x, axes=[0, 2, 3, 1])"),
    "transpose of the batch": _main(_V, "transpose(%x, axes=[1, 0, 2, 3])"),
    "reshape": _main(_V, "reshape(%x, newshape=[2, -1])"),
    "reshape with 0": _main(_V, "reshape(%x, newshape=[0, 48])"),
    "reshape by codes": _main(_V, "reshape(%x, newshape=[0, -3, 4])"),
    "reshape of the batch": _main(_V, "reshape(%x, newshape=[6, 16])"),
    "reshape with -1 in front": _main(_V, "reshape(%x, newshape=[-1, 48])"),
    "reshape of an open batch": _main("%x: Tensor[(?, 3, 4), float32]", "reshape(%x, newshape=[-1, 12])"),
    "open batch": _main("%x: Tensor[(?, 3, 4), float32]", "nn.relu(%x)"),
    "open rows": _main("%x: Tensor[(1, ?, 4), float32]", "nn.relu(%x)"),
    "split": _main(_V, "%0 = split(%x, indices_or_sections=3, axis=1); %0.0"),
    "split of the batch": _main(_V, "%0 = split(%x, indices_or_sections=2, axis=0); %0.0"),
    "squeeze": _main("%x: Tensor[(2, 1, 4), float32]", "squeeze(%x, axis=[1])"),
    "pad": _main(_V, "nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]])"),
    "strided_slice": _main(_V, f"strided_slice(%x, begin=[0, 1, 0, 0], end=[2, 3, 4, 4], strides=[1, 1, 2, 1], {_AXES})"),
    "strided_slice of the batch": _main(_V, f"strided_slice(%x, begin=[1, 0, 0, 0], end=[2, 3, 4, 4], strides=[1, 1, 1, 1], {_AXES})"),
    "strided_slice backwards": _main(_V, f"strided_slice(%x, begin=[0, 2, 0, 0], end=[2, 0, 4, 4], strides=[1, -1, 1, 1], {_AXES})"),
    "softmax of channels": _main(_V, "nn.softmax(%x, axis=1)"),
    "softmax of the batch": _main(_V, "nn.softmax(%x, axis=0)"),
    "batch_flatten": _main(_V, "clip(sigmoid(nn.batch_flatten(%x)), a_min=0f, a_max=1f)"),
}

PROGRAMS: dict[str, str] = {**FLOATS, **INTEGERS, **GPUS}
