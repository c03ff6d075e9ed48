"""Damaged and hostile TorchScript archives: a diagnostic, never a crash, and no code of the file runs."""

from __future__ import annotations

import io
import pickle
import random
import struct
import zipfile

import numpy as np
import pytest

from relaylang.diagnostics import RelayError
from relaylang.frontends.options import Options
from relaylang.frontends.torch import import_pytorch
from relaylang.frontends.torch.torchscript import is_torchscript
from relaylang.interpreter.evaluate import Evaluator

SOURCE = """
class Net(Module):
  __parameters__ = ["weight", ]
  __buffers__ = []
  weight : Tensor
  training : bool
  def forward(self: __torch__.Net, x: Tensor) -> Tensor:
    weight = self.weight
    return torch.mul(x, weight)
"""


def text(value: str) -> bytes:
    """A text in a pickle."""
    return b"X" + struct.pack("<I", len(value)) + value.encode()


def number(value: int) -> bytes:
    """A number in a pickle."""
    return b"J" + struct.pack("<i", value)


def tensor(size: int = 3, stride: int = 1, count: int = 3) -> bytes:
    """A tensor of float32 in a pickle."""
    storage = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(count) + b"tQ"
    shape = b"(" + number(size) + b"t(" + number(stride) + b"t"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + number(0) + shape + b"\x89ccollections\nOrderedDict\n)RtR"


def module(weight: bytes) -> bytes:
    """A pickle of the module with a field."""
    return b"\x80\x02c__torch__\nNet\n)\x81}(" + text("weight") + weight + text("training") + b"\x89ub."


def archive(source: str = SOURCE, objects: bytes = b"", **members: bytes) -> bytes:
    """An archive that is written by hand: torch is not needed."""
    files = {
        "data.pkl": objects or module(tensor()),
        "code/__torch__.py": source.encode(),
        "constants.pkl": pickle.dumps((), 2),
        "data/0": np.arange(3, dtype="float32").tobytes(),
        "version": b"3\n",
    }
    files.update({name.replace("__", "/"): data for name, data in members.items()})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in files.items():
            made.writestr(f"net/{name}", data)
    return out.getvalue()


def body(*lines: str) -> bytes:
    """An archive whose forward has these lines."""
    head = SOURCE[: SOURCE.index("    weight = self")]
    return archive(head + "".join(f"    {line}\n" for line in lines))


def wrong(data: bytes) -> tuple[str, str]:
    """The code of the first diagnostic, and all text."""
    with pytest.raises(RelayError) as raised:
        import_pytorch(data, Options({"x": (2, 3)}), file="net.pt")
    return raised.value.diagnostics[0].code, str(raised.value)


def test_an_archive_is_read_without_torch() -> None:
    data = archive()
    assert is_torchscript(data)
    value = Evaluator(import_pytorch(data, Options({"x": (2, 3)})).module).call("main", (np.ones((2, 3), "float32"),))
    assert np.array_equal(value, np.ones((2, 3), "float32") * np.arange(3, dtype="float32"))


def test_weights_alone_are_no_program() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        made.writestr("weights/data.pkl", pickle.dumps({}, 2))
    code, said = wrong(out.getvalue())
    assert code == "R0802" and "torch.save wrote it" in said


@pytest.mark.parametrize("name", ["os\nsystem", "builtins\neval", "builtins\ngetattr", "torch\nload", "torch.jit\nload"])
def test_a_pickle_runs_nothing(name: str) -> None:
    call = b"c" + name.encode() + b"\n(" + text("touch /tmp/ran") + b"tR"
    code, said = wrong(archive(objects=module(call)))
    assert code == "R0802" and f"names {name}".replace("\n", ".") in said


def test_other_forms_of_calls_in_a_pickle_are_refused() -> None:
    evil = text("os") + text("system") + b"\x93(" + text("true") + b"tR"
    assert wrong(archive(objects=module(evil)))[0] == "R0802"
    for instruction in (b"(" + text("true") + b"ios\nsystem\n", b"(cos\nsystem\n" + text("true") + b"o", b"P0\n", b"\x82\x01"):
        assert wrong(archive(objects=module(instruction)))[0] == "R0802"
    assert wrong(archive(objects=module(b"ctorch\nFloatStorage\n(tR")))[0] == "R0802"
    assert wrong(archive(objects=module(b"ctorch._utils\n_rebuild_tensor_v2\n}b")))[0] == "R0802"


def test_sizes_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "needs 100" in wrong(archive(objects=module(tensor(100))))[1]
    assert wrong(archive(objects=module(tensor(1 << 30, 0))))[0] == "R0016"
    assert wrong(archive(objects=module(tensor(-1))))[0] == "R0802"
    assert wrong(archive()[:200])[0] == "R0802"
    monkeypatch.setenv("RELAY_BUDGET_BYTES", str(1 << 20))
    assert "unpacking" in wrong(archive(data__0=bytes(1 << 24)))[1]


@pytest.mark.parametrize(
    "lines",
    [
        ["return torch.mul(x, [1] * 2"],
        ["while True:", "  y = 1", "return x"],
        ["for i in range(1000000000000):", "  y = i", "return x"],
        ["return (self).forward(x, )"],
        ["y = torch.mul([1], 1000000000000)", "return x"],
        ["y = torch.pow(10, 1000000000000)", "return x"],
        ["return x.__class__"],
        ["return __import__('os').system('true')"],
        ["import os", "return x"],
        ["return (lambda: x)()"],
        ["return y"],
        ["return self.nothing"],
        ["return CONSTANTS.c5"],
        ["return (x).forward()"],
        ["return x[0]"],
        ["a, b, c = x", "return a"],
        ["return torch.view(x, [7])"],
        ["return torch.conv2d(x)"],
        ["return " + "(" * 100 + "x" + ")" * 100 + "".join(f".a{i}" for i in range(500))],
        ["return __torch__.missing(x)"],
        ["return torch.format('{0.__class__}', x)"],
        ["return None"],
    ],
)
def test_wrong_code_is_a_diagnostic(lines: list[str]) -> None:
    assert wrong(body(*lines))[0] in ("R0016", "R0301", "R0801", "R0802", "R0804", "R0805")


@pytest.mark.sweep
def test_every_mutant_is_read_or_refused() -> None:
    data, rng = archive(), random.Random(3)
    for turn in range(600):
        parts = [bytearray(data), bytearray(module(tensor())), bytearray(SOURCE.encode())]
        mutant = parts[turn % 3]
        for _ in range(rng.randint(1, 4)):
            mutant[rng.randrange(len(mutant))] = rng.choice(b"09()[].,:xwtRQ}ub\n ") if turn % 2 else rng.randrange(256)
        given = [bytes(mutant), archive(objects=bytes(mutant)), archive(**{"code/__torch__.py": bytes(mutant)})][turn % 3]
        try:
            import_pytorch(given, Options({"x": (2, 3)}))
        except RelayError as said:
            assert said.diagnostics
