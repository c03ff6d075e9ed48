"""Command streams of random networks give the interpreter's integers, on every accelerator that the simulator has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang import RelayError
from relaylang.backends import ethosu
from relaylang.backends.ethosu import regions, vela
from relaylang.interpreter import evaluate
from relaylang.ir import Expr, IRModule
from relaylang.syntax import parse
from tests.backends.ethosu.networks import FURTHER, LAYERS, WIDE, random_input, random_network, residual_network
from tests.shared import ROOT, few

ACCELERATORS = tuple(vela.ACCELERATORS)
#: Networks in which Vela alone would go wrong: pools at uint8 edges, averages, several images, several outputs for a channel.
#: The last two have conversions behind a pad and behind a sum.
TELLING = (15, 16, 26, 30, 52, 56, 85, 88, 94, 123, 184, 219, 224, 651, 899)


def differing(network: Expr, seed: int, accelerator: str) -> int | None:
    """The number of integers that differ; None where nothing of the network goes to the accelerator."""
    x = random_input(network, seed)
    try:
        artifact = ethosu.compile(IRModule.from_expr(network), {"accelerator": accelerator})
    except RelayError as nothing:
        assert nothing.diagnostics[0].code == "R0614", nothing
        return None
    artifact.executor = "ethosu-sim"
    found, wanted = artifact.run(x=x), evaluate(network, x)
    assert found.dtype == wanted.dtype and found.shape == wanted.shape
    return int((found != wanted).sum())


def random_cases() -> Iterator[Any]:
    """Each accelerator with each kind of layers; `make test` has an accelerator of each kind with one."""
    for start in range(0, 200, 20):
        for kind, (name, layers) in enumerate({"layers": LAYERS, "further": FURTHER, "int16": WIDE}.items()):
            for number, accelerator in enumerate(ACCELERATORS):
                marks = [pytest.mark.sweep] if start or number != 4 * kind else []
                yield pytest.param(start, layers, accelerator, marks=marks, id=f"{start}-{name}-{accelerator}")


@pytest.mark.sample(6)
@pytest.mark.parametrize(("start", "layers", "accelerator"), list(random_cases()))
def test_random_networks(start: int, layers: tuple[str, ...], accelerator: str) -> None:
    found = {seed: differing(random_network(seed, layers), seed, accelerator) for seed in range(start, start + 8)}
    assert {seed: count for seed, count in found.items() if count} == {}
    assert sum(count is not None for count in found.values()) >= 4


@pytest.mark.sample(3)
@pytest.mark.parametrize("accelerator", ["ethos-u55-256", "ethos-u85-256"])
@pytest.mark.parametrize("seed", TELLING)
def test_networks_that_vela_alone_gets_wrong(seed: int, accelerator: str) -> None:
    assert differing(random_network(seed), seed, accelerator) == 0


@pytest.mark.sample(2)
@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u55-256", "ethos-u85-1024"))
def test_a_residual_network(accelerator: str) -> None:
    assert differing(residual_network(), 0, accelerator) == 0


def test_tables_have_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vela's table would lie behind the memory of a small accelerator: the layer stays on the host instead."""
    network = random_network(58, FURTHER)
    assert differing(network, 58, "ethos-u55-32") is None
    monkeypatch.setattr(regions, "has_room_for_tables", lambda stream: True)
    with pytest.raises(RelayError, match=r"R0616.*OP_DMA_START, uses byte 0x8ff of the table memory"):
        differing(network, 58, "ethos-u55-32")


def test_transfers_next_to_two_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Vela's transfers of weights would overwrite the second image while a pool reads it."""
    assert differing(random_network(217), 217, "ethos-u85-128") == 0
    network = random_network(189)
    assert differing(network, 189, "ethos-u65-512") == 0
    monkeypatch.setattr(regions, "_UNSAFE_FOR_PARTS", "")
    with pytest.raises(RelayError, match=r"R0616.*OP_DMA_START.*OP_KERNEL_WAIT is missing"):
        differing(network, 189, "ethos-u65-512")


@pytest.mark.parametrize("accelerator", few(ACCELERATORS, "ethos-u65-512", "ethos-u85-2048"))
def test_an_example(accelerator: str) -> None:
    mod = parse((ROOT / "examples/ethosu_bars.relay").read_text()).module
    x = np.random.default_rng(0).random((1, 1, 8, 8), np.float32)
    artifact = ethosu.compile(mod, {"accelerator": accelerator})
    artifact.executor = "ethosu-sim"
    np.testing.assert_array_equal(artifact.run(x), evaluate(mod, x))
