"""PyTorch's own samples of its operators: a program of each computes what torch computes, or it is refused."""

from __future__ import annotations

import itertools
import logging
import random
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from relaylang.diagnostics import RelayError  # noqa: E402
from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.cases import pt2  # noqa: E402
from tests.frontends.torch.test_networks import values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, traced  # noqa: E402

pytestmark = [pytest.mark.sweep, pytest.mark.filterwarnings("ignore")]

SHARDS = 12
#: Some of the first samples of an operator are tried, of at most so many.
MOST = 60
#: How many samples are tried by each door. An export takes three times as long as a trace. Larger numbers try more.
TRIED = {"exported": 1, "traced": 2}
#: How many samples must be right in a shard of about 50 operators.
FLOOR = {"exported": 25, "traced": 50}
#: Their results are memory that nothing has set, or random numbers.
UNSET = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
    "normal",
    "randn",
    "rand_like",
    "randn_like",
    "randint",
    "randint_like",
    "nn.functional.fractional_max_pool2d",
    "nn.functional.fractional_max_pool3d",
    "multinomial",
    "bernoulli",
    "uniform",
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "nn.functional.dropout",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.alpha_dropout",
    "nn.functional.feature_alpha_dropout",
    "nn.functional.rrelu",
}
#: Stands in the place of a tensor among the arguments.
TENSOR = "a tensor"
_KINDS = (torch.float32, torch.int64, torch.float64, torch.bool, torch.complex64)


class Sample(torch.nn.Module):  # type: ignore[misc]
    """An operator with a sample's arguments, of which the tensors are inputs."""

    def __init__(self, operator: Any, tree: Any, leaves: list[Any]) -> None:
        super().__init__()
        self.operator, self.tree, self.leaves = operator, tree, leaves

    def forward(self, *tensors: Any) -> Any:
        rest = iter(tensors)
        args, named = torch.utils._pytree.tree_unflatten([next(rest) if a is TENSOR else a for a in self.leaves], self.tree)
        made = torch.utils._pytree.tree_flatten(self.operator(*args, **named))[0]
        return tuple([m for m in made if isinstance(m, torch.Tensor)])


def sampled(operator: Any, tried: int) -> list[tuple[Any, tuple[Any, ...]]]:
    """Modules of samples and their inputs."""
    have = operator.supported_dtypes("cpu")
    dtype = next((d for d in _KINDS if d in have), None)
    if dtype is None:
        return []
    torch.manual_seed(0)
    samples = list(itertools.islice(operator.sample_inputs("cpu", dtype, requires_grad=False), MOST))
    chosen = random.Random(operator.full_name).sample(samples, min(tried, len(samples)))
    return [as_module(operator, sample) for sample in chosen]


def as_module(operator: Any, sample: Any) -> tuple[Any, tuple[Any, ...]]:
    """The operator with all of a sample's arguments but the tensors, and these."""
    leaves, tree = torch.utils._pytree.tree_flatten(((sample.input, *sample.args), dict(sample.kwargs)))
    tensors = tuple([a.detach().clone() for a in leaves if isinstance(a, torch.Tensor)])
    rest = [TENSOR if isinstance(a, torch.Tensor) else a for a in leaves]
    return Sample(operator.op, tree, rest), tensors


def plain(x: Any) -> Any:
    """A tensor that numpy takes: complex numbers as pairs."""
    x = x.detach().resolve_conj().resolve_neg()
    x = x.float() if x.dtype == torch.bfloat16 else x
    return torch.view_as_real(x) if x.is_complex() else x


def wrong(found: list[np.ndarray], wanted: list[Any]) -> str:
    """What differs; empty where nothing does. Further results are inputs that the operator wrote."""
    if len(found) < len(wanted):
        return f"{len(found)} results, not {len(wanted)}"
    for f, w in zip(found, [plain(w).numpy() for w in wanted]):
        f = f.astype(np.float32) if f.dtype == "bfloat16" else f
        if (f.shape, f.dtype) != (w.shape, w.dtype):
            return f"{f.dtype}{f.shape}, not {w.dtype}{w.shape}"
        most = np.abs(w[np.isfinite(w)].astype(np.float64)).max(initial=1e-3)
        if not np.allclose(f, w, rtol=1e-4, atol=1e-5 * most, equal_nan=True):
            return f"{f.reshape(-1)[:4]}, not {w.reshape(-1)[:4]}"
    return ""


@pytest.mark.parametrize("door", TRIED)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_an_operator_of_pytorch_computes_what_torch_computes(shard: int, door: str) -> None:
    pytest.importorskip("expecttest", reason="the samples of PyTorch's operators need it")
    from torch.testing._internal.common_methods_invocations import op_db

    logging.disable(logging.CRITICAL)
    right, different = 0, []
    try:
        for operator in [o for o in op_db[shard::SHARDS] if o.name not in UNSET]:
            for module, inputs in sampled(operator, TRIED[door]):
                difference = compared(door, module, inputs)
                right += difference == ""
                different += [f"{operator.full_name}: {difference}"] if difference else []
    finally:
        logging.disable(logging.NOTSET)
    assert different == []
    assert right >= FLOOR[door]


def compared(door: str, module: Any, inputs: tuple[Any, ...]) -> str | None:
    """What differs from torch's results; None where torch or the importer refuses the module."""
    try:
        clones = tuple([i.clone() for i in inputs])
        program = pt2(module, clones) if door == "exported" else traced(module, clones)
        wanted = list(module(*[i.clone() for i in inputs]))
    except Exception:  # torch raises errors of many kinds where it cannot export
        return None
    try:
        made = import_pytorch(program) if door == "exported" else imported(program, inputs)
    except RelayError as refusal:
        return next((str(d) for d in refusal.diagnostics if d.code.startswith("R09")), None)
    return wrong(values(made.module, tuple([plain(i) for i in inputs])), wanted)
