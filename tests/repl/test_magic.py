"""`%%relay` cells: values, graphs, diagnostics with places, arrays of Python's, completion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import relaylang as relay
from relaylang.repl.magic import CellError, Magic
from tests.repl.test_notebook import plain


@pytest.fixture
def magic() -> Magic:
    return Magic({"image": np.ones((2, 3), "float32"), "words": ["a"], "half": np.float16(0.5)})


def wrong(magic: Magic, line: str, cell: str) -> str:
    with pytest.raises(CellError) as caught:
        magic.cell(line, cell)
    return re.sub(r"\x1b\[[\d;]*m", "", "\n".join(caught.value._render_traceback_()))


def test_a_cell_defines_and_the_next_one_uses(magic: Magic) -> None:
    defined = magic.cell("", "def @f(%x: int32) -> int32 {\n  %x + 1\n}\n")
    assert defined is not None and repr(defined) == "@f : fn (int32) -> int32"
    shown = magic.cell("", "let %a = @f(1);\n@f(%a)\n:type %a\n")
    assert shown is not None and repr(shown) == "3 : int32\nint32"
    assert "<span style=" in shown._repr_html_() and plain(shown._repr_html_()) == "3 : int32\nint32\n"
    assert repr(magic.line("@f(40)")) == "41 : int32"
    assert magic.cell("", "\n// nothing\n") is None
    assert "nothing is defined" in repr(magic.cell("--reset", ":names"))


def test_arrays_go_in_and_out(magic: Magic) -> None:
    magic.cell("--in image,half --out y,z", "let %y = nn.relu(%image);\nlet %z = add(%half, 1f16);\n%y\n")
    assert magic.names["y"].shape == (2, 3) and magic.names["z"] == np.float16(1.5)
    assert "did you mean image?" in wrong(magic, "--in imag", "1")
    assert "words is not an array of numbers, but a list" in wrong(magic, "--in words", "1")
    said = wrong(magic, "--out q", "1")
    assert "the session has no variable %q" in said and "let %q = ...;" in said
    assert "q" not in magic.names


@pytest.mark.parametrize(
    ("line", "says"),
    [("--no", "unrecognized arguments: --no"), ("--in", "expected one argument"), ("'", "no closing quotation")],
)
def test_wrong_options(magic: Magic, line: str, says: str) -> None:
    said = wrong(magic, line, "1")
    assert said.startswith("error[R0721]: %%relay: ") and says in said


def test_places_are_those_of_the_cell(magic: Magic, capsys: pytest.CaptureFixture[str]) -> None:
    said = wrong(magic, "", ":type 1\n\ndef @f(%x: int32) {\n  nn.rellu(%x)\n}\n")
    assert re.match(r"<input \d+>:5:3: error\[R0202\]: unknown operator `nn.rellu`", said)
    assert "did you mean `nn.relu`?" in said
    assert capsys.readouterr().out == "int32\n"
    assert repr(magic.line(":explain")).startswith("R0202: ")


def test_a_graph_beside_the_value(magic: Magic) -> None:
    shown = magic.cell("--in image --viz", "nn.relu(exp(%image))")
    assert shown is not None and shown.picture is not None
    assert "nn.relu" in str(shown.picture) and "<iframe" in shown._repr_html_() and "nn.relu" in repr(shown)
    drawn = magic.cell("--viz", "def @g(%x: Tensor[(2), float32]) { tanh(%x) }")
    assert drawn is not None and "tanh" in str(drawn.picture)
    svg = relay.viz(magic.session.module)._repr_svg_()
    assert svg is not None and svg.startswith("<svg") and "tanh" in svg


def test_a_diagnostic_in_a_notebook() -> None:
    with pytest.raises(relay.RelayError) as caught:
        relay.parse('"</pre><script>" + nn.rellu(1f)')
    found = caught.value.diagnostics[0]._repr_html_()
    assert "<script>" not in found and "color: #c4212c" in found
    assert plain(found) == str(caught.value.diagnostics[0])


@pytest.fixture
def shell() -> Iterator[Any]:
    module = pytest.importorskip("IPython.core.interactiveshell", reason="notebooks need IPython: pip install ipython")
    shell = module.InteractiveShell.instance()
    shell.run_line_magic("load_ext", "relaylang")
    yield shell
    shell.run_line_magic("unload_ext", "relaylang")
    module.InteractiveShell.clear_instance()


def completions(shell: Any, code: str) -> list[str]:
    """What IPython offers at `|`, with the text in front of it."""
    at = code.index("|")
    completer = pytest.importorskip("IPython.core.completer")
    with completer.provisionalcompleter():
        found = list(shell.Completer.completions(code.replace("|", ""), at))
    return [code[: c.start].rpartition("\n")[2] + c.text for c in found]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("code", "first"),
    [
        ("%%relay\nnn.rel|", "nn.relu"),
        ("%%relay --viz\nlet %y = nn.softmax(%image, ax|", "let %y = nn.softmax(%image, axis="),
        ("%%relay\nlet %long = 1;\nadd(%lo|, 2)", "add(%long"),
        ("%relay :ty|", "%relay :type"),
        ("import js|", "import json"),
    ],
)
def test_completion_in_ipython(shell: Any, code: str, first: str) -> None:
    shell.run_cell("import numpy as np\nimage = np.ones((2, 3), 'float32')")
    assert first in completions(shell, code)[:2]


@pytest.mark.sweep
def test_cells_in_ipython(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_cell("%%relay --out y\nlet %y = 1 + 2;\n%y").success
    assert shell.user_ns["y"] == 3
    failed = shell.run_cell("%%relay\nnn.rellu(1f)")
    assert isinstance(failed.error_in_exec, CellError)
    said = capsys.readouterr().out
    assert "<input 2>:2:1:" in said and "Traceback" not in said
    shell.run_line_magic("unload_ext", "relaylang")
    assert not shell.run_cell("%%relay\n1").success and not completions(shell, "%%relay\nnn.rel|")
    shell.run_line_magic("load_ext", "relaylang")


@pytest.mark.sweep
def test_a_notebook_runs() -> None:
    nbclient = pytest.importorskip("nbclient", reason="notebooks run by nbclient: pip install nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel", reason="notebooks need a kernel: pip install ipykernel")
    texts = ["%load_ext relaylang", "%%relay --viz\nadd(1f, 2f)", "%%relay\nnn.rellu(1f)"]
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in texts])
    nbclient.NotebookClient(book, allow_errors=True, kernel_name="python3").execute()
    shown, failed = book.cells[1].outputs[0], book.cells[2].outputs[0]
    assert "3f : float32" in plain(shown.data["text/html"]).replace("3.0", "3f") and "<iframe" in shown.data["text/html"]
    assert failed.ename == "CellError" and "did you mean `nn.relu`?" in re.sub(r"\x1b\[[\d;]*m", "", "\n".join(failed.traceback))
