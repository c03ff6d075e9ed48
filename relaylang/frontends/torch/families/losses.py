"""Losses: what training minimises, and what some networks give as results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from relaylang.frontends.common import Rule, nn
from relaylang.frontends.torch.families.arithmetic import promoted
from relaylang.frontends.torch.node import Node
from relaylang.ir import Expr

#: PyTorch's numbers of reductions.
_NONE, _MEAN = 0, 1


def reduced(n: Node, loss: Expr) -> Expr:
    """All losses, their mean, or their sum."""
    how = n.int("reduction", _MEAN)
    return loss if how == _NONE else n.b.op("mean" if how == _MEAN else "sum", loss)


def of_difference(loss: Callable[[Node, Expr], Expr]) -> Callable[[Node], Any]:
    return lambda n: reduced(n, loss(n, n.b.op("subtract", n.x(), n.x("target"))))


def _smooth(n: Node, apart: Expr) -> Expr:
    b, beta = n.b, float(n.get("beta", 1.0))
    size = b.op("abs", apart)
    if beta == 0:
        return size
    curve = b.op("multiply", b.op("multiply", apart, apart), 0.5 / beta)
    return b.op("where", b.op("less", size, beta), curve, b.op("subtract", size, 0.5 * beta))


def _huber(n: Node, apart: Expr) -> Expr:
    b, delta = n.b, float(n.get("delta", 1.0))
    size = b.op("abs", apart)
    line = b.op("multiply", b.op("subtract", size, 0.5 * delta), delta)
    return b.op("where", b.op("less_equal", size, delta), b.op("multiply", b.op("multiply", apart, apart), 0.5), line)


def binary_cross_entropy(n: Node) -> Any:
    """The logarithms are at least -100."""
    b, x, target = n.b, n.x(), n.x("target")
    one = b.const(1, b.dtype(x))
    logs = [b.op("maximum", v, -100.0) for v in (b.op("log", x), nn.log1p(b, b.op("negative", x)))]
    total = b.op("add", b.op("multiply", target, logs[0]), b.op("multiply", b.op("subtract", one, target), logs[1]))
    loss = b.op("negative", total)
    return reduced(n, b.op("multiply", loss, n.x("weight")) if n.has("weight") else loss)


def binary_cross_entropy_with_logits(n: Node) -> Any:
    b, x, target = n.b, n.x(), n.x("target")
    behind = b.op("multiply", b.op("subtract", b.const(1, b.dtype(x)), target), x)
    log = nn.softplus(b, b.op("negative", x))
    if n.has("pos_weight"):
        more = b.op("multiply", b.op("subtract", n.x("pos_weight"), 1.0), target)
        log = b.op("multiply", log, b.op("add", more, 1.0))
    loss = b.op("add", behind, log)
    return reduced(n, b.op("multiply", loss, n.x("weight")) if n.has("weight") else loss)


def kl_div(n: Node) -> Any:
    b, x, target = n.b, n.x(), n.x("target")
    if n.get("log_target"):
        loss = b.op("multiply", b.op("exp", target), b.op("subtract", target, x))
    else:
        safe = b.op("where", b.op("greater", target, 0.0), target, b.op("ones_like", target))
        product = b.op("multiply", target, b.op("subtract", b.op("log", safe), x))
        loss = b.op("where", b.op("greater", target, 0.0), product, b.op("zeros_like", product))
    return reduced(n, loss)


def _by_class(n: Node, logs: Expr, classes: Expr) -> list[Expr]:
    """The negative logarithm at each class, its weight, both 0 where the class is ignored."""
    b = n.b
    axis = 1 if b.rank(logs) > 1 else 0
    ignored = b.op("equal", classes, b.const(n.int("ignore_index", -100), b.dtype(classes)))
    safe = b.op("where", ignored, b.op("zeros_like", classes), classes)
    picked = b.squeeze(b.op("gather", logs, b.unsqueeze(safe, [axis]), axis=axis), [axis])
    one = b.op("ones_like", picked)
    weight = b.op("take", n.x("weight"), safe, axis=0) if n.has("weight") else one
    weight = b.op("where", ignored, b.op("zeros_like", weight), weight)
    return [b.op("multiply", b.op("negative", picked), weight), weight]


def _mean_by_weight(n: Node, loss: Expr, weight: Expr) -> Expr:
    b, how = n.b, n.int("reduction", _MEAN)
    if how == _NONE:
        return loss
    total = b.op("sum", loss)
    return total if how != _MEAN else b.op("divide", total, b.op("sum", weight))


def nll_loss(n: Node) -> Any:
    loss, weight = _by_class(n, n.x(), n.x("target"))
    mean = _mean_by_weight(n, loss, weight)
    return [mean, n.b.op("sum", weight)] if n.call.target.split(".")[1].endswith("_forward") else mean


def cross_entropy(n: Node) -> Any:
    """Of logits, to classes or to their probabilities, smoothed or not."""
    b, x, target = n.b, n.x(), n.x("target")
    axis = 1 if b.rank(x) > 1 else 0
    logs = b.op("nn.log_softmax", x, axis=axis)
    smooth, count = float(n.get("label_smoothing", 0.0)), b.extent(x, axis)
    shape = [-1 if i == axis else 1 for i in range(b.rank(x))]
    scaled = b.op("multiply", logs, b.reshape(n.x("weight"), shape)) if n.has("weight") else logs
    if "float" in b.dtype(target):
        target = b.op("add", b.op("multiply", target, 1 - smooth), smooth / count) if smooth else target
        loss = b.op("negative", b.op("sum", b.op("multiply", scaled, target), axis=[axis]))
        if n.int("reduction", _MEAN) != _MEAN:
            return reduced(n, loss)
        cells = b.op("sum", b.op("ones_like", loss))
        return b.op("divide", b.op("sum", loss), cells)
    loss, weight = _by_class(n, logs, target)
    mean = _mean_by_weight(n, loss, weight)
    if not smooth:
        return mean
    ignored = b.op("equal", target, b.const(n.int("ignore_index", -100), b.dtype(target)))
    spread = b.op("negative", b.op("sum", scaled, axis=[axis]))
    spread = _mean_by_weight(n, b.op("where", ignored, b.op("zeros_like", spread), spread), weight)
    return b.op("add", b.op("multiply", mean, 1 - smooth), b.op("multiply", spread, smooth / count))


def hinge_embedding(n: Node) -> Any:
    b, x, target = n.b, n.x(), n.x("target")
    zero = b.op("zeros_like", x)
    far = b.op("nn.relu", b.op("subtract", b.const(n.get("margin", 1.0), b.dtype(x)), x))
    parts = [b.op("where", b.op("equal", target, b.const(v, b.dtype(target))), zero, t) for v, t in ((1, far), (-1, x))]
    return reduced(n, b.op("add", *parts))


def margin_ranking(n: Node) -> Any:
    b = n.b
    apart = b.op("subtract", *promoted(b, n.x("input1"), n.x("input2")))
    target, apart = promoted(b, b.op("negative", n.x("target")), apart)
    loss = b.op("multiply", target, apart)
    loss = b.op("add", *promoted(b, loss, float(n.get("margin", 0.0))))
    return reduced(n, b.op("nn.relu", loss))


def poisson(n: Node) -> Any:
    b, x, target = n.b, n.x("input"), n.x("target")
    if n.get("log_input", True):
        loss = b.op("subtract", b.op("exp", x), b.op("multiply", target, x))
    else:
        loss = b.op("subtract", x, b.op("multiply", target, b.op("log", b.op("add", x, float(n.get("eps", 1e-8))))))
    if n.get("full"):
        half = b.op("multiply", b.op("log", b.op("multiply", target, 2 * np.pi)), 0.5)
        more = b.op("add", b.op("subtract", b.op("multiply", target, b.op("log", target)), target), half)
        loss = b.op("add", loss, b.op("where", b.op("greater", target, 1.0), more, b.op("zeros_like", more)))
    return reduced(n, loss)


RULES = (
    Rule("aten.binary_cross_entropy", binary_cross_entropy),
    Rule("aten.binary_cross_entropy_with_logits", binary_cross_entropy_with_logits),
    Rule("aten.cross_entropy_loss", cross_entropy),
    Rule("aten.hinge_embedding_loss", hinge_embedding),
    Rule("aten.huber_loss", of_difference(_huber)),
    Rule("aten.kl_div", kl_div),
    Rule("aten.l1_loss", of_difference(lambda n, apart: n.b.op("abs", apart))),
    Rule("aten.margin_ranking_loss", margin_ranking),
    Rule("aten.mse_loss", of_difference(lambda n, apart: n.b.op("multiply", apart, apart))),
    Rule("aten.nll_loss", nll_loss),
    Rule("aten.nll_loss2d", nll_loss),
    Rule("aten.nll_loss2d_forward", nll_loss),
    Rule("aten.nll_loss_forward", nll_loss),
    Rule("aten.nll_loss_nd", nll_loss),
    Rule("aten.poisson_nll_loss", poisson),
    Rule("aten.smooth_l1_loss", of_difference(_smooth)),
    Rule(
        "aten.soft_margin_loss", lambda n: reduced(n, nn.softplus(n.b, n.b.op("negative", n.b.op("multiply", n.x("target"), n.x()))))
    ),
)
