"""Ensembles of decision trees of ai.onnx.ml: all rows go down all trees at once, a level at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.onnx.families.ml import DOMAIN, best, label_at, labels, transformed
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr

#: The comparisons by the name of a node's mode.
_TESTS = {
    "LEQ": "less_equal",
    "LT": "less",
    "GTE": "greater_equal",
    "GT": "greater",
    "EQ": "equal",
    "NEQ": "not_equal",
}
#: The modes of TreeEnsemble by number.
_MODES = ("LEQ", "LT", "GTE", "GT", "EQ", "NEQ", "MEMBER")
#: The ways to join the trees' values.
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
#: A tree deeper than this is taken for a damaged one.
_DEEPEST = 4096


@dataclass
class Forest:
    """Nodes by number. A leaf goes to itself; `weights` has a row for each node, and `there` what it speaks of."""

    roots: np.ndarray
    modes: list[str]
    features: np.ndarray
    values: np.ndarray
    yes: np.ndarray
    no: np.ndarray
    missing: np.ndarray
    weights: np.ndarray
    there: np.ndarray

    def depth(self) -> int:
        """The most steps from a root to a leaf. Raises `Unsupported` for a node that leads back to itself."""
        level, steps = np.unique(self.roots), 0
        while True:
            after = np.unique(np.concatenate([self.yes[level], self.no[level]]))
            if np.array_equal(after, level) and bool((self.yes[level] == level).all()):
                return steps
            level, steps = after, steps + 1
            if steps > _DEEPEST:
                raise Unsupported("its nodes lead back to themselves")

    def leaves(self, b: Builder, x: Expr) -> Expr:
        """The node where each row ends in each tree: (rows, trees)."""
        at = _rows(b, x, b.const(self.roots.reshape(1, -1).astype("int32")))
        for _ in range(self.depth()):
            at = self._step(b, x, at)
        return at

    def _step(self, b: Builder, x: Expr, at: Expr) -> Expr:
        def of(values: np.ndarray) -> Expr:
            return b.op("take", b.const(values), at, axis=0, mode="clip")

        value = b.op("gather", x, of(self.features.astype("int32")), axis=1)
        bound = of(self.values.astype(np.dtype(b.dtype(x))))
        inner = sorted({m for m, y, i in zip(self.modes, self.yes, range(len(self.modes))) if y != i})
        numbers = np.array([inner.index(m) if m in inner else 0 for m in self.modes], "int32")
        goes = None
        for i, mode in enumerate(inner):
            test = b.op(_TESTS[mode], value, bound)
            goes = test if goes is None else b.op("where", b.op("equal", of(numbers), i), test, goes)
        assert goes is not None
        if self.missing.any():
            goes = b.op("logical_or", goes, b.op("logical_and", of(self.missing), b.op("isnan", value)))
        return b.op("where", goes, of(self.yes.astype("int32")), of(self.no.astype("int32")))

    def scores(self, b: Builder, x: Expr, how: str) -> Expr:
        """The trees' values joined: (rows, targets)."""
        at = self.leaves(b, x)
        dtype = np.dtype(b.dtype(x))
        fill = {"MIN": np.inf, "MAX": -np.inf}.get(how)
        table = self.weights if fill is None else np.where(self.there, self.weights, fill)
        parts = b.op("take", b.const(table.astype(dtype)), at, axis=0, mode="clip")
        joined = b.op({"MIN": "min", "MAX": "max"}.get(how, "sum"), parts, axis=[1])
        if how == "AVERAGE":
            return b.op("divide", joined, float(len(self.roots)))
        # A target of which no leaf speaks has the value 0.
        return joined if fill is None else b.op("where", b.op("isinf", joined), b.const(0.0, b.dtype(x)), joined)


def _rows(b: Builder, x: Expr, at: Expr) -> Expr:
    """A row of numbers for each row of the data."""
    zero = b.op("zeros_like", b.cast(b.slice(x, [0], [1], [1]), "int32"))
    return b.op("add", zero, at)


def _forest(n: Node, targets: int, kind: str) -> Forest:
    """The trees of TreeEnsembleRegressor (`kind` "target") and TreeEnsembleClassifier ("class")."""
    trees, nodes = n.ints("nodes_treeids"), n.ints("nodes_nodeids")
    where = {key: i for i, key in enumerate(zip(trees, nodes))}
    names = [m.removeprefix("BRANCH_") for m in n.strings("nodes_modes")]
    count = len(names)
    arrays = n.b.arrays
    yes, no = arrays.arange(count), arrays.arange(count)
    for i, (mode, y, o) in enumerate(zip(names, n.ints("nodes_truenodeids"), n.ints("nodes_falsenodeids"))):
        if mode != "LEAF":
            yes[i], no[i] = where[trees[i], y], where[trees[i], o]
            if i in (yes[i], no[i]):
                raise Unsupported("its nodes lead back to themselves")
    first: dict[int, int] = {}
    for i, tree in enumerate(trees):
        first.setdefault(tree, i)
    weights, there = arrays.zeros((count, targets)), arrays.zeros((count, targets), bool)
    owners = zip(n.ints(f"{kind}_treeids"), n.ints(f"{kind}_nodeids"), n.ints(f"{kind}_ids"), _numbers(n, f"{kind}_weights"))
    for tree, node, target, weight in owners:
        weights[where[tree, node], target] += weight
        there[where[tree, node], target] = True
    missing = n.ints("nodes_missing_value_tracks_true", [0] * count) or [0] * count
    return Forest(
        np.array(list(first.values())),
        names,
        np.array(n.ints("nodes_featureids")),
        _numbers(n, "nodes_values"),
        yes,
        no,
        np.array(missing, bool),
        weights,
        there,
    )


def _numbers(n: Node, name: str) -> np.ndarray:
    """A list of numbers, which may stand as a tensor of float64."""
    if n.has(f"{name}_as_tensor"):
        return n.tensor(f"{name}_as_tensor").astype("float64").reshape(-1)
    return np.array(n.floats(name, []) if n.has(name) else [], "float32")


def _real(b: Builder, x: Expr) -> Expr:
    return x if "float" in b.dtype(x) else b.cast(x, "float32")


def regressor(n: Node, x: Expr) -> Any:
    b, targets = n.b, n.int("n_targets", 1)
    scores = _forest(n, targets, "target").scores(b, _real(b, x), n.string("aggregate_function", "SUM"))
    scores = b.cast(scores, "float32")
    base = _numbers(n, "base_values").astype("float32")
    scores = b.op("add", scores, b.const(base)) if base.size else scores
    return transformed(b, scores, n.string("post_transform", "NONE"))


def classifier(n: Node, x: Expr) -> Any:
    b, kind = n.b, n.string("post_transform", "NONE")
    names = labels(n, "classlabels_int64s")
    forest = _forest(n, len(names), "class")
    base = _numbers(n, "base_values").astype("float32")
    if len(names) == 2:
        return _two_classes(n, forest, x, names, base, kind)
    scores = b.cast(forest.scores(b, _real(b, x), "SUM"), "float32")
    scores = b.op("add", scores, b.const(base)) if base.size else scores
    return [best(b, scores, names), transformed(b, scores, kind)]


def _two_classes(n: Node, forest: Forest, x: Expr, names: np.ndarray | list[str], base: np.ndarray, kind: str) -> Any:
    """onnxruntime's rules for two classes, of which a row's leaves may speak of one alone.

    The label depends on the second score, where a leaf has one, else on the first. A first score alone gets a second
    one: its complement where all weights are positive and all are of one class, else its negative.
    """
    b, spoken = n.b, set(n.ints("class_ids"))
    weighed = b.cast(forest.scores(b, _real(b, x), "SUM"), "float32")
    numbers = [bool(forest.there[:, k].any()) for k in (0, 1)]
    leaves = np.array([m == "LEAF" for m in forest.modes])
    if all(numbers) and not forest.there[leaves].all():
        counted = replace(forest, weights=forest.there.astype("float64"))
        seen = b.op("greater", counted.scores(b, _real(b, x), "SUM"), 0.0)
    else:  # all rows are alike
        seen = b.op("logical_or", b.op("zeros_like", b.op("greater", weighed, 0.0)), b.const(np.array([numbers])))
    first, second = (b.slice(weighed, [k], [k + 1], [1]) for k in (0, 1))
    has = [b.slice(seen, [k], [k + 1], [1]) for k in (0, 1)]
    zero = b.const(0.0, "float32")
    if base.size == 2:
        joined = b.op("add", first, float(base[1]))
        first = b.op("where", has[1], b.op("negative", joined), b.op("add", first, float(base[0])))
        second = joined
    elif base.size == 1:
        first = b.op("add", first, float(base[0]))
    first, second = (b.op("where", h, v, zero) for h, v in zip(has, (first, second)))
    positive = len(spoken) == 1 and bool((_numbers(n, "class_weights") >= 0).all())
    deciding = b.squeeze(b.op("where", has[1], second, first), [1])
    label = label_at(b, names, b.cast(b.op("greater", deciding, 0.5 if positive else 0.0), "int64"))
    pair = transformed(b, b.concat([first, second], 1), kind)
    if base.size == 2 or numbers == [False, True]:
        return [label, pair]
    if kind == "PROBIT":
        raise Unsupported("PROBIT of one score for two classes is not converted")
    if kind == "LOGISTIC":
        single = transformed(b, b.concat([b.op("negative", first), first], 1), kind)
    else:
        single = b.concat([b.op("subtract", 1.0, first) if positive else b.op("negative", first), first], 1)
    return [label, b.op("where", has[1], pair, single)]


# ---- TreeEnsemble


def ensemble(n: Node, x: Expr) -> Any:
    """Nodes are numbered over all trees; true and false branches lead to nodes or to leaves."""
    b = n.b
    targets, how = n.int("n_targets"), _AGGREGATES[n.int("aggregate_function", 1)]
    inner = _Inner(n)
    forest = inner.forest(targets)
    scores = forest.scores(b, _real(b, x), how)
    kinds = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    return transformed(b, scores, kinds[n.int("post_transform", 0)])


class _Inner:
    """The inner nodes of a TreeEnsemble. A node that tests membership of a set becomes one node per member."""

    def __init__(self, n: Node) -> None:
        self.n = n
        self.modes = [_MODES[m] for m in n.tensor("nodes_modes").reshape(-1)]
        self.values = [float(v) for v in n.tensor("nodes_splits").reshape(-1)]
        self.features = n.ints("nodes_featureids")
        count = len(self.modes)
        self.missing = n.ints("nodes_missing_value_tracks_true", [0] * count) or [0] * count
        leaf_ids, self.leaf_weights = n.ints("leaf_targetids"), n.tensor("leaf_weights").reshape(-1)
        self.leaf_ids = leaf_ids
        self.yes, self.no = self._ends("true", count), self._ends("false", count)
        self._split_members()

    def _ends(self, side: str, count: int) -> list[int]:
        """Where a side of each node leads; leaf i is -1 - i."""
        ids, leaves = self.n.ints(f"nodes_{side}nodeids"), self.n.ints(f"nodes_{side}leafs")
        if not len(ids) == len(leaves) == count:
            raise Unsupported(f"it has {count} nodes, but {len(ids)} {side} branches")
        return [-1 - i if leaf else i for i, leaf in zip(ids, leaves)]

    def _split_members(self) -> None:
        if "MEMBER" not in self.modes:
            return
        sets: list[list[float]] = [[]]
        for value in self.n.tensor("membership_values").reshape(-1):
            sets[-1].append(float(value))
            if np.isnan(value):
                sets[-1].pop()
                sets.append([])
        order = iter(sets)
        for i in [i for i, m in enumerate(self.modes) if m == "MEMBER"]:
            at, members, no = i, next(order), self.no[i]
            self.modes[i] = "EQ"
            for k, member in enumerate(members):
                self.values[at] = member
                if k + 1 < len(members):
                    self.no[at] = len(self.modes)
                    at = len(self.modes)
                    self._add("EQ", self.features[i], self.yes[i], no, self.missing[i])

    def _add(self, mode: str, feature: int, yes: int, no: int, missing: int) -> None:
        self.modes.append(mode)
        self.features.append(feature)
        self.values.append(0.0)
        self.yes.append(yes)
        self.no.append(no)
        self.missing.append(missing)

    def forest(self, targets: int) -> Forest:
        count, leaves = len(self.modes), len(self.leaf_ids)
        arrays = self.n.b.arrays
        weights, there = arrays.zeros((count + leaves, targets)), arrays.zeros((count + leaves, targets), bool)
        weights[count + arrays.arange(leaves), self.leaf_ids] = self.leaf_weights
        there[count + arrays.arange(leaves), self.leaf_ids] = True
        yes, no = self._numbered(self.yes, count, leaves), self._numbered(self.no, count, leaves)
        if max(*yes, *no) >= count + leaves:
            raise Unsupported("a branch leads to a node that does not exist")
        none = [0] * leaves
        # A root whose branches are the same leaf is a tree of one leaf.
        return Forest(
            np.array(self.n.ints("tree_roots")),
            [*self.modes, *["LEAF"] * leaves],
            np.array([*self.features, *none]),
            np.array([*self.values, *none]),
            yes,
            no,
            np.array([*self.missing, *none], bool),
            weights,
            there,
        )

    @staticmethod
    def _numbered(ends: Sequence[int], count: int, leaves: int) -> np.ndarray:
        return np.array([*[count - 1 - e if e < 0 else e for e in ends], *range(count, count + leaves)])


RULES = (
    Rule("TreeEnsemble", ensemble, domain=DOMAIN),
    Rule("TreeEnsembleClassifier", classifier, domain=DOMAIN),
    Rule("TreeEnsembleRegressor", regressor, domain=DOMAIN),
)
