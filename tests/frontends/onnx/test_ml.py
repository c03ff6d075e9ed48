"""Classical models of ai.onnx.ml, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx")

from relaylang.diagnostics import RelayError
from tests.frontends.onnx.models import model, node
from tests.frontends.onnx.runtime import differ, ours

rng = np.random.default_rng(19)
ML = "ai.onnx.ml"


def reals(*shape) -> np.ndarray:
    return rng.normal(size=shape).astype("float32")


def build(kind: str, x, outputs=("y",), version: int = 3, **attrs) -> bytes:
    layer = node(kind, ["x"], outputs, domain=ML, **attrs)
    return model([layer], {"x": x.shape}, outputs, dtypes={"x": x.dtype.name}, domains={ML: version}, opset=21)


def run(kind: str, x, outputs=("y",), version: int = 3, **attrs) -> float:
    return differ(build(kind, x, outputs, version, **attrs), {"x": x})


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_norms(norm: str) -> None:
    assert run("Normalizer", reals(3, 4), norm=norm) <= 1e-5


def test_features() -> None:
    x = reals(3, 4)
    assert run("Binarizer", x, threshold=0.2) == 0
    assert run("Scaler", x, offset=[0.1, 0.2, 0.3, 0.4], scale=[1.0, 2.0, 3.0, 4.0]) <= 1e-6
    assert run("OneHotEncoder", rng.integers(0, 4, (3, 2)), cats_int64s=[0, 2, 3], zeros=1) == 0
    x[0, 1] = np.nan
    assert run("Imputer", x, imputed_value_floats=[1.0, 2.0, 3.0, 4.0], replaced_value_float=float("nan")) == 0
    assert run("Imputer", rng.integers(0, 3, (3, 4)), imputed_value_int64s=[7], replaced_value_int64=1) == 0


def test_labels() -> None:
    x = rng.integers(0, 5, (6,))
    assert run("LabelEncoder", x, keys_int64s=[1, 3], values_floats=[0.5, 1.5], default_float=9.0) == 0
    floats = np.array([1.0, np.nan, 2.5, 4.0], "float32")
    assert run("LabelEncoder", floats, version=4, keys_floats=[2.5, float("nan")], values_int64s=[5, 6], default_int64=-3) == 0
    with pytest.raises(RelayError, match="keys are texts"):
        ours(build("LabelEncoder", x, keys_strings=["a"], values_int64s=[1]), {"x": x})


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX"])
def test_linear_models(transform: str) -> None:
    x = reals(4, 3)
    given = {"coefficients": reals(6).tolist(), "intercepts": [0.1, 0.2], "post_transform": transform}
    assert run("LinearRegressor", x, targets=2, **given) <= 1e-5
    assert run("LinearClassifier", x, ["y", "z"], classlabels_ints=[3, 5], **given) <= 1e-5
    three = {"coefficients": reals(9).tolist(), "intercepts": [0.1, 0.2, -0.3], "post_transform": transform}
    assert run("LinearClassifier", x, ["y", "z"], classlabels_ints=[3, 5, 9], **three) <= 1e-5


@pytest.mark.parametrize("kernel", ["LINEAR", "RBF", "POLY", "SIGMOID"])
def test_support_vectors(kernel: str) -> None:
    x = reals(4, 3)
    given = {"kernel_type": kernel, "kernel_params": [0.3, 0.2, 3.0]}
    assert (
        run("SVMRegressor", x, n_supports=5, support_vectors=reals(15).tolist(), coefficients=reals(5).tolist(), rho=[0.3], **given)
        <= 1e-5
    )
    assert (
        run(
            "SVMClassifier",
            x,
            ["y", "z"],
            vectors_per_class=[2, 1, 2],
            support_vectors=reals(15).tolist(),
            coefficients=reals(10).tolist(),
            rho=[0.1, -0.2, 0.3],
            classlabels_ints=[4, 6, 8],
            **given,
        )
        <= 1e-5
    )


def tree_nodes(trees: int, depth: int, features: int, modes=("BRANCH_LEQ",)):
    """Complete trees with random splits; the numbers of their leaves."""
    found = {
        k: []
        for k in ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids", "missing_value_tracks_true")
    }
    leaves, inner = [], 2**depth - 1
    for tree in range(trees):
        for i in range(2 ** (depth + 1) - 1):
            leaf = i >= inner
            leaves += [(tree, i)] if leaf else []
            row = (
                tree,
                i,
                0 if leaf else int(rng.integers(features)),
                0.0 if leaf else float(np.round(rng.normal(), 1)),
                "LEAF" if leaf else str(rng.choice(modes)),
                0 if leaf else 2 * i + 1,
                0 if leaf else 2 * i + 2,
                0 if leaf else int(rng.integers(2)),
            )
            for values, v in zip(found.values(), row):
                values.append(v)
    return {f"nodes_{k}": v for k, v in found.items()}, leaves


def owners(kind: str, leaves, targets: int, low: float = -1.0):
    return {
        f"{kind}_treeids": [t for t, _ in leaves for _ in range(targets)],
        f"{kind}_nodeids": [i for _, i in leaves for _ in range(targets)],
        f"{kind}_ids": [k for _ in leaves for k in range(targets)],
        f"{kind}_weights": rng.uniform(low, 1.0, len(leaves) * targets).tolist(),
    }


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


@pytest.mark.parametrize("modes", [MODES[:1], MODES], ids=["one", "all"])
@pytest.mark.parametrize("how", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_trees(modes, how: str) -> None:
    nodes, leaves = tree_nodes(5, 3, 4, modes)
    x = np.round(reals(20, 4), 1)
    x[3, 1] = np.nan
    assert run("TreeEnsembleRegressor", x, n_targets=2, aggregate_function=how, **nodes, **owners("target", leaves, 2)) <= 1e-5


@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_trees_of_classes(transform: str) -> None:
    nodes, leaves = tree_nodes(5, 3, 4)
    x = reals(20, 4)
    given = {"post_transform": transform, **nodes, **owners("class", leaves, 3)}
    assert run("TreeEnsembleClassifier", x, ["y", "z"], classlabels_int64s=[2, 4, 6], **given) <= 1e-5
    for low in (0.0, -1.0):
        given = {"post_transform": transform, **nodes, **owners("class", leaves, 1, low)}
        assert run("TreeEnsembleClassifier", x, ["y", "z"], classlabels_int64s=[2, 4], **given) <= 1e-5


@pytest.mark.parametrize("base", [None, [0.3], [0.3, -0.2]])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("classes", ["first", "second", "both", "either"])
def test_two_classes(classes: str, transform: str, base: list[float] | None) -> None:
    """Leaves speak of one class, of both, or each of one."""
    if classes == "either" and base is not None and len(base) == 1:
        pytest.skip("a row whose leaves all speak of the first class has an unset score in onnxruntime")
    nodes, leaves = tree_nodes(5, 2, 4)
    x = reals(30, 4)
    for low in (0.0, -1.0):
        given = {"post_transform": transform, **nodes, **owners("class", leaves, 2, low)}
        count = len(given["class_ids"])
        given["class_ids"] = {"first": [0] * count, "second": [1] * count}.get(classes, given["class_ids"])
        if classes == "either":
            kept = [i for i in range(count) if (i // 2 + i) % 2]
            given |= {key: [value[i] for i in kept] for key, value in given.items() if key.startswith("class_")}
        if base is not None:
            given["base_values"] = base
        assert run("TreeEnsembleClassifier", x, ["y", "z"], classlabels_int64s=[0, 1], **given) <= 1e-5


def test_a_tree_that_leads_back_to_itself() -> None:
    nodes, leaves = tree_nodes(1, 1, 4)
    nodes["nodes_truenodeids"][0] = 0
    x = reals(2, 4)
    with pytest.raises(RelayError, match="lead back"):
        ours(build("TreeEnsembleRegressor", x, n_targets=1, **nodes, **owners("target", leaves, 1)), {"x": x})
