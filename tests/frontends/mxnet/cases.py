"""Layers of MXNet, one a case: the operator, its attributes, and its operands, which come from the case's name.

`scripts/mxnet_results.py` has MXNet compute them. The tests import the same symbols.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Case:
    """A layer: its operator, attributes, operands, and the number of its results. `close` is the relative distance allowed.

    With `live`, only rows that begin with another number than -1 have a meaning.
    """

    op: str
    inputs: Sequence[np.ndarray]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    close: float = 1e-5
    live: bool = False

    def symbol(self) -> str:
        """The symbol's JSON, as MXNet 1.9.1 writes it."""
        count = len(self.inputs)
        names = [f"x{i}" for i in range(count)]
        nodes: list[dict[str, Any]] = [{"op": "null", "name": name, "inputs": []} for name in names]
        attributes = {name: str(value) for name, value in self.attributes.items()}
        nodes.append({"op": self.op, "name": "layer", "attrs": attributes, "inputs": [[i, 0, 0] for i in range(count)]})
        heads = [[count, i, 0] for i in range(self.outputs)]
        graph = {"nodes": nodes, "arg_nodes": list(range(count)), "heads": heads, "attrs": {"mxnet_version": ["int", 10901]}}
        return json.dumps(graph)


class Maker:
    """Makes the operands of a case from its name."""

    def __init__(self, name: str) -> None:
        self.rng = np.random.RandomState(zlib.crc32(name.encode()))

    def real(self, *shape: int) -> np.ndarray:
        """Numbers around 0."""
        return self.rng.normal(size=shape).astype("float32")

    def positive(self, *shape: int) -> np.ndarray:
        """Numbers from 0.1 to 3."""
        return self.rng.uniform(0.1, 3, shape).astype("float32")

    def unit(self, *shape: int) -> np.ndarray:
        """Numbers from -0.9 to 0.9."""
        return self.rng.uniform(-0.9, 0.9, shape).astype("float32")

    def whole(self, low: int, high: int, *shape: int) -> np.ndarray:
        """Whole numbers as real ones: indices and lengths."""
        return self.rng.randint(low, high, shape).astype("float32")

    def few(self, *shape: int) -> np.ndarray:
        """Numbers of which some are equal: -1, -0.5, 0, 0.5, 1."""
        return self.rng.choice(np.float32([-1, -0.5, 0, 0.5, 1]), shape)

    def different(self, *shape: int) -> np.ndarray:
        """Numbers of which none are equal."""
        count = int(np.prod(shape))
        return (self.rng.permutation(count) / count - 0.5).astype("float32").reshape(shape)

    def boxes(self, *shape: int) -> np.ndarray:
        """Boxes (..., 4) with their upper left corner first, in an image of extent 1."""
        corner, size = self.rng.uniform(0, 0.7, (*shape, 2)), self.rng.uniform(0.1, 0.3, (*shape, 2))
        return np.concatenate([corner, corner + size], -1).astype("float32")


def _unary(m: Maker, name: str) -> Case:
    below_one = {"arcsin", "arccos", "arctanh", "erfinv"}
    above_zero = {"sqrt", "rsqrt", "log", "log2", "log10", "rcbrt", "reciprocal", "log1p"}
    x = m.unit(2, 5) if name in below_one else m.positive(2, 5) if name in above_zero else m.real(2, 5)
    if name == "arccosh":
        x = x + 5
    if name in ("rint", "round", "fix", "trunc", "floor", "ceil"):
        x = np.float32([-2.5, -1.5, -1.2, -0.5, 0, 0.5, 0.7, 1.5, 2.5, 3.2])
    return Case(name, [x])


UNARY = (
    "abs",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctanh",
    "cbrt",
    "ceil",
    "cos",
    "cosh",
    "degrees",
    "erf",
    "exp",
    "expm1",
    "fix",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "logical_not",
    "negative",
    "radians",
    "rcbrt",
    "reciprocal",
    "relu",
    "rint",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "softsign",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "trunc",
    "zeros_like",
    "ones_like",
    "_copy",
    "BlockGrad",
    "make_loss",
    "MakeLoss",
    "hard_sigmoid",
    "smooth_l1",
    "_contrib_div_sqrt_dim",
    "size_array",
    "shape_array",
    "_contrib_quadratic",
)
BINARY = (
    "add",
    "sub",
    "mul",
    "div",
    "mod",
    "power",
    "maximum",
    "minimum",
    "hypot",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "lesser",
    "lesser_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
)
SCALAR = (
    "_plus",
    "_minus",
    "_rminus",
    "_mul",
    "_div",
    "_rdiv",
    "_mod",
    "_rmod",
    "_power",
    "_rpower",
    "_maximum",
    "_minimum",
    "_hypot",
    "_equal",
    "_not_equal",
    "_greater",
    "_greater_equal",
    "_lesser",
    "_lesser_equal",
    "_logical_and",
    "_logical_or",
    "_logical_xor",
)
NUMPY = ("add", "subtract", "multiply", "power", "less", "less_equal", "equal", "greater", "true_divide", "mod")
#: RNN: mode, layers, both directions, state outputs.
RECURRENT = (
    ("lstm", 1, False, True),
    ("lstm", 2, True, True),
    ("gru", 1, False, True),
    ("gru", 2, True, False),
    ("rnn_tanh", 1, False, True),
    ("rnn_relu", 2, True, True),
    ("lstm", 1, False, False),
)


def elementwise(made: dict[str, Case]) -> None:
    for name in UNARY:
        made[name] = _unary(Maker(name), name)
    for name in BINARY:
        m = Maker(name)
        x, y = (m.positive(2, 1, 4), m.positive(3, 1)) if name in ("mod", "power", "div") else (m.few(2, 1, 4), m.few(3, 1))
        if name == "mod":
            x = x - 1.5
        made[f"broadcast_{name}"] = Case(f"broadcast_{name}", [x, y])
        elemwise = {"add": "elemwise_add", "sub": "elemwise_sub", "mul": "elemwise_mul", "div": "elemwise_div"}
        same = (m.few(2, 5), m.few(2, 5)) if name not in ("div", "power", "mod") else (m.positive(2, 5), m.positive(2, 5))
        made[elemwise.get(name, f"_{name}")] = Case(elemwise.get(name, f"_{name}"), same)
    for name in SCALAR:
        m = Maker(name)
        x = m.positive(2, 5) if "pow" in name or "div" in name else m.few(2, 5)
        made[f"{name}_scalar"] = Case(f"{name}_scalar", [x], {"scalar": 0.5 if "logical" not in name else 1.0})
    m = Maker("whole")
    made["mod_negative"] = Case("_mod_scalar", [m.real(2, 5)], {"scalar": -0.7})
    made["rmod_zero"] = Case("_rmod_scalar", [m.few(2, 5)], {"scalar": 0.7})
    for kind in ("_plus", "_mul", "_minus", "_maximum", "_rminus", "_greater"):
        made[f"int{kind}"] = Case(f"{kind}_scalar", [m.whole(-5, 5, 2, 3).astype("int32")], {"scalar": 2})
        made[f"int{kind}_real"] = Case(f"{kind}_scalar", [m.whole(-5, 5, 2, 3).astype("int32")], {"scalar": 1.5})
    made["int_real"] = Case("_plus_scalar", [m.whole(-5, 5, 2, 3).astype("int32")], {"scalar": 1.5, "is_int": False})
    for name in NUMPY:
        made[f"_npi_{name}"] = Case(f"_npi_{name}", [m.positive(2, 1, 4), m.positive(3, 1)])
        made[f"_npi_{name}_scalar"] = Case(f"_npi_{name}_scalar", [m.positive(2, 4)], {"scalar": 1.5})
    made["add_n"] = Case("add_n", [m.real(2, 3) for _ in range(3)], {"num_args": 3})
    made["clip"] = Case("clip", [m.real(3, 4)], {"a_min": -0.5, "a_max": 0.7})
    made["smooth_l1_scalar"] = Case("smooth_l1", [m.real(3, 4)], {"scalar": 2.0})
    made["quadratic"] = Case("_contrib_quadratic", [m.real(3, 4)], {"a": 2, "b": -1, "c": 0.5})
    made["cast"] = Case("Cast", [m.real(3, 4) * 4], {"dtype": "int32"})
    made["amp_cast"] = Case("amp_cast", [m.real(3, 4)], {"dtype": "float16"})
    made["amp_multicast"] = Case("amp_multicast", [m.real(3, 4), m.real(3, 4).astype("float16")], {"num_outputs": 2}, 2)
    made["where"] = Case("where", [m.few(3, 4), m.real(3, 4), m.real(3, 4)])
    made["where_rows"] = Case("where", [m.few(3), m.real(3, 4), m.real(3, 4)])
    made["logistic"] = Case("LogisticRegressionOutput", [m.real(3, 4), m.real(3, 4)])
    made["linear"] = Case("LinearRegressionOutput", [m.real(3, 4), m.real(3, 4)])
    made["mae"] = Case("MAERegressionOutput", [m.real(3, 4), m.real(3, 4)])


def activations(made: dict[str, Case]) -> None:
    m = Maker("activations")
    for kind in ("relu", "sigmoid", "tanh", "softrelu", "softsign"):
        made[f"Activation_{kind}"] = Case("Activation", [m.real(2, 5)], {"act_type": kind})
    for kind in ("leaky", "elu", "selu", "gelu", "rrelu"):
        made[f"LeakyReLU_{kind}"] = Case("LeakyReLU", [m.real(2, 5)], {"act_type": kind, "slope": 0.3})
    made["LeakyReLU_default"] = Case("LeakyReLU", [m.real(2, 5)])
    made["LeakyReLU_prelu"] = Case("LeakyReLU", [m.real(2, 5, 3, 2), m.positive(5)], {"act_type": "prelu"})
    made["LeakyReLU_prelu_2"] = Case("LeakyReLU", [m.real(2, 5), m.positive(5)], {"act_type": "prelu"})
    made["LeakyReLU_prelu_one"] = Case("LeakyReLU", [m.real(2, 5, 3), m.positive(1)], {"act_type": "prelu"})
    made["hard_sigmoid_of"] = Case("hard_sigmoid", [m.real(2, 5) * 3], {"alpha": 0.3, "beta": 0.4})
    for kind in ("softmax", "log_softmax", "softmin"):
        made[f"{kind}_axis"] = Case(kind, [m.real(2, 5, 3)], {"axis": 1, "temperature": 2.0})
        made[f"{kind}_last"] = Case(kind, [m.real(2, 5, 3)])
    made["softmax_length"] = Case("softmax", [m.real(2, 5, 3), m.whole(1, 6, 2, 3).astype("int32")], {"axis": 1, "use_length": True})
    made["softmax_half"] = Case("softmax", [m.real(2, 5).astype("float16")], {"dtype": "float32"}, close=1e-3)
    made["SoftmaxOutput"] = Case("SoftmaxOutput", [m.real(2, 5), m.whole(0, 5, 2)])
    made["SoftmaxOutput_multi"] = Case("SoftmaxOutput", [m.real(2, 5, 3), m.whole(0, 5, 2, 3)], {"multi_output": True})
    made["SoftmaxOutput_all"] = Case("SoftmaxOutput", [m.real(2, 5, 3), m.whole(0, 5, 2, 5)])
    made["SoftmaxOutput_preserve"] = Case("SoftmaxOutput", [m.real(2, 5, 3), m.whole(0, 5, 2, 5)], {"preserve_shape": True})
    made["SoftmaxActivation"] = Case("SoftmaxActivation", [m.real(2, 5, 3)])
    made["SoftmaxActivation_channel"] = Case("SoftmaxActivation", [m.real(2, 5, 3)], {"mode": "channel"})


def convolutions(made: dict[str, Case]) -> None:
    m = Maker("convolutions")
    conv = {"kernel": (3, 2), "num_filter": 4}
    made["conv"] = Case("Convolution", [m.real(2, 4, 6, 5), m.real(4, 4, 3, 2), m.real(4)], conv)
    more = {**conv, "num_group": 2, "stride": (2, 1), "pad": (1, 2), "dilate": (1, 2), "no_bias": True}
    made["conv_group"] = Case("Convolution", [m.real(2, 4, 6, 5), m.real(4, 2, 3, 2)], more)
    made["conv_1d"] = Case(
        "Convolution",
        [m.real(2, 3, 8), m.real(4, 3, 3), m.real(4)],
        {"kernel": (3,), "num_filter": 4, "stride": (2,)},
    )
    three = {"kernel": (2, 2, 2), "num_filter": 3, "pad": (1, 0, 1)}
    made["conv_3d"] = Case("Convolution", [m.real(1, 2, 3, 4, 4), m.real(3, 2, 2, 2, 2), m.real(3)], three)
    made["deconv"] = Case("Deconvolution", [m.real(1, 3, 4, 3), m.real(3, 2, 3, 3)], {"kernel": (3, 3), "num_filter": 2})
    more = {"kernel": (3, 3), "num_filter": 4, "num_group": 2, "stride": (2, 2), "pad": (1, 1), "adj": (1, 0), "no_bias": False}
    made["deconv_group"] = Case("Deconvolution", [m.real(1, 4, 4, 3), m.real(4, 2, 3, 3), m.real(4)], more)
    more = {"kernel": (4, 4), "num_filter": 2, "stride": (2, 2), "dilate": (1, 1), "target_shape": (7, 6)}
    made["deconv_target"] = Case("Deconvolution", [m.real(1, 3, 4, 3), m.real(3, 2, 4, 4)], more)
    made["deconv_dilate"] = Case(
        "Deconvolution",
        [m.real(1, 3, 4, 3), m.real(3, 2, 2, 2)],
        {"kernel": (2, 2), "num_filter": 2, "dilate": (2, 2)},
    )
    made["deconv_1d"] = Case(
        "Deconvolution",
        [m.real(1, 3, 4), m.real(3, 2, 3)],
        {"kernel": (3,), "num_filter": 2, "stride": (2,), "pad": (1,)},
    )
    made["dense"] = Case("FullyConnected", [m.real(2, 3, 4), m.real(5, 12), m.real(5)], {"num_hidden": 5})
    made["dense_rows"] = Case("FullyConnected", [m.real(2, 3, 4), m.real(5, 4)], {"num_hidden": 5, "flatten": False, "no_bias": True})
    made["dot"] = Case("dot", [m.real(3, 4), m.real(4, 2)])
    made["dot_turned"] = Case("dot", [m.real(4, 3), m.real(2, 4)], {"transpose_a": True, "transpose_b": True})
    made["dot_vectors"] = Case("dot", [m.real(4), m.real(4)])
    made["dot_many"] = Case("dot", [m.real(2, 3, 4), m.real(4, 2, 3)])
    made["dot_many_turned"] = Case("dot", [m.real(4, 2, 3), m.real(2, 3, 4)], {"transpose_a": True, "transpose_b": True})
    made["batch_dot"] = Case("batch_dot", [m.real(2, 3, 4), m.real(2, 4, 5)])
    made["batch_dot_turned"] = Case("batch_dot", [m.real(2, 4, 3), m.real(2, 5, 4)], {"transpose_a": True, "transpose_b": True})
    made["gemm2"] = Case("_linalg_gemm2", [m.real(2, 3, 4), m.real(2, 5, 4)], {"transpose_b": True, "alpha": 0.5})
    made["gemm"] = Case("_linalg_gemm", [m.real(3, 4), m.real(4, 2), m.real(3, 2)], {"alpha": 2.0, "beta": 0.5})
    made["syrk"] = Case("_linalg_syrk", [m.real(2, 3, 4)], {"alpha": 2.0})
    made["syrk_turned"] = Case("_linalg_syrk", [m.real(2, 3, 4)], {"transpose": True})
    made["upsampling"] = Case("UpSampling", [m.real(1, 2, 3, 2)], {"scale": 3, "sample_type": "nearest", "num_args": 1})
    two = [m.real(1, 2, 4, 4), m.real(1, 3, 2, 2)]
    made["upsampling_concat"] = Case("UpSampling", two, {"scale": 2, "sample_type": "nearest", "num_args": 2})
    two = [m.real(1, 2, 4, 4), m.real(1, 2, 2, 2)]
    more = {"scale": 2, "sample_type": "nearest", "num_args": 2, "multi_input_mode": "sum"}
    made["upsampling_sum"] = Case("UpSampling", two, more)
    for scale in (2, 3):
        size = 2 * scale - scale % 2
        more = {"scale": scale, "sample_type": "bilinear", "num_filter": 2, "num_args": 2}
        made[f"upsampling_lines_{scale}"] = Case("UpSampling", [m.real(1, 2, 3, 4), m.real(2, 1, size, size)], more)
    more = {"kernel": (3, 3), "num_filter": 4, "pad": (1, 1)}
    masked = [m.real(1, 4, 6, 5), m.unit(1, 18, 2, 2) * 2, m.unit(1, 9, 2, 2), m.real(2, 2, 3, 3)]
    own = {"kernel": (3, 3), "num_filter": 2, "num_group": 2, "stride": (2, 2), "no_bias": True}
    made["modulated"] = Case("_contrib_ModulatedDeformableConvolution", masked, own)
    made["deformable"] = Case(
        "_contrib_DeformableConvolution",
        [m.real(1, 4, 5, 5), m.unit(1, 18, 5, 5), m.real(4, 4, 3, 3), m.real(4)],
        more,
    )


def pools(made: dict[str, Case]) -> None:
    m = Maker("pools")
    for kind in ("max", "avg", "sum", "lp"):
        more = {"p_value": 2} if kind == "lp" else {}
        own = {"pool_type": kind, **more}
        made[f"pool_{kind}"] = Case("Pooling", [m.real(1, 2, 7, 6)], {"kernel": (3, 2), "stride": (2, 2), **own})
        full = {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pooling_convention": "full"}
        made[f"pool_{kind}_full"] = Case("Pooling", [m.real(1, 2, 6, 8)], {**full, **own})
        made[f"pool_{kind}_pad"] = Case("Pooling", [m.real(1, 2, 6, 8)], {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), **own})
        made[f"pool_{kind}_global"] = Case("Pooling", [m.real(1, 2, 6, 8)], {"global_pool": True, "kernel": (1, 1), **own})
        made[f"pool_{kind}_1d"] = Case("Pooling", [m.real(1, 2, 7)], {"kernel": (3,), "stride": (2,), **own})
        made[f"pool_{kind}_3d"] = Case("Pooling", [m.real(1, 2, 4, 5, 4)], {"kernel": (2, 2, 2), "stride": (2, 2, 2), **own})
    made["pool_avg_own"] = Case(
        "Pooling",
        [m.real(1, 2, 6, 8)],
        {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1), "pool_type": "avg", "count_include_pad": False},
    )
    full = {
        "kernel": (3, 3),
        "stride": (2, 2),
        "pad": (1, 1),
        "pooling_convention": "full",
        "pool_type": "avg",
        "count_include_pad": False,
    }
    made["pool_avg_own_full"] = Case("Pooling", [m.real(1, 2, 6, 8)], full)
    full = {"kernel": (2, 2), "stride": (3, 3), "pooling_convention": "full", "pool_type": "avg"}
    made["pool_avg_full_far"] = Case("Pooling", [m.real(1, 2, 6, 7)], full)
    made["pool_lp1"] = Case("Pooling", [m.real(1, 2, 6, 8)], {"kernel": (2, 2), "pool_type": "lp", "p_value": 1})
    made["pool_lp3"] = Case("Pooling", [m.real(1, 2, 6, 8)], {"kernel": (2, 2), "pool_type": "lp", "p_value": 3})
    made["adaptive"] = Case("_contrib_AdaptiveAvgPooling2D", [m.real(1, 2, 7, 6)], {"output_size": (3, 4)})
    made["adaptive_one"] = Case("_contrib_AdaptiveAvgPooling2D", [m.real(1, 2, 7, 6)], {"output_size": 2})
    made["adaptive_all"] = Case("_contrib_AdaptiveAvgPooling2D", [m.real(1, 2, 7, 6)])


def norms(made: dict[str, Case]) -> None:
    m = Maker("norms")

    def states(c: int) -> list[np.ndarray]:
        return [m.positive(c), m.real(c), m.real(c), m.positive(c)]

    made["batch_norm"] = Case("BatchNorm", [m.real(2, 3, 4, 2), *states(3)])
    made["batch_norm_gamma"] = Case("BatchNorm", [m.real(2, 3, 4), *states(3)], {"fix_gamma": False, "eps": 1e-5})
    made["batch_norm_last"] = Case(
        "BatchNorm",
        [m.real(2, 3, 4), *states(4)],
        {"fix_gamma": False, "axis": -1, "use_global_stats": True},
    )
    made["layer_norm"] = Case("LayerNorm", [m.real(2, 3, 4), m.positive(4), m.real(4)])
    made["layer_norm_axis"] = Case("LayerNorm", [m.real(2, 3, 4), m.positive(3), m.real(3)], {"axis": 1, "eps": 1e-3})
    made["instance_norm"] = Case("InstanceNorm", [m.real(2, 3, 4, 2), m.positive(3), m.real(3)])
    made["group_norm"] = Case("GroupNorm", [m.real(2, 6, 4), m.positive(3), m.real(3)], {"num_groups": 3})
    made["lrn"] = Case("LRN", [m.real(2, 6, 3, 2)], {"nsize": 3})
    made["lrn_more"] = Case("LRN", [m.real(2, 6, 3, 2)], {"nsize": 5, "alpha": 0.1, "beta": 0.5, "knorm": 1.0})
    for mode in ("instance", "channel", "spatial"):
        made[f"l2_{mode}"] = Case("L2Normalization", [m.real(2, 3, 4, 2)], {"mode": mode})


def reductions(made: dict[str, Case]) -> None:
    m = Maker("reductions")
    for name in ("sum", "mean", "prod", "max", "min", "nansum", "nanprod"):
        made[name] = Case(name, [m.real(2, 3, 4)])
        made[f"{name}_axes"] = Case(name, [m.real(2, 3, 4)], {"axis": (0, -1)})
        made[f"{name}_keep"] = Case(name, [m.real(2, 3, 4)], {"axis": 1, "keepdims": True})
        made[f"{name}_but"] = Case(name, [m.real(2, 3, 4)], {"axis": 1, "exclude": True})
    holes = m.real(2, 3, 4)
    holes[0, 1] = np.nan
    made["nansum_holes"] = Case("nansum", [holes], {"axis": 2})
    made["norm"] = Case("norm", [m.real(2, 3, 4)])
    made["norm_1"] = Case("norm", [m.real(2, 3, 4)], {"ord": 1, "axis": (0, 1), "keepdims": True})
    made["norm_2"] = Case("norm", [m.real(2, 3, 4)], {"ord": 2, "axis": 2})
    for name in ("argmax", "argmin"):
        made[name] = Case(name, [m.different(2, 3, 4)])
        made[f"{name}_axis"] = Case(name, [m.few(2, 3, 4)], {"axis": -1})
        made[f"{name}_keep"] = Case(name, [m.different(2, 3, 4)], {"axis": 1, "keepdims": True})
    made["argmax_channel"] = Case("argmax_channel", [m.different(3, 4)])
    made["moments"] = Case("moments", [m.real(2, 3, 4)], {"axes": (0, 2)}, 2)
    made["cumsum"] = Case("_np_cumsum", [m.real(2, 3, 4)], {"axis": 1})
    made["cumsum_all"] = Case("_np_cumsum", [m.real(2, 3)])
    made["cross_entropy"] = Case("softmax_cross_entropy", [m.real(3, 4), m.whole(0, 4, 3)])


def shapes(made: dict[str, Case]) -> None:
    m = Maker("shapes")
    for number, (shape, attributes) in enumerate(
        (
            ((2, 3, 4), {"shape": (4, -1)}),
            ((2, 3, 4), {"shape": (0, -1)}),
            ((2, 3, 4), {"shape": (-2, 1, 1)}),
            ((2, 3, 4, 5), {"shape": (-3, -3)}),
            ((2, 3, 4), {"shape": (0, -3)}),
            ((2, 6, 4), {"shape": (0, -4, 2, -1, -2)}),
            ((2, 3, 4), {"shape": (-4, 1, 2, -2)}),
            ((10, 5, 4), {"shape": (-1, 0), "reverse": True}),
            ((2, 3, 4), {"shape": (6, 4)}),
            ((8, 3, 3, 4, 4), {"shape": (-4, -1, 2, 0, 0, -3), "reverse": False}),
            ((2, 3, 4), {"shape": -1}),
            ((2, 3, 12), {"shape": (0, 0, -4, 3, -1), "reverse": True}),
            ((2, 3, 4), {"target_shape": (2, 0)}),
            ((2, 3, 4), {"target_shape": (5, 0), "keep_highest": True}),
        )
    ):
        made[f"reshape_{number}"] = Case("Reshape", [m.real(*shape)], attributes)
    made["npx_reshape"] = Case("_npx_reshape", [m.real(2, 3, 4)], {"newshape": (-2, -5)})
    made["flatten"] = Case("Flatten", [m.real(2, 3, 4)])
    made["expand_dims"] = Case("expand_dims", [m.real(2, 3)], {"axis": -1})
    made["squeeze"] = Case("squeeze", [m.real(2, 1, 3, 1)])
    made["squeeze_axis"] = Case("squeeze", [m.real(2, 1, 3, 1)], {"axis": (1,)})
    made["transpose"] = Case("transpose", [m.real(2, 3, 4)])
    made["transpose_axes"] = Case("transpose", [m.real(2, 3, 4)], {"axes": (1, 2, 0)})
    made["swap"] = Case("SwapAxis", [m.real(2, 3, 4)], {"dim1": 0, "dim2": 2})
    made["broadcast_to"] = Case("broadcast_to", [m.real(1, 3, 1)], {"shape": (2, 0, 4)})
    made["broadcast_axis"] = Case("broadcast_axis", [m.real(1, 3, 1)], {"axis": (0, 2), "size": (2, 4)})
    made["broadcast_like"] = Case("broadcast_like", [m.real(1, 3, 1), m.real(2, 3, 4)])
    made["broadcast_like_axes"] = Case("broadcast_like", [m.real(1, 3, 1), m.real(5, 4)], {"lhs_axes": (0, 2), "rhs_axes": (0, 1)})
    made["reshape_like"] = Case("reshape_like", [m.real(2, 6), m.real(3, 4)])
    made["reshape_like_part"] = Case(
        "reshape_like",
        [m.real(30, 7), m.real(15, 2, 4)],
        {"lhs_begin": 0, "lhs_end": 1, "rhs_begin": 0, "rhs_end": 2},
    )
    made["tile"] = Case("tile", [m.real(2, 3)], {"reps": (2, 1, 2)})
    made["repeat"] = Case("repeat", [m.real(2, 3)], {"repeats": 2, "axis": 1})
    made["repeat_all"] = Case("repeat", [m.real(2, 3)], {"repeats": 2})
    made["reverse"] = Case("reverse", [m.real(2, 3, 4)], {"axis": (0, 2)})
    made["concat"] = Case("Concat", [m.real(2, 3), m.real(2, 1)], {"num_args": 2})
    made["concat_0"] = Case("Concat", [m.real(2, 3), m.real(1, 3)], {"num_args": 2, "dim": 0})
    made["stack"] = Case("stack", [m.real(2, 3), m.real(2, 3)], {"num_args": 2, "axis": 1})
    made["split"] = Case("SliceChannel", [m.real(2, 4)], {"num_outputs": 2}, 2)
    made["split_squeeze"] = Case("SliceChannel", [m.real(2, 3, 4)], {"num_outputs": 3, "axis": 1, "squeeze_axis": True}, 3)
    made["split_v2"] = Case("_split_v2", [m.real(6, 2)], {"indices": (0, 1, 4), "axis": 0, "sections": 0}, 3)
    made["split_v2_sections"] = Case("_split_v2", [m.real(6, 2)], {"indices": (), "axis": 0, "sections": 3}, 3)
    for mode in ("constant", "edge", "reflect"):
        made[f"pad_{mode}"] = Case(
            "Pad",
            [m.real(1, 2, 3, 4)],
            {"mode": mode, "pad_width": (0, 0, 0, 0, 1, 2, 2, 1), "constant_value": 0.5},
        )
    made["depth_to_space"] = Case("depth_to_space", [m.real(1, 8, 2, 3)], {"block_size": 2})
    made["space_to_depth"] = Case("space_to_depth", [m.real(1, 2, 4, 6)], {"block_size": 2})
    made["diag"] = Case("diag", [m.real(3, 4)])
    made["diag_up"] = Case("diag", [m.real(3, 4)], {"k": 1})
    made["diag_down"] = Case("diag", [m.real(2, 3, 4)], {"k": -1, "axis1": 1, "axis2": 2})
    made["diag_vector"] = Case("diag", [m.real(3)], {"k": -1})
    made["slice"] = Case("slice", [m.real(4, 5, 3)], {"begin": (1, None), "end": (3, -1)})
    made["slice_back"] = Case("slice", [m.real(4, 5)], {"begin": (None, -1), "end": (None, 0), "step": (2, -2)})
    made["slice_back_all"] = Case("slice", [m.real(4, 5)], {"begin": (None, 3), "end": (None, None), "step": (-1, -1)})
    made["slice_axis"] = Case("slice_axis", [m.real(4, 5)], {"axis": -1, "begin": -3, "end": None})
    made["slice_like"] = Case("slice_like", [m.real(4, 5), m.real(2, 3)])
    made["slice_like_axes"] = Case("slice_like", [m.real(4, 5), m.real(2, 3)], {"axes": (-1,)})
    made["crop"] = Case("Crop", [m.real(1, 2, 5, 6)], {"num_args": 1, "h_w": (2, 3), "offset": (1, 2)})
    made["crop_like"] = Case("Crop", [m.real(1, 2, 5, 6), m.real(1, 1, 2, 3)], {"num_args": 2, "center_crop": True})


def creations(made: dict[str, Case]) -> None:
    m = Maker("creations")
    made["zeros"] = Case("_zeros", [], {"shape": (2, 3), "dtype": "int32"})
    made["ones"] = Case("_ones", [], {"shape": (2, 3)})
    made["full"] = Case("_full", [], {"shape": (2, 3), "value": 1.5})
    made["arange"] = Case("_arange", [], {"start": 1, "stop": 5, "step": 1.5, "repeat": 2})
    made["arange_one"] = Case("_arange", [], {"start": 4})
    made["linspace"] = Case("_linspace", [], {"start": 1, "stop": 5, "num": 4})
    made["linspace_open"] = Case("_linspace", [], {"start": 1, "stop": 5, "num": 4, "endpoint": False})
    made["eye"] = Case("_eye", [], {"N": 3, "M": 4, "k": 1})
    made["arange_like"] = Case("_contrib_arange_like", [m.real(2, 3)], {"start": 1, "step": 0.5})
    made["arange_like_axis"] = Case("_contrib_arange_like", [m.real(2, 3)], {"axis": -1})
    made["one_hot"] = Case("one_hot", [m.whole(-1, 5, 2, 3)], {"depth": 4, "on_value": 2.0, "off_value": -1.0})
    made["take"] = Case("take", [m.real(4, 3), m.whole(-2, 6, 2, 2)])
    made["take_wrap"] = Case("take", [m.real(4, 3), m.whole(-5, 6, 2)], {"axis": 1, "mode": "wrap"})
    made["embedding"] = Case("Embedding", [m.whole(0, 4, 2, 3), m.real(4, 5)], {"input_dim": 4, "output_dim": 5})
    made["batch_take"] = Case("batch_take", [m.real(3, 4), m.whole(0, 4, 3).astype("int32")])
    made["pick"] = Case("pick", [m.real(3, 4), m.whole(-1, 5, 3)])
    made["pick_axis"] = Case("pick", [m.real(3, 4), m.whole(0, 3, 4)], {"axis": 0, "keepdims": True})
    made["pick_wrap"] = Case("pick", [m.real(3, 4), m.whole(-3, 7, 3)], {"mode": "wrap"})
    made["gather_nd"] = Case("gather_nd", [m.real(3, 4, 2), m.whole(0, 3, 2, 5)])
    made["scatter_nd"] = Case("scatter_nd", [m.real(3), np.float32([[0, 1, 2], [1, 0, 2]])], {"shape": (3, 4)})
    made["sort"] = Case("sort", [m.real(2, 5)])
    made["sort_down"] = Case("sort", [m.real(4, 3)], {"axis": 0, "is_ascend": False})
    made["argsort"] = Case("argsort", [m.different(2, 5)])
    made["argsort_down"] = Case("argsort", [m.different(4, 3)], {"axis": 0, "is_ascend": False, "dtype": "int32"})
    made["topk"] = Case("topk", [m.different(2, 6)], {"k": 3})
    made["topk_both"] = Case("topk", [m.different(4, 3)], {"k": 2, "axis": 0, "ret_typ": "both", "is_ascend": True}, 2)
    made["topk_value"] = Case("topk", [m.different(2, 6)], {"k": 2, "ret_typ": "value"})
    made["topk_mask"] = Case("topk", [m.different(2, 6)], {"k": 2, "ret_typ": "mask"})
    made["unravel"] = Case("_unravel_index", [m.whole(0, 24, 4)], {"shape": (2, 3, 4)})
    made["ravel"] = Case("_ravel_multi_index", [m.whole(0, 2, 3, 4)], {"shape": (2, 3, 4)})


def sequences(made: dict[str, Case]) -> None:
    m = Maker("sequences")
    gates = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
    for number, (mode, layers, both, states) in enumerate(RECURRENT):
        ways, hidden, width, steps, batch = 2 if both else 1, 3, 4, 5, 2
        rows = gates[mode] * hidden
        count = sum(ways * rows * ((width if i == 0 else hidden * ways) + hidden + 2) for i in range(layers))
        first = [m.unit(layers * ways, batch, hidden) for _ in range(2 if mode == "lstm" else 1)]
        attributes = {"mode": mode, "num_layers": layers, "state_size": hidden, "bidirectional": both, "state_outputs": states}
        outputs = (3 if mode == "lstm" else 2) if states else 1
        made[f"rnn_{number}"] = Case("RNN", [m.real(steps, batch, width), m.unit(count), *first], attributes, outputs)
    long = [m.real(40, 2, 3), m.unit(4 * 2 * (3 + 2 + 2)), m.unit(1, 2, 2), m.unit(1, 2, 2)]
    made["rnn_long"] = Case("RNN", long, {"mode": "lstm", "num_layers": 1, "state_size": 2})
    for name in ("SequenceMask", "SequenceReverse", "SequenceLast"):
        more = {"value": -1.0} if name == "SequenceMask" else {}
        made[name] = Case(name, [m.real(4, 3, 2)])
        made[f"{name}_lengths"] = Case(name, [m.real(4, 3, 2), np.float32([1, 4, 2])], {"use_sequence_length": True, **more})
    made["SequenceMask_axis"] = Case(
        "SequenceMask",
        [m.real(3, 4, 2), np.float32([1, 4, 2])],
        {"use_sequence_length": True, "axis": 1},
    )
    made["SequenceLast_axis"] = Case(
        "SequenceLast",
        [m.real(3, 4, 2), np.float32([1, 4, 2])],
        {"use_sequence_length": True, "axis": 1},
    )


def attentions(made: dict[str, Case]) -> None:
    m = Maker("attentions")
    heads = {"heads": 2}
    made["self_scores"] = Case("_contrib_interleaved_matmul_selfatt_qk", [m.real(3, 2, 24)], heads)
    made["self_values"] = Case("_contrib_interleaved_matmul_selfatt_valatt", [m.real(3, 2, 24), m.real(4, 3, 3)], heads)
    made["cross_scores"] = Case("_contrib_interleaved_matmul_encdec_qk", [m.real(3, 2, 8), m.real(5, 2, 16)], heads)
    made["cross_values"] = Case("_contrib_interleaved_matmul_encdec_valatt", [m.real(5, 2, 16), m.real(4, 3, 5)], heads)


def detections(made: dict[str, Case]) -> None:
    m = Maker("detections")
    made["prior"] = Case("_contrib_MultiBoxPrior", [m.real(1, 3, 4, 5)], {"sizes": (0.4, 0.2), "ratios": (1, 2, 0.5)})
    made["prior_clip"] = Case(
        "_contrib_MultiBoxPrior",
        [m.real(1, 3, 4, 5)],
        {"sizes": (0.9,), "clip": True, "steps": (0.3, 0.2), "offsets": (0.4, 0.6)},
    )
    scores = np.exp(m.real(2, 4, 8))
    scores /= scores.sum(1, keepdims=True)
    anchors = m.boxes(1, 8)
    made["detect"] = Case("_contrib_MultiBoxDetection", [scores, m.unit(2, 32), anchors], {"nms_threshold": 0.3, "threshold": 0.3})
    more = {"nms_threshold": 0.2, "force_suppress": True, "clip": False, "variances": (0.2, 0.2, 0.1, 0.1)}
    made["detect_force"] = Case("_contrib_MultiBoxDetection", [scores, m.unit(2, 32), anchors], more, live=True)
    more = {"nms_threshold": 0.2, "nms_topk": 5}
    made["detect_topk"] = Case("_contrib_MultiBoxDetection", [scores, m.unit(2, 32), anchors], more, live=True)
    for name, more in (
        ("nms", {}),
        ("nms_id", {"id_index": 0}),
        ("nms_force", {"id_index": 0, "force_suppress": True}),
        ("nms_topk", {"topk": 4}),
        ("nms_center", {"in_format": "center", "out_format": "corner"}),
        ("nms_to_center", {"out_format": "center"}),
        ("nms_background", {"id_index": 0, "background_id": 1}),
    ):
        columns = [m.whole(0, 3, 2, 10, 1), m.different(2, 10, 1) + 0.4, m.boxes(2, 10)]
        attributes = {"overlap_thresh": 0.1, "valid_thresh": 0.05, "coord_start": 2, "score_index": 1, **more}
        made[name] = Case("_contrib_box_nms", [np.concatenate(columns, -1)], attributes)
    made["box_iou"] = Case("_contrib_box_iou", [m.boxes(2, 3), m.boxes(4)])
    made["box_iou_center"] = Case("_contrib_box_iou", [m.boxes(3), m.boxes(4)], {"format": "center"})
    made["box_decode"] = Case(
        "_contrib_box_decode",
        [m.unit(2, 5, 4), m.boxes(1, 5)],
        {"std0": 0.1, "std1": 0.1, "std2": 0.2, "std3": 0.2},
    )
    made["box_decode_corner"] = Case("_contrib_box_decode", [m.unit(2, 5, 4), m.boxes(1, 5)], {"format": "corner", "clip": 0.3})
    rois = np.concatenate([m.whole(0, 2, 4, 1), m.boxes(4) * 16], 1)
    made["roi_pooling"] = Case("ROIPooling", [m.real(2, 3, 8, 8), rois], {"pooled_size": (2, 3), "spatial_scale": 0.5})
    made["roi_align"] = Case(
        "_contrib_ROIAlign",
        [m.real(2, 3, 8, 8), rois],
        {"pooled_size": (2, 3), "spatial_scale": 0.5, "sample_ratio": 2},
    )
    made["roi_align_free"] = Case("_contrib_ROIAlign", [m.real(2, 3, 8, 8), rois], {"pooled_size": (2, 3), "spatial_scale": 0.5})
    made["roi_align_half"] = Case(
        "_contrib_ROIAlign",
        [m.real(2, 3, 8, 8), rois],
        {"pooled_size": (2, 2), "spatial_scale": 0.5, "aligned": True, "sample_ratio": 2},
    )
    info = np.float32([[64, 80, 1.0]])
    more = {
        "scales": (2, 4),
        "ratios": (0.5, 1),
        "feature_stride": 16,
        "rpn_pre_nms_top_n": 20,
        "rpn_post_nms_top_n": 6,
        "rpn_min_size": 4,
    }
    made["proposal"] = Case("_contrib_Proposal", [m.different(1, 8, 4, 5) + 0.5, m.unit(1, 16, 4, 5) * 0.3, info], more)
    made["multi_proposal"] = Case(
        "_contrib_MultiProposal",
        [m.different(2, 8, 4, 5) + 0.5, m.unit(2, 16, 4, 5) * 0.3, np.repeat(info, 2, 0)],
        more,
    )
    made["resize"] = Case("_contrib_BilinearResize2D", [m.real(1, 2, 3, 4)], {"height": 5, "width": 7})
    made["resize_half"] = Case("_contrib_BilinearResize2D", [m.real(1, 2, 3, 4)], {"height": 6, "width": 6, "align_corners": False})
    made["resize_scale"] = Case("_contrib_BilinearResize2D", [m.real(1, 2, 4, 4)], {"scale_height": 1.5, "scale_width": 0.5})
    made["resize_odd"] = Case(
        "_contrib_BilinearResize2D",
        [m.real(1, 2, 5, 4)],
        {"scale_height": 2, "scale_width": 2, "mode": "odd_scale"},
    )
    made["resize_like"] = Case("_contrib_BilinearResize2D", [m.real(1, 2, 5, 4), m.real(1, 1, 3, 6)], {"mode": "like"})
    for mode in ("to_even_down", "to_even_up", "to_odd_down", "to_odd_up"):
        made[f"resize_{mode}"] = Case("_contrib_BilinearResize2D", [m.real(1, 1, 5, 4)], {"mode": mode})
    theta = np.float32([[0.8, 0.2, 0.1, -0.1, 0.9, 0.05]])
    made["grid"] = Case("GridGenerator", [theta], {"transform_type": "affine", "target_shape": (3, 4)})
    made["grid_warp"] = Case("GridGenerator", [m.unit(1, 2, 3, 4)], {"transform_type": "warp"})
    made["sampler"] = Case("BilinearSampler", [m.real(1, 2, 4, 5), m.unit(1, 2, 3, 4) * 1.3])
    made["transformer"] = Case(
        "SpatialTransformer",
        [m.real(1, 2, 4, 5), theta],
        {"target_shape": (3, 4), "transform_type": "affine", "sampler_type": "bilinear"},
    )
    made["correlation"] = Case(
        "Correlation",
        [m.real(1, 2, 5, 5), m.real(1, 2, 5, 5)],
        {"kernel_size": 1, "max_displacement": 2, "stride1": 1, "stride2": 1, "pad_size": 2},
    )
    made["correlation_3"] = Case(
        "Correlation",
        [m.real(1, 2, 6, 6), m.real(1, 2, 6, 6)],
        {"kernel_size": 3, "max_displacement": 1, "stride1": 2, "stride2": 1, "pad_size": 2, "is_multiply": False},
    )


FAMILIES = (elementwise, activations, convolutions, pools, norms, reductions, shapes, creations, sequences, attentions, detections)


def cases() -> dict[str, Case]:
    """All cases by name."""
    made: dict[str, Case] = {}
    for family in FAMILIES:
        family(made)
    return made
