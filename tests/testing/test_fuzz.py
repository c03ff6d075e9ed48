"""The fuzz target passes its seeds and a few blind changes of them. atheris runs it where it is installed."""

from __future__ import annotations

import importlib.util
import random
import subprocess
import sys
from pathlib import Path

import pytest

from relaylang.testing.hostile import SMALL, TEXTS
from tests.shared import PATIENCE, few

ROOT = Path(__file__).resolve().parents[2]
SEEDS = sorted([*(ROOT / "fuzz" / "seeds").glob("*.relay"), *(ROOT / "examples").glob("*.relay")])

_spec = importlib.util.spec_from_file_location("fuzz_reader", ROOT / "fuzz" / "reader.py")
assert _spec is not None and _spec.loader is not None
target = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(target)


def test_seeds() -> None:
    assert len(SEEDS) > 60
    for path in SEEDS:
        target.one_input(path.read_bytes())


def test_hostile_texts() -> None:
    for make in TEXTS.values():
        target.one_input(make(40).encode("utf-8", "surrogatepass"))
    for text in SMALL.values():
        target.one_input(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("seed", few(range(8), 0, 1))
def test_blind_changes(seed: int) -> None:
    rng = random.Random(seed)
    texts = [p.read_bytes() for p in SEEDS]
    for _ in range(60):
        data = bytearray(rng.choice(texts))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(4):
                case 0:
                    del data[at : at + rng.randrange(1, 9)]
                case 1:
                    data[at:at] = bytes([rng.randrange(256)])
                case 2:
                    other = rng.choice(texts)
                    begin = rng.randrange(len(other))
                    data[at:at] = other[begin : begin + rng.randrange(1, 40)]
                case _:
                    data[at:at] = rng.choice([b"(", b")", b"{", b"}", b";", b",", b'"', b"/*", b"let ", b"%0", b"=>", b"#"])
        target.one_input(bytes(data))


@pytest.mark.sweep
@pytest.mark.skipif(importlib.util.find_spec("atheris") is None, reason="atheris is not installed (pip install '.[fuzz]')")
def test_the_fuzzer_runs(tmp_path: Path) -> None:
    # No limit of resident memory: a child's peak includes its parent's at the fork, so it would measure the tests before this one.
    options = ["-runs=300", "-max_len=400", "-rss_limit_mb=0", "-malloc_limit_mb=512"]
    command = [sys.executable, str(ROOT / "fuzz" / "reader.py"), *options, str(tmp_path), str(SEEDS[0].parent)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr[-2000:]
