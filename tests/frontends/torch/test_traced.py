"""PyTorch's operators in traced programs: the cases of the other tests, as TorchScript archives."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch import (  # noqa: E402
    test_arrange,
    test_elementwise,
    test_indexing,
    test_memory,
    test_operators,
    test_windows,
)
from tests.frontends.torch.cases import Call, Case, flat  # noqa: E402
from tests.frontends.torch.test_networks import same, values  # noqa: E402
from tests.frontends.torch.test_torchscript import imported, traced  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")
_FILES = (test_arrange, test_elementwise, test_indexing, test_memory, test_operators, test_windows)
#: Without strides, an archive does not tell whether a reshape behind a transposition copies.
_UNSURE = {"copies"}
CASES: dict[str, Case] = {
    f"{file.__name__.rsplit('_', 1)[-1]}_{name}": case for file in _FILES for name, case in file.CASES.items() if name not in _UNSURE
}


@pytest.mark.parametrize("name", CASES)
def test_an_operator_computes_what_torch_computes(name: str) -> None:
    function, inputs = CASES[name]
    model: Any = function if isinstance(function, torch.nn.Module) else Call(function)

    def given() -> tuple[Any, ...]:
        return tuple([i.clone() for i in inputs])

    module = traced(model.eval(), given())
    with torch.no_grad():
        wanted = flat(module(*given()))
    same(values(imported(module, tuple(inputs)).module, given())[: len(wanted)], wanted)
