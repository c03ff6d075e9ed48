"""Damaged streams, weights, archives and files of Vela's end in a diagnostic (`make fuzz-npu` tries more)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang import RelayError
from relaylang.backends import ethosu
from relaylang.runtime.artifact import read_sealed, write_sealed
from relaylang.syntax import parse
from tests.backends.ethosu.damage import Rng, is_refused, targets
from tests.shared import ROOT, few


@pytest.fixture(scope="module")
def runs() -> list[Callable[[Rng], None]]:
    return targets()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda region: region.update(places=[[0, "layer"]]), r"R0641.*places\[0\]` must be a list of 3"),
        (lambda region: region.update(places=None), "R0641.*places` must be a list"),
        (lambda region: region["driver"]["outputs"][0].update(address=1e308), r"R0641.*outputs\[0\].address` must be a whole number"),
        (lambda region: region["driver"]["scratch"].update(bytes=True), "R0641.*driver.scratch.bytes` must be a whole number"),
        (lambda region: region["driver"]["scratch"].update(bytes=1 << 40), "R0616.*has 1099511627776 bytes"),
        (lambda region: region["outputs"][0].update(shape=[1 << 40, 3]), r"R0616.*the shape \(1099511627776, 3\) has 3 bytes"),
        (lambda region: region["driver"]["outputs"].clear(), "R0616.*it has 0 places for 1 outputs"),
    ],
)
def test_damaged_places(change: Callable[[Any], None], says: str) -> None:
    artifact = ethosu.compile(parse((ROOT / "examples/ethosu_bars.relay").read_text()).module, {"accelerator": "ethos-u55-128"})
    files = read_sealed(write_sealed(artifact.files()), "net.tar")
    manifest = json.loads(files["manifest.json"])
    change(next(iter(manifest["regions"].values())))
    files["manifest.json"] = json.dumps(manifest).encode()
    with pytest.raises(RelayError, match=says):
        loaded = ethosu.loads(write_sealed(files), source="net.tar")
        loaded.executor = "ethosu-sim"
        loaded.run(np.zeros((1, 1, 8, 8), np.float32))


@pytest.mark.sample(3)
@pytest.mark.parametrize("start", few(range(0, 10_000, 500), 0))
def test_damage(runs: list[Callable[[Rng], None]], start: int) -> None:
    refused = sum(is_refused(runs[seed % len(runs)], seed) for seed in range(start, start + 500))
    assert 300 <= refused < 500  # the rest changes numbers alone, or nothing that is read
