"""TensorFlow's functions that Keras 2 keeps as layers (`TFOpLambda`), by the operations of Keras 3 that they equal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relaylang.frontends.common import Malformed, Rule, Unsupported
from relaylang.frontends.keras.node import Node
from relaylang.frontends.keras.spec import Spec

#: A function -> the operation, and its operands in the words of the function.
_X, _XY = ("x",), ("x", "y")
_FUNCTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    **{f"math.{name}": (op, _XY) for name, op in (
        ("add", "Add"), ("subtract", "Subtract"), ("multiply", "Multiply"), ("divide", "Divide"), ("truediv", "TrueDivide"),
        ("floordiv", "FloorDivide"), ("mod", "Mod"), ("pow", "Power"), ("maximum", "Maximum"), ("minimum", "Minimum"),
        ("equal", "Equal"), ("not_equal", "NotEqual"), ("greater", "Greater"), ("greater_equal", "GreaterEqual"),
        ("less", "Less"), ("less_equal", "LessEqual"), ("logical_and", "LogicalAnd"), ("logical_or", "LogicalOr"),
    )},
    **{f"__operators__.{name}": (op, _XY) for name, op in (("add", "Add"), ("multiply", "Multiply"), ("eq", "Equal"), ("ne",
        "NotEqual"))},
    **{f"math.{name}": (op, _X) for name, op in (
        ("abs", "Absolute"), ("negative", "Negative"), ("exp", "Exp"), ("log", "Log"), ("log1p", "Log1p"), ("expm1", "Expm1"),
        ("sqrt", "Sqrt"), ("rsqrt", "Rsqrt"), ("square", "Square"), ("sin", "Sin"), ("cos", "Cos"), ("tanh", "Tanh"),
        ("sigmoid", "Sigmoid"), ("softplus", "Softplus"), ("floor", "Floor"), ("ceil", "Ceil"), ("round", "Round"),
        ("sign", "Sign"), ("erf", "Erf"), ("reciprocal", "Reciprocal"), ("logical_not", "LogicalNot"),
    )},
    **{f"nn.{name}": (op, ("features",)) for name, op in (
        ("relu", "Relu"), ("relu6", "Relu6"), ("selu", "Selu"), ("silu", "Silu"), ("swish", "Silu"), ("elu", "Elu"),
        ("softsign", "Softsign"), ("leaky_relu", "LeakyRelu"), ("gelu", "Gelu"),
    )},
    "nn.sigmoid": ("Sigmoid", _X), "nn.tanh": ("Tanh", _X), "nn.softmax": ("Softmax", ("logits",)),
    "nn.log_softmax": ("LogSoftmax", ("logits",)),
    **{f"math.reduce_{name}": (op, ("input_tensor",)) for name, op in (
        ("sum", "Sum"), ("mean", "Mean"), ("max", "Max"), ("min", "Min"), ("prod", "Prod"), ("any", "Any"), ("all", "All"),
        ("logsumexp", "Logsumexp"), ("variance", "Var"), ("std", "Std"),
    )},
    "math.argmax": ("Argmax", ("input",)), "math.argmin": ("Argmin", ("input",)),
    "linalg.matmul": ("Matmul", ("a", "b")),
    "reshape": ("Reshape", ("tensor",)), "transpose": ("Transpose", ("a",)), "expand_dims": ("ExpandDims", ("input",)),
    "compat.v1.transpose": ("Transpose", ("a",)), "squeeze": ("Squeeze", ("input",)), "compat.v1.squeeze": ("Squeeze",
        ("input",)),
    "concat": ("Concatenate", ("values",)), "stack": ("Stack", ("values",)), "split": ("Split", ("value",)),
    "unstack": ("Unstack", ("value",)), "tile": ("Tile", ("input",)), "cast": ("Cast", _X), "identity": ("Copy", ("input",)),
    "clip_by_value": ("Clip", ("t",)), "one_hot": ("OneHot", ("indices",)), "where": ("Where", ("condition", "x", "y")),
    "gather": ("Take", ("params", "indices")), "compat.v1.gather": ("Take", ("params", "indices")),
    "zeros_like": ("ZerosLike", ("input",)), "ones_like": ("OnesLike", ("input",)), "stop_gradient": ("StopGradient", ("input",)),
    "math.l2_normalize": ("Normalize", _X), "nn.l2_normalize": ("Normalize", _X), "reverse": ("Flip", ("tensor",)),
    "broadcast_to": ("BroadcastTo", ("input",)), "math.cumsum": ("Cumsum", _X), "sort": ("Sort", ("values",)),
    "image.resize": ("Resize", ("images",)), "math.top_k": ("TopK", ("input",)), "nn.top_k": ("TopK", ("input",)),
}  # fmt: skip
#: Arguments with another name in Keras 3, for all functions or for one.
_NAMES = {
    "shape": "newshape",
    "perm": "axes",
    "clip_value_min": "x_min",
    "clip_value_max": "x_max",
    "depth": "num_classes",
    "num_or_size_splits": "indices_or_sections",
    "multiples": "repeats",
    "alpha": "negative_slope",
    "method": "interpolation",
    "keep_dims": "keepdims",
}
_OF_FUNCTION = {("broadcast_to", "shape"): "shape", ("nn.elu", "alpha"): "alpha"}
#: What a function does without an argument, where the operation does otherwise.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "nn.gelu": {"approximate": False},
    "math.argmax": {"axis": 0},
    "math.argmin": {"axis": 0},
    "math.cumsum": {"axis": 0},
    "gather": {"axis": 0},
    "compat.v1.gather": {"axis": 0},
    "math.l2_normalize": {"epsilon": 1e-6},
    "nn.l2_normalize": {"epsilon": 1e-6},
    "squeeze": {"axis": None},
    "math.top_k": {"k": 1},
    "nn.top_k": {"k": 1},
}


def function(n: Node, *operands: Any) -> Any:
    """A function of TensorFlow by its name."""
    name = n.value("function")
    if name == "__operators__.getitem":
        return sliced(n, *operands)
    known = _FUNCTIONS.get(name) if isinstance(name, str) else None
    if known is None:
        raise Unsupported(f"its function is {str(name)[:60]}, which the importer does not have")
    operation, names = known
    arguments = {k: v for k, v in n.kwargs.items() if k not in ("name", "training", "mask")}
    if len(operands) > len(names):
        raise Malformed(f"its function {name} takes {len(names)} operands, and it gets {len(operands)}")
    values = [v for v in operands if v is not None]
    for key in names[len(values) :]:
        if key not in arguments:
            break
        values.append(n.argument(key))
        del arguments[key]
    config: dict[str, Any] = {"name": n.spec.name, "axis": None} if name.startswith("math.reduce_") else {"name": n.spec.name}
    config |= _DEFAULTS.get(name, {})
    for key, value in arguments.items():
        if key in names:
            continue
        to = _OF_FUNCTION.get((name, key), _NAMES.get(key, key))
        config[to] = value
    _adapted(name, config)
    spec = Spec(operation, n.spec.name, config, [], 3, True, n.spec.file, n.spec.depth)
    rule = n.importer.rules.find(operation, 1, "ops")
    assert rule is not None
    return rule.convert(Node(n.importer, spec, n.path, [], n.args, {}), *values)


def _adapted(name: str, config: dict[str, Any]) -> None:
    """Arguments that mean something else in Keras 3."""
    if name == "split" and isinstance(config.get("indices_or_sections"), list):
        sizes = config["indices_or_sections"]
        if not all(isinstance(s, int) and s >= 0 for s in sizes):
            raise Unsupported("the sizes of its parts are computed")
        config["indices_or_sections"] = [sum(sizes[: i + 1]) for i in range(len(sizes) - 1)]
    if name in ("math.l2_normalize", "nn.l2_normalize") and config.get("axis") is None:
        raise Unsupported("it has no axis")
    if name == "linalg.matmul" and any(v for k, v in config.items() if k.startswith(("transpose", "adjoint", "a_is", "b_is"))):
        raise Unsupported("it turns an operand around")
    if name in ("gather", "compat.v1.gather") and config.get("batch_dims"):
        raise Unsupported("it has batch axes")
    if isinstance(config.get("dtype"), Mapping):
        del config["dtype"]


def sliced(n: Node, *operands: Any) -> Any:
    """`x[...]`: the index is a list of numbers, slices and words."""
    if not operands:
        raise Malformed("it has no operand")
    key = n.kwargs.get("slice_spec")
    words = {"...": Ellipsis, "Ellipsis": Ellipsis, "tf.newaxis": None}
    parts = [words.get(k, k) if isinstance(k, str) else k for k in (key if isinstance(key, list) else [key])]
    rule = n.importer.rules.find("GetItem", 1, "ops")
    assert rule is not None
    return rule.convert(n, operands[0], parts)


RULES = (Rule("TFOpLambda", function), Rule("SlicingOpLambda", sliced))
