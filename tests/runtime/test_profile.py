"""Profiles of compiled programs: the cost of each kernel."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from relaylang.backends import compile_module
from relaylang.backends.cpu import emit_c
from relaylang.diagnostics import RelayError
from relaylang.runtime.artifact import load
from relaylang.runtime.cpu import CpuArtifact
from relaylang.runtime.peaks import SIZES, Peaks
from relaylang.syntax import parse

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(8, 64), float32], %w: Tensor[(32, 64), float32], %c: bool) {
  %0 = nn.dense(%x, %w, units=32);
  if (%c) {
    nn.softmax(nn.relu(%0))
  } else {
    cumsum(%0, axis=1)
  }
}
"""
X, W = np.ones((8, 64), "f4"), np.ones((32, 64), "f4")


@pytest.fixture(scope="module", params=["-num-threads=1", "-march=generic"])
def artifact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CpuArtifact:
    mod = parse(TEXT, "net.relay").module
    assert mod is not None
    made = compile_module(mod, f"c -profile -cflags=-O1 {request.param}", {"w": W})
    path = tmp_path_factory.mktemp("profile") / "net.so"
    made.save(path)
    found = load(path)
    assert isinstance(found, CpuArtifact)
    return found


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("RELAYLANG_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.sample(2)
def test_each_kernel_has_its_cost(artifact: CpuArtifact) -> None:
    profile = artifact.profile(inputs={"x": X, "c": np.bool_(True)}, repeat=3)
    assert profile.times.shape == (3, len(profile.costs), 2)
    costs = {cost.operators: cost for cost in profile.costs}
    dense = costs["nn.dense"]
    assert (dense.place, dense.line) == ("net.relay:3:8", "%0 = nn.dense(%x, %w, units=32);")
    assert dense.macs == 8 * 32 * 64 and dense.type == "Tensor[(8, 32), float32]"
    # The packed weight may have further columns, for whole blocks.
    assert 0 <= dense.bytes - 4 * (8 * 64 + 32 * 64 + 8 * 32) < 4 * 32 * 64
    assert dense.seconds > 0 and dense.gflops == pytest.approx(2e-9 * dense.macs / dense.seconds)
    # The branch that is not taken has no time, and no share.
    skipped = [cost for name, cost in costs.items() if "cumsum" in name]
    assert [(c.seconds, c.share, c.roofline) for c in skipped] == [(0.0, 0.0, 0.0)]
    assert sum(c.share for c in profile.costs) == pytest.approx(1)
    taken = profile.times[-1][profile.times[-1, :, 1] > 0]
    assert (np.diff(taken.ravel()) >= 0).all()


def test_the_forms_of_a_profile(artifact: CpuArtifact) -> None:
    profile = artifact.profile(X, np.bool_(True), repeat=1)
    lines = str(profile).splitlines()
    assert lines[0].split() == ["kernel", "us", "share", "GFLOP/s", "MB", "GB/s", "roofline", "bound", "type", "place"]
    assert lines[-2].startswith("all") and lines[-1].startswith("peaks of")
    assert len(profile.table(most=1).splitlines()) == 4
    record = json.loads(profile.json())
    assert [k["operators"] for k in record["kernels"]] == [c.operators for c in profile.costs]
    events = json.loads(profile.chrome_trace())["traceEvents"]
    assert [e["name"] for e in events] == [c.operators for c in profile.costs if c.seconds]
    assert events[0]["ts"] == 0 and all(e["args"]["place"].startswith("net.relay") for e in events if e["args"]["place"])


@pytest.mark.sweep
def test_the_highest_peaks_are_kept(artifact: CpuArtifact, own_cache: Path) -> None:
    artifact.profile(X, np.bool_(True), repeat=1)
    file = own_cache / "peaks.json"
    (key,) = json.loads(file.read_text())
    file.write_text(json.dumps({key: [1e30] * (2 + len(SIZES))}))
    assert artifact.profile(X, np.bool_(True), repeat=1).peaks == Peaks(1e30, 1e30, (1e30,) * len(SIZES))
    for damaged in ("", "[]", json.dumps({key: [1]}), json.dumps({key: ["x"] * 8}), json.dumps({key: None})):
        file.write_text(damaged)
        assert artifact.profile(X, np.bool_(True), repeat=1).peaks.floats < 1e30


def test_other_programs_have_no_clock(artifact: CpuArtifact) -> None:
    mod = parse(TEXT).module
    assert mod is not None
    assert "relay_times" not in emit_c(mod) and "relay_times" in emit_c(mod, options={"profile": True})
    plain = compile_module(mod, "c -cflags=-O0", {"w": W})
    assert isinstance(plain, CpuArtifact)
    with pytest.raises(RelayError, match="without the times of its kernels"):
        plain.profile(X, np.bool_(True))
    with pytest.raises(RelayError, match="wants 1 run or more, not 0"):
        artifact.profile(X, np.bool_(True), repeat=0)
    with pytest.raises(RelayError, match="the input c"):
        artifact.profile(X)
