"""Files with changed bytes, fields and archive members are read or refused: no exception, bounded time and memory."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

from tests.mutants import KINDS, apart, mutant, verdict
from tests.shared import PATIENCE, ROOT

#: What the seeds of a format are made with.
NEEDS = {
    "onnx": ["onnx"],
    "tflite": ["tflite", "ai_edge_litert"],
    "pt2": ["torch"],
    "torchscript": ["torch"],
    "mlirbc": ["jaxlib"],
    "keras": ["h5py"],
    "h5": ["h5py"],
    "graphdef": ["google.protobuf"],
    "savedmodel": ["google.protobuf"],
    "pdmodel": ["google.protobuf"],
    "pir": ["google.protobuf"],
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", KINDS)
def test_a_mutant_is_read_or_refused(kind: str) -> None:
    for package in NEEDS.get(kind, ()):
        pytest.importorskip(package)
    seeds = KINDS[kind].seeds()
    for number in range(40):
        data, rng = mutant(kind, number, seeds)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found, said = verdict(kind, data, rng)
        assert found in ("read", "refused"), f"mutant {number}: {found}: {said}"


@pytest.mark.sample(3)
@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_mutants_in_processes_with_limits(kind: str) -> None:
    """In a program of its own: a child of a process whose torch has threads would wait for them forever."""
    for package in NEEDS.get(kind, ()):
        pytest.importorskip(package)
    command = [sys.executable, "-m", "tests.mutants", kind, "--first", "1000", "--count", "200"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_process_that_takes_too_much_is_a_failure() -> None:
    assert apart(lambda: 7, limited=True) == 7
    with pytest.raises(ChildProcessError, match="exit status 1"):
        apart(lambda: bytes(1 << 31), limited=True)
