"""What the tests of PyTorch's operators share: tensors, and the comparison of a function with torch."""

from __future__ import annotations

import io
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from relaylang.frontends.torch import import_pytorch  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402

#: A function and its inputs.
Case = tuple[Any, tuple[Any, ...]]


def real(*shape: int) -> Any:
    """Real numbers, the same in each run."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def whole(*shape: int, most: int = 9) -> Any:
    """Whole numbers, the same in each run."""
    return torch.randint(0, most, shape, generator=torch.Generator().manual_seed(5))


class Call(torch.nn.Module):  # type: ignore[misc]
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        made = self.function(*inputs)
        return tuple(made) if isinstance(made, tuple) else made


def flat(results: Any) -> list[Any]:
    """All tensors of nested results."""
    if isinstance(results, torch.Tensor):
        return [results]
    return [t for r in results for t in flat(r)]


def pt2(model: Any, inputs: tuple[Any, ...], decomposed: bool = False, **options: Any) -> bytes:
    """The bytes of a .pt2 file."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model, inputs, **options)
        torch.export.save(program.run_decompositions() if decomposed else program, buffer)
    return buffer.getvalue()


def check(function: Any, inputs: tuple[Any, ...], decomposed: bool = False) -> None:
    """The program of a function computes what torch computes; written inputs are further results, in their order."""
    model = function if isinstance(function, torch.nn.Module) else Call(function)
    data = pt2(model, inputs, decomposed)
    found = values(import_pytorch(data).module, inputs)
    given = [i.clone() for i in inputs]
    wanted = flat(model(*given))
    wanted += [g for g, i in zip(given, inputs) if g.numpy().tobytes() != i.numpy().tobytes()]
    same(found, wanted)
