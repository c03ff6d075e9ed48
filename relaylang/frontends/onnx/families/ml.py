"""Classical models of ai.onnx.ml: preparation of features, linear models, support vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Malformed, Rule, Unsupported, nn
from relaylang.frontends.onnx.node import Node
from relaylang.frontends.onnx.texts import Texts, constant, equal, taken
from relaylang.ir import Expr

DOMAIN = "ai.onnx.ml"


def as_float(b: Builder, x: Expr) -> Expr:
    """Whole numbers and float64 as float32."""
    return b.cast(x, "float32")


# ---- features


def scaler(n: Node, x: Expr) -> Any:
    b = n.b
    shift, factor = (b.const(np.array(n.floats(name), "float32")) for name in ("offset", "scale"))
    return b.op("multiply", b.op("subtract", as_float(b, x), shift), factor)


def normalizer(n: Node, x: Expr) -> Any:
    """Each row divided by its norm. MAX is the largest element, not the largest magnitude."""
    b, kind = n.b, n.string("norm", "MAX")
    real = as_float(b, x)
    if kind == "MAX":
        norm = b.op("max", real, axis=[-1], keepdims=True)
    elif kind == "L1":
        norm = b.op("sum", b.op("abs", real), axis=[-1], keepdims=True)
    elif kind == "L2":
        norm = b.op("sqrt", b.op("sum", b.op("multiply", real, real), axis=[-1], keepdims=True))
    else:
        raise Unsupported(f"the norm {kind} is unknown")
    return b.op("where", b.op("equal", norm, 0.0), real, b.op("divide", real, norm))


def imputer(n: Node, x: Expr) -> Any:
    """A value that stands for a missing one is replaced, column by column."""
    b, dtype = n.b, n.b.dtype(x)
    if "float" in dtype:
        values, missing = n.floats("imputed_value_floats"), n.float("replaced_value_float", 0.0)
        is_missing = b.op("isnan", x) if math.isnan(missing) else b.op("equal", x, missing)
    else:
        values = [float(v) for v in n.ints("imputed_value_int64s")]
        is_missing = b.op("equal", x, n.int("replaced_value_int64", 0))
    return b.op("where", is_missing, b.const(np.array(values if len(values) > 1 else values[0]), dtype), x)


def feature_vectorizer(n: Node, *xs: Expr) -> Any:
    """All operands as one matrix of columns."""
    b = n.b
    parts = [as_float(b, b.unsqueeze(x, [1]) if b.rank(x) == 1 else x) for x in xs]
    return b.concat(parts, 1)


def one_hot_encoder(n: Node, x: Expr | Texts) -> Any:
    b = n.b
    texts = n.strings("cats_strings", []) if n.has("cats_strings") else []
    _same_kind(x, bool(texts), "categories")
    if isinstance(x, Texts):
        return b.cast(equal(b, Texts(b.unsqueeze(x.codes, [b.rank(x.codes) - 1])), constant(b, texts)), "float32")
    cats = b.const(np.array(n.ints("cats_int64s")), b.dtype(x))
    return b.cast(b.op("equal", b.unsqueeze(x, [b.rank(x)]), cats), "float32")


def _same_kind(x: Any, texts: bool, what: str) -> None:
    if isinstance(x, Texts) != texts:
        kinds = ("texts", "numbers") if texts else ("numbers", "texts")
        raise Malformed(f"its {what} are {kinds[0]}, and its operand has {kinds[1]}")


def label_encoder(n: Node, x: Expr | Texts) -> Any:
    """Each key becomes the value at its place, everything else the default."""
    keys, values = _table(n, "keys"), _table(n, "values")
    return _looked_up(n, x, keys, values, _default(n, values))


def category_mapper(n: Node, x: Expr | Texts) -> Any:
    """Texts become the numbers of their categories, or numbers the texts."""
    texts, numbers = n.strings("cats_strings"), np.array(n.ints("cats_int64s"), "int64")
    if isinstance(x, Texts):
        return _looked_up(n, x, texts, numbers, np.array(n.int("default_int64", -1), "int64"))
    return _looked_up(n, x, numbers, texts, [n.string("default_string", "_Unused")])


#: Numbers as an array, texts as a list.
_Labels = np.ndarray | list[Any]


def _looked_up(n: Node, x: Any, keys: _Labels, values: _Labels, other: _Labels) -> Any:
    b = n.b
    if len(keys) != len(values) or not len(keys):
        raise Malformed(f"it has {len(keys)} keys and {len(values)} values")
    _same_kind(x, isinstance(keys, list), "keys")
    if isinstance(keys, list):
        is_key = equal(b, Texts(b.unsqueeze(x.codes, [b.rank(x.codes) - 1])), constant(b, keys))
    else:
        wide = b.unsqueeze(x, [b.rank(x)])
        is_key = b.op("equal", wide, b.const(keys, b.dtype(x)))
        if keys.dtype.kind == "f" and np.isnan(keys).any():
            is_key = b.op("logical_or", is_key, b.op("logical_and", b.op("isnan", wide), b.const(np.isnan(keys))))
    place, known = b.op("argmax", b.cast(is_key, "int32"), axis=[-1]), b.op("any", is_key, axis=[-1])
    if isinstance(values, list):
        place = b.op("where", known, place, b.const(len(values), b.dtype(place)))
        return taken(b, constant(b, [*values, *other]), place)
    return b.op("where", known, b.op("take", b.const(values), place, axis=0, mode="clip"), b.const(other))


def _table(n: Node, kind: str) -> _Labels:
    """The keys or the values."""
    if n.has(f"{kind}_tensor"):
        return n.texts(f"{kind}_tensor") if n.holds_texts(f"{kind}_tensor") else n.tensor(f"{kind}_tensor").reshape(-1)
    if n.has(f"{kind}_strings"):
        return n.strings(f"{kind}_strings")
    if n.has(f"{kind}_int64s"):
        return np.array(n.ints(f"{kind}_int64s"), "int64")
    return np.array(n.floats(f"{kind}_floats"), "float32")


def _default(n: Node, values: _Labels) -> _Labels:
    if isinstance(values, list):
        stated = n.has("default_tensor")
        return n.texts("default_tensor")[:1] if stated else [n.string("default_string", "_Unused")]
    if n.has("default_tensor"):
        return n.tensor("default_tensor").reshape(()).astype(values.dtype)
    default = n.float("default_float", -0.0) if values.dtype.kind == "f" else n.int("default_int64", -1)
    return np.array(default, values.dtype)


# ---- results of models


def transformed(b: Builder, scores: Expr, kind: str) -> Expr:
    """Scores (rows, classes) through the function that `post_transform` names."""
    if kind == "NONE":
        return scores
    if kind == "LOGISTIC":
        return b.op("sigmoid", scores)
    if kind == "SOFTMAX":
        return b.op("nn.softmax", scores, axis=-1)
    if kind == "SOFTMAX_ZERO":  # classes with the score 0 have no part in it
        there = b.op("greater", b.op("abs", scores), 1e-7)
        powers = b.op("exp", b.op("subtract", scores, b.op("max", scores, axis=[-1], keepdims=True)))
        powers = b.op("where", there, powers, b.const(0.0, b.dtype(powers)))
        return b.op("divide", powers, b.op("sum", powers, axis=[-1], keepdims=True))
    if kind == "PROBIT":
        return _probit(b, scores)
    raise Unsupported(f"post_transform={kind} is unknown")


def _probit(b: Builder, x: Expr) -> Expr:
    """The inverse of the normal distribution, by Winitzki's formula, which onnxruntime uses."""
    y = b.op("subtract", b.op("multiply", x, 2.0), 1.0)
    log = b.op("log", b.op("subtract", 1.0, b.op("multiply", y, y)))
    first = b.op("add", b.op("multiply", log, 0.5), 2 / (math.pi * 0.147))
    root = b.op("sqrt", b.op("subtract", b.op("multiply", first, first), b.op("multiply", log, 1 / 0.147)))
    size = b.op("sqrt", b.op("subtract", root, first))
    return b.op("multiply", b.op("multiply", b.op("sign", y), size), math.sqrt(2))


def labels(n: Node, name: str) -> np.ndarray | list[str]:
    """The labels of classes, numbers or texts."""
    texts = n.strings("classlabels_strings", []) if n.has("classlabels_strings") else []
    return texts or np.array(n.ints(name), "int64")


def best(b: Builder, scores: Expr, names: np.ndarray | list[str]) -> Any:
    """The label of each row's largest score."""
    return label_at(b, names, b.op("argmax", scores, axis=[-1]))


def label_at(b: Builder, names: np.ndarray | list[str], place: Expr) -> Any:
    """The labels at some places."""
    if isinstance(names, list):
        return taken(b, constant(b, names), place)
    return b.op("take", b.const(names), place, axis=0, mode="clip")


# ---- linear models


def _line(n: Node, x: Expr, classes: int) -> Expr:
    b = n.b
    weights = np.array(n.floats("coefficients"), "float32").reshape(classes, -1)
    products = nn.matmul(b, as_float(b, x), b.const(np.ascontiguousarray(weights.T)))
    shift = n.floats("intercepts", [0.0] * classes)
    return b.op("add", products, b.const(np.array(shift, "float32"))) if any(shift) else products


def linear_classifier(n: Node, x: Expr) -> Any:
    """A model of one score has two classes; the first one's score is its complement."""
    b, kind = n.b, n.string("post_transform", "NONE")
    names = labels(n, "classlabels_ints")
    classes = len(n.floats("coefficients")) // n.b.extent(x, -1, "the features")
    scores = _line(n, x, classes)
    if classes == 1 and len(names) == 2:
        scores = b.concat([b.op("negative", scores), scores], 1)
    elif classes == 1:
        raise Unsupported("a classifier with one label is not converted")
    return [best(b, scores, names), transformed(b, scores, kind)]


# ---- support vectors


def kernel(n: Node, x: Expr, vectors: np.ndarray) -> Expr:
    """The kernel of each row with each vector: (rows, vectors)."""
    b, kind = n.b, n.string("kernel_type", "LINEAR")
    gamma, shift, degree = n.floats("kernel_params", [0.0, 0.0, 0.0]) if n.has("kernel_params") else [0.0] * 3
    dot = nn.matmul(b, x, b.const(np.ascontiguousarray(vectors.T)))
    if kind == "LINEAR":
        return dot
    if kind == "RBF":
        own = b.op("sum", b.op("multiply", x, x), axis=[1], keepdims=True)
        apart = b.op("add", b.op("subtract", own, b.op("multiply", dot, 2.0)), b.const((vectors**2).sum(1)))
        return b.op("exp", b.op("multiply", apart, -gamma))
    line = b.op("add", b.op("multiply", dot, gamma), shift)
    functions: dict[str, Callable[[], Expr]] = {
        "POLY": lambda: b.op("power", line, degree),
        "SIGMOID": lambda: b.op("tanh", line),
    }
    if kind not in functions:
        raise Unsupported(f"the kernel {kind} is unknown")
    return functions[kind]()


def svm_regressor(n: Node, x: Expr) -> Any:
    b = n.b
    x = as_float(b, x)
    weights = np.array(n.floats("coefficients"), "float32")
    count = n.int("n_supports", 0)
    if count:
        vectors = np.array(n.floats("support_vectors"), "float32").reshape(count, -1)
        scores = nn.matmul(b, kernel(n, x, vectors), b.const(weights.reshape(count, 1)))
    else:
        scores = kernel(n, x, weights.reshape(1, -1))
    scores = b.op("add", scores, n.floats("rho")[0])
    if n.int("one_class", 0):
        return b.op("where", b.op("greater", scores, 0.0), b.const(1.0, "float32"), b.const(-1.0, "float32"))
    return transformed(b, scores, n.string("post_transform", "NONE"))


def svm_classifier(n: Node, x: Expr) -> Any:
    """Each pair of classes has a vote; the class with most votes wins, and the scores are those of the pairs."""
    b = n.b
    if n.has("prob_a") and n.floats("prob_a"):
        raise Unsupported("probabilities of support vectors are found by iteration, which is not converted")
    names, per_class = labels(n, "classlabels_ints"), n.ints("vectors_per_class", [])
    if not per_class or len(names) < 3:
        raise Unsupported("support vectors of two classes, and linear ones, are not converted")
    count = sum(per_class)
    x = as_float(b, x)
    values = kernel(n, x, np.array(n.floats("support_vectors"), "float32").reshape(count, -1))
    weights = np.array(n.floats("coefficients"), "float32").reshape(-1, count)
    starts = np.concatenate([[0], np.cumsum(per_class)])
    pairs = [(i, j) for i in range(len(names)) for j in range(i + 1, len(names))]
    table = b.arrays.zeros((count, len(pairs)), "float32")
    for at, (i, j) in enumerate(pairs):
        table[starts[i] : starts[i + 1], at] = weights[j - 1, starts[i] : starts[i + 1]]
        table[starts[j] : starts[j + 1], at] = weights[i, starts[j] : starts[j + 1]]
    scores = b.op("add", nn.matmul(b, values, b.const(table)), b.const(np.array(n.floats("rho"), "float32")))
    won = b.cast(b.op("greater", scores, 0.0), "float32")
    firsts, seconds = (b.arrays.eye(len(names), dtype="float32")[[p[k] for p in pairs]] for k in (0, 1))
    votes = b.op("add", nn.matmul(b, won, b.const(firsts)), nn.matmul(b, b.op("subtract", 1.0, won), b.const(seconds)))
    return [best(b, votes, names), transformed(b, scores, n.string("post_transform", "NONE"))]


_ROWS = (
    (
        "ArrayFeatureExtractor",
        lambda n, x, indices: n.b.op(
            "take", n.b.unsqueeze(x, [0]) if n.b.rank(x) == 1 else x, n.b.op("reshape", indices, newshape=[-1]), axis=-1, mode="clip"
        ),
    ),
    ("CategoryMapper", category_mapper),
    ("Binarizer", lambda n, x: n.b.cast(n.b.op("greater", x, n.float("threshold", 0.0)), n.b.dtype(x))),
    ("FeatureVectorizer", feature_vectorizer),
    ("Imputer", imputer),
    ("LabelEncoder", label_encoder),
    ("LinearClassifier", linear_classifier),
    ("LinearRegressor", lambda n, x: transformed(n.b, _line(n, x, n.int("targets", 1)), n.string("post_transform", "NONE"))),
    ("Normalizer", normalizer),
    ("OneHotEncoder", one_hot_encoder),
    ("SVMClassifier", svm_classifier),
    ("SVMRegressor", svm_regressor),
    ("Scaler", scaler),
    ("ZipMap", lambda n, x: [n.b.of_rank(x, 2)]),
)
RULES = tuple(Rule(name, convert, domain=DOMAIN) for name, convert in _ROWS)

__all__ = ["DOMAIN", "RULES", "as_float", "best", "label_at", "labels", "transformed"]
