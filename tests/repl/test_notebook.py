"""Programs in notebooks, in terminals, and in Python's prompt."""

from __future__ import annotations

import html
import re
import sys
import types
from typing import Any

import pytest

import relaylang as relay
from relaylang.repl import notebook
from tests.shared import ROOT

TEXT = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  nn.relu(%x)
}
"""


def plain(text: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def test_print_and_repr_show_text() -> None:
    x = relay.var("x", shape=(2, 3))
    call = relay.add(relay.nn.relu(x), relay.const(1.0))
    for text in (str(call), repr(call), call._repr_html_()):
        assert "nn.relu(%x)" in plain(text) and "add(%0, 1f)" in plain(text)
    f = relay.Function([x], call)
    assert str(f).startswith("fn (%x: Tensor[(2, 3), float32])") and repr(f) == str(f)
    mod = relay.parse(TEXT)
    assert str(mod) == TEXT and repr(mod) == TEXT.partition("\n")[2].rstrip("\n")
    assert repr(x) == "Var(%x)" and repr(relay.GlobalVar("f")) == "GlobalVar(@f)"


@pytest.mark.sweep
def test_repr_of_a_huge_program_is_short_and_quick() -> None:
    value: Any = relay.var("x", shape=(2,))
    for _ in range(100_000):
        value = relay.Call(relay.ops.get("exp"), [value])
    assert len(repr(value)) < 100 and "Call" in repr(value) and "print" in repr(value)
    shared: Any = relay.var("x", shape=(2,))
    for _ in range(30):
        shared = relay.add(shared, shared)
    assert "add(%28, %28)" in repr(shared)
    many = relay.Function([], relay.Tuple([relay.const(float(n)) for n in range(250)]))
    assert repr(relay.IRModule.from_expr(many))


def test_repr_of_a_wrong_node_says_so() -> None:
    call = relay.Call(relay.ops.get("exp"), [relay.var("x")])
    object.__setattr__(call, "args", (5,))
    assert "Call" in repr(call)


def test_pictures_in_text_have_no_frames() -> None:
    shown = notebook.highlighted("fn(%x: 2×3)\n  ●  %0 = nn.relu(%x) : 2×3\n▒▒▒")
    assert "×" in shown and "●" in shown and "border:" not in shown and "font-family: monospace" in shown


def test_html_is_coloured_and_escaped() -> None:
    evil = relay.Var("<script>alert(1)</script>", relay.TensorType((2,)))
    found = relay.Function([evil], relay.nn.relu(evil))._repr_html_()
    assert "<script" not in found and "&lt;script&gt;" in found
    body = relay.parse(TEXT)._repr_html_()
    assert "<span style=" in body and "def @main(%x: Tensor[(2, 3), float32])" in plain(body)


def test_html_of_a_long_program_is_cut() -> None:
    value: Any = relay.var("x", shape=(2,))
    for _ in range(5000):
        value = relay.Call(relay.ops.get("exp"), [value])
    found = value._repr_html_()
    assert "more lines" in found and len(found) < 2_000_000


def test_show_prints(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    mod = relay.parse(TEXT)
    mod.show()
    assert capsys.readouterr().out == TEXT.partition("\n")[2]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    mod["main"].body.show()
    out = capsys.readouterr().out
    assert "\x1b[" in out and "nn.relu" in re.sub(r"\x1b\[[\d;]*m", "", out)


def test_show_in_a_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Any] = []
    ipython, display = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=1)  # type: ignore[attr-defined]
    display.display = shown.append  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    relay.parse(TEXT).show()
    assert "nn.relu" in plain(shown[0]._repr_html_())
    assert notebook._display() is not None
    ipython.get_ipython = lambda: None  # type: ignore[attr-defined]
    assert notebook._display() is None


def test_a_picture_in_a_notebook(tmp_path: Any) -> None:
    mod = relay.parse((ROOT / "examples/convnet.relay").read_text())
    picture = relay.viz(mod, height=300)
    frame = picture._repr_html_()
    assert frame.startswith('<iframe sandbox="allow-scripts"') and "height: 300px" in frame
    inner = re.search(r'srcdoc="([^"]*)"', frame)
    assert inner is not None and "nn.conv2d" in html.unescape(inner[1]) and "<" not in inner[1]
    assert "nn.conv2d" in str(picture) and relay.viz.graph_of(mod)
    picture.save(tmp_path / "net.html")
    assert (tmp_path / "net.html").read_text() == html.unescape(inner[1])
    with pytest.raises(relay.RelayError, match="R0001"):
        picture.save(tmp_path / "none" / "net.html")
