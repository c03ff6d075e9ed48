"""Random regions of every operator give the interpreter's integers on every accelerator (`make fuzz-npu` runs more)."""

from __future__ import annotations

import pytest

pytest.importorskip("tosa_reference_model", reason="needs relaylang[ethosu]")
pytest.importorskip("ethosu.regor", reason="needs relaylang[ethosu]")

from relaylang.backends.ethosu.vela import ACCELERATORS
from tests.backends.ethosu.generator import ENDS, ROWS, compare, random_region
from tests.shared import few

NAMES = tuple(ACCELERATORS)


@pytest.mark.sweep
@pytest.mark.sample(6)
@pytest.mark.parametrize("start", few(range(0, 1100, 22), 0))
def test_regions(start: int) -> None:
    compared = {seed: compare(seed, NAMES[seed % len(NAMES)]) for seed in range(start, start + 22)}
    assert sum(compared.values()) >= 17  # others have no layer for the accelerator


@pytest.mark.parametrize("seed", [457, 754])
def test_regions_with_faults_of_vela(seed: int) -> None:
    """Padded images that several operators read, and averages of many channels in large steps, on the U85."""
    compare(seed, "ethos-u85-128")


@pytest.mark.sweep
def test_all_rows_are_drawn() -> None:
    assert {row for seed in range(300) for row in random_region(seed).rows} == {*ROWS, *ENDS}
