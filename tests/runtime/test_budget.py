"""Files that ask for far more than their size end in R0016. It names the need, the amount, and the setting."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from typing import Any

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.runtime.budget import BYTES_PER_BYTE, NODES_PER_LAYER, Budget, Exhausted
from relaylang.runtime.params import load_params


def said(call: Any) -> tuple[str, str]:
    """The code of the first diagnostic, and all text."""
    with pytest.raises(RelayError) as raised:
        call()
    return raised.value.diagnostics[0].code, str(raised.value)


def test_what_a_file_has_raises_its_budget() -> None:
    budget = Budget("f", 10, nodes=5, bytes=7)
    budget.take_bytes(7 + 10 * BYTES_PER_BYTE, "all")
    budget.grant(layers=2)
    budget.grant_file("beside", 3)
    budget.grant_file("beside", 3)
    budget.take_bytes(3 * BYTES_PER_BYTE, "the file beside")
    budget.take_nodes(5 + 2 * NODES_PER_LAYER, "all")
    with pytest.raises(Exhausted, match="one more needs 70 nodes in all, and the budget of this file is 69"):
        budget.take_nodes(1, "one more")
    code, text = said(lambda: budget.take_bytes(1, "one more"))
    assert code == "R0016" and "f: one more needs 216 bytes in all" in text and "RELAY_BUDGET_BYTES=256" in text


def test_the_environment_sets_budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELAY_BUDGET_BYTES", "100")
    assert Budget("f").bytes == 100 and Budget("f", bytes=3).bytes == 3
    monkeypatch.setenv("RELAY_BUDGET_NODES", "many")
    assert said(lambda: Budget("f"))[1].startswith("error[R0016]: RELAY_BUDGET_NODES must be a whole number, not 'many'")


def archive(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(f"{name}.npy", content)
    return out.getvalue()


def npy(shape: str, data: bytes = b"", kind: str = "<f4") -> bytes:
    """A .npy file whose header claims a shape."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


@pytest.mark.parametrize("shape", ["(1152921504606846976,)", "(0, 4611686018427387904)", "(-1, -1)", f"{(1,) * 70}", "(2, 3)"])
def test_a_header_that_claims_more_than_there_is(tmp_path, shape: str) -> None:
    from relaylang.cli.inputs import load_array

    path = tmp_path / "p.npz"
    path.write_bytes(archive(w=npy(shape)))
    code, text = said(lambda: load_params(path))
    assert code == "R0012" and "'w'" in text
    path = tmp_path / "p.npy"
    path.write_bytes(npy(shape))
    assert said(lambda: load_array(str(path)))[0] == "R0705"


@pytest.mark.sweep
def test_an_archive_that_swells(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("RELAY_BUDGET_BYTES", str(1 << 26))
    path = tmp_path / "bomb.npz"
    path.write_bytes(archive(**{f"w{i}": npy(f"({1 << 22},)", bytes(1 << 24)) for i in range(6)}))
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    code, text = said(lambda: load_params(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert code == "R0016" and "unpacking 'w" in text and peak < 1 << 27


def test_a_member_of_more_bytes_than_it_claims(tmp_path) -> None:
    data = bytearray(archive(w=npy("(4194304,)", bytes(1 << 24))))
    size = len(npy("(4194304,)")) + (1 << 24)
    at = data.rindex(size.to_bytes(4, "little"))  # the directory's claim
    data[at : at + 4] = (200).to_bytes(4, "little")
    path = tmp_path / "p.npz"
    path.write_bytes(data)
    tracemalloc.start()
    assert said(lambda: load_params(path))[0] == "R0012"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 22


def test_values_that_fit_are_read(tmp_path) -> None:
    path = tmp_path / "p.npz"
    path.write_bytes(archive(w=npy("(2,)", np.float32([1, 2]).tobytes())))
    assert load_params(path)["w"].tolist() == [1, 2]
