"""Losses, and the optimisers of ai.onnx.preview.training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from relaylang.frontends.common import Builder, Rule, Unsupported
from relaylang.frontends.onnx.node import Node
from relaylang.ir import Expr


def _loss(n: Node, log_prob: Expr, target: Expr, weight: Expr | None) -> Expr:
    """The negative log-probability of each target, weighted and reduced. Targets equal to ignore_index count nothing."""
    b, dtype = n.b, n.b.dtype(log_prob)
    classes = b.extent(log_prob, 1, "the number of classes")
    # A target that is ignored may be no class.
    inside = b.op("maximum", b.op("minimum", target, classes - 1), 0)
    picked = b.squeeze(b.op("gather", log_prob, b.unsqueeze(inside, [1]), axis=1), [1])
    loss = b.op("negative", picked)
    weights = b.op("take", weight, inside, axis=0, mode="clip") if weight is not None else None
    if n.has("ignore_index"):
        ignored = b.op("equal", target, n.int("ignore_index"))
        own = b.op("ones_like", loss) if weights is None else weights
        weights = b.op("where", ignored, b.const(0, dtype), own)
    loss = loss if weights is None else b.op("multiply", loss, weights)
    reduction = n.string("reduction", "mean")
    if reduction == "none":
        return loss
    total = b.op("sum", loss)
    if reduction == "sum":
        return total
    return b.op("mean", loss) if weights is None else b.op("divide", total, b.op("sum", weights))


def nll_loss(n: Node, x: Expr, target: Expr, weight: Expr | None = None) -> Any:
    return _loss(n, x, target, weight)


def cross_entropy(n: Node, x: Expr, target: Expr, weight: Expr | None = None) -> Any:
    log_prob = n.b.op("nn.log_softmax", x, axis=1)
    return [_loss(n, log_prob, target, weight), log_prob]


# ---- optimisers

#: One tensor's update: `(node, rate, step, x, gradient, *states)` to the new x and states.
Update = Callable[..., list[Expr]]


def of_each(update: Update, states: int) -> Callable[..., Any]:
    """The conversion of an optimiser of any number of tensors, all operands of one kind behind each other."""

    def convert(n: Node, rate: Expr, step: Expr, *operands: Expr) -> Any:
        count, rest = divmod(len(operands), states + 2)
        if rest or not count:
            raise Unsupported(f"it has {len(operands) + 2} operands")
        groups = [operands[i * count : (i + 1) * count] for i in range(states + 2)]
        rate, step = n.b.scalar(rate), n.b.scalar(step)
        updates = [update(n, rate, step, *own) for own in zip(*groups)]
        return [results[i] for i in range(states + 1) for results in updates]

    return convert


def _regularised(n: Node, x: Expr, g: Expr) -> Expr:
    factor = n.float("norm_coefficient", 0.0)
    return n.b.op("add", n.b.op("multiply", x, factor), g) if factor else g


def _mix(b: Builder, old: Expr, factor: float, new: Expr, other: float | Expr) -> Expr:
    return b.op("add", b.op("multiply", old, factor), b.op("multiply", new, other))


def adagrad(n: Node, rate: Expr, step: Expr, x: Expr, g: Expr, h: Expr) -> list[Expr]:
    b = n.b
    decay = b.op("add", b.op("multiply", b.cast(step, b.dtype(rate)), n.float("decay_factor", 0.0)), 1.0)
    g = _regularised(n, x, g)
    h = b.op("add", h, b.op("multiply", g, g))
    moved = b.op("multiply", b.cast(b.op("divide", rate, decay), b.dtype(x)), g)
    return [b.op("subtract", x, b.op("divide", moved, b.op("add", b.op("sqrt", h), n.float("epsilon", 1e-6)))), h]


def adam(n: Node, rate: Expr, step: Expr, x: Expr, g: Expr, v: Expr, h: Expr) -> list[Expr]:
    b = n.b
    alpha, beta = n.float("alpha", 0.9), n.float("beta", 0.999)
    g = _regularised(n, x, g)
    v, h = _mix(b, v, alpha, g, 1 - alpha), _mix(b, h, beta, b.op("multiply", g, g), 1 - beta)
    root = b.op("add", b.op("sqrt", h), n.float("epsilon", 1e-6))
    t = b.cast(step, b.dtype(rate))
    powers = [b.op("subtract", b.const(1.0, b.dtype(rate)), b.op("power", b.const(f, b.dtype(rate)), t)) for f in (beta, alpha)]
    corrected = b.op("divide", b.op("multiply", rate, b.op("sqrt", powers[0])), powers[1])
    own = b.op("where", b.op("greater", t, 0.0), corrected, rate)
    updated = b.op("subtract", x, b.op("multiply", b.cast(own, b.dtype(x)), b.op("divide", v, root)))
    after = n.float("norm_coefficient_post", 0.0)
    return [b.op("multiply", updated, 1 - after) if after else updated, v, h]


def momentum(n: Node, rate: Expr, step: Expr, x: Expr, g: Expr, v: Expr) -> list[Expr]:
    b = n.b
    alpha, beta = n.float("alpha"), n.float("beta")
    g = _regularised(n, x, g)
    one = b.const(1.0, b.dtype(x))
    factor = b.op("where", b.op("greater", step, 0), b.const(beta, b.dtype(x)), one)
    v = _mix(b, v, alpha, g, factor)
    way = v if n.string("mode") == "standard" else b.op("add", g, b.op("multiply", v, alpha))
    return [b.op("subtract", x, b.op("multiply", b.cast(rate, b.dtype(x)), way)), v]


_TRAINING = "ai.onnx.preview.training"

RULES = (
    Rule("NegativeLogLikelihoodLoss", nll_loss, since=12),
    Rule("SoftmaxCrossEntropyLoss", cross_entropy, since=12),
    Rule("Adagrad", of_each(adagrad, 1), domain=_TRAINING),
    Rule("Adam", of_each(adam, 2), domain=_TRAINING),
    Rule("Momentum", of_each(momentum, 1), domain=_TRAINING),
)
