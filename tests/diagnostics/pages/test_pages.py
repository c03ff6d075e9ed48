"""Every code has a page, every page's wrong example has exactly that code, and the repaired one has none."""

from __future__ import annotations

import io
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relaylang.cli import main
from relaylang.diagnostics import RelayError
from relaylang.diagnostics.pages import PAGES, Page, add_pages, page_text
from relaylang.ops.extensions import EXTENSIONS, unregister
from relaylang.repl.app import Shell, run_script
from relaylang.repl.session import Session
from tests.cli.command import relay
from tests.diagnostics.pages.tailored import TAILORED
from tests.docs.prose import faults
from tests.shared import ROOT
from tests.test_project import ALL

Caps = pytest.CaptureFixture[str]
#: A code in a source: a text that is nothing else.
_CODE = re.compile(r"""(["'])(R[0-9]{4})\1""")


def raised_codes() -> dict[str, set[str]]:
    """Each code that stands in a module as a text of its own, with the modules. The pages themselves do not count."""
    found: dict[str, set[str]] = {}
    for name, file in ALL.items():
        if not name.startswith("diagnostics.pages"):
            for _, code in _CODE.findall(file.read_text("utf-8")):
                found.setdefault(code, set()).add(name)
    return found


def test_every_raised_code_has_a_page_and_every_page_a_code_that_is_raised() -> None:
    raised = raised_codes()
    assert {code: raised[code] for code in raised.keys() - PAGES.keys()} == {}
    assert PAGES.keys() - raised.keys() == set()


def test_a_code_has_one_page() -> None:
    page = PAGES["R0001"]
    add_pages(page)
    with pytest.raises(ValueError, match="R0001 has a page already: cannot read a file"):
        add_pages(replace(page, title="another title"))
    assert PAGES["R0001"] is page


def test_a_package_adds_a_page(capsys: Caps, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Page("R0690", "the NPU sleeps", "Wake it first.", "npu.run()", "npu.wake()\nnpu.run()", "text")
    monkeypatch.setitem(PAGES, "R0690", page)
    add_pages(page)
    assert relay(capsys, "explain", "R0690").out == page_text(page)


def test_an_error_imports_no_page() -> None:
    call = (
        "import sys; from relaylang.cli import main; main(['check', '-']); "
        "sys.exit(any(name.startswith('relaylang.diagnostics.pages') for name in sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", call], input="nn.rellu(1f)", capture_output=True, text=True, cwd=ROOT)
    assert "error[R0202]" in ran.stderr and ran.returncode == 0, ran.stderr


def codes_of(capsys: Caps, *arguments: str) -> tuple[int, list[str]]:
    ran = relay(capsys, *arguments)
    return ran.status, re.findall(r"(?:error|warning|note)\[(R[0-9]{4})\]", ran.err + ran.out)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with what the pages' calls name."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (tmp_path / "damaged.npz").write_bytes(b"PK\3\4 damaged")
    np.savez(tmp_path / "good.npz", b1=np.zeros(64, np.float32))
    (tmp_path / "weights.bin").write_bytes(b"1234")
    (tmp_path / "unknown_extent.relay").write_text("def @main(%x: Tensor[(?), float32]) { nn.relu(%x) }\n")
    (tmp_path / "known_extent.relay").write_text("def @main(%x: Tensor[(3), float32]) { nn.relu(%x) }\n")
    (tmp_path / "log_of_zero.relay").write_text("def @main() { log(0f) }\n")
    (tmp_path / "broken_file.py").write_text("def broken(:\n")
    (tmp_path / "my_passes.py").write_text(
        "import relaylang as relay\n\n"
        "@relay.transform.module_pass(opt_level=0, name='Nothing')\ndef Nothing(mod, ctx):\n    return mod\n"
    )
    (tmp_path / "failing_pass.py").write_text(
        "import relaylang as relay\n\n"
        "@relay.transform.module_pass(opt_level=0, name='Failing')\ndef Failing(mod, ctx):\n    return mod.nothing\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def calls(text: str) -> list[list[str]]:
    return [shlex.split(line[2:])[1:] for line in text.strip().splitlines()]


def session(text: str) -> list[str]:
    err = io.StringIO()
    run_script(Shell(Session(), io.StringIO(), err, False), iter(text.splitlines(keepends=True)))
    return re.findall(r"error\[(R[0-9]{4})\]", err.getvalue())


def codes_in(page: Page, text: str, place: Path, capsys: Caps) -> set[str]:
    """The codes that an example has, without that of the header which is missing."""
    found: list[str] = []
    verbs = {"relay": ["check"], "lint": ["check", "--lint"], "run": ["run"]}
    if page.kind in verbs:
        file = place / "example.relay"
        file.write_text(text)
        found = codes_of(capsys, *verbs[page.kind], str(file))[1]
    elif page.kind == "shell":
        for call in calls(text):
            found += codes_of(capsys, *call)[1]
    elif page.kind == "session":
        found = session(text)
    elif page.kind == "python":
        try:
            exec(compile(text.strip(), f"<{page.code}>", "exec"), {})
        except RelayError as wrong:
            found = [d.code for d in wrong.diagnostics]
        for name in list(EXTENSIONS):
            unregister(name)
    return set(found) - ({"R0150"} if page.code != "R0150" else set())


@pytest.mark.sample(4)
@pytest.mark.parametrize("code", [code for code, page in PAGES.items() if page.kind != "text"])
def test_the_wrong_example_has_the_error_and_the_right_one_has_none(code: str, place: Path, capsys: Caps) -> None:
    page = PAGES[code]
    wrong, right = codes_in(page, page.wrong, place, capsys), codes_in(page, page.right, place, capsys)
    if code == "R0090":
        assert wrong == {"R0090", "R0201"}
    else:
        assert wrong - {"R0708", "R0151", "R0315"} | ({code} & wrong) == {code}
    assert {c for c in right if c not in ("R0151", "R0315", "R0705")} == set()


def test_every_other_page_has_a_test_of_its_own() -> None:
    assert {code for code, page in PAGES.items() if page.kind == "text"} == set(TAILORED)


@pytest.mark.sample(4)
@pytest.mark.parametrize("code", sorted(TAILORED))
def test_what_raises_the_others(code: str, place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Caps) -> None:
    try:
        said = TAILORED[code](place, monkeypatch)
    except RelayError as wrong:
        said = [d.code for d in wrong.diagnostics]
    if isinstance(said, list) and said and said[0] == "relay":
        said = codes_of(capsys, *said[1:])[1]
    assert code in said, said


# ---- the verb


def test_explain_prints_a_page(capsys: Caps) -> None:
    for given in ("R0112", "r0112", "112"):
        ran = relay(capsys, "explain", given)
        assert ran.status == 0 and ran.err == ""
        assert ran.out == page_text(PAGES["R0112"])
        assert ran.out.startswith("R0112: something is missing\n\n")
        assert "Wrong:\n\n    def @main" in ran.out and "Right:\n\n    def @main" in ran.out


def test_explain_lists_all(capsys: Caps) -> None:
    ran = relay(capsys, "explain")
    assert ran.out.splitlines() == [f"{code}  {page.title}" for code, page in PAGES.items()]
    assert list(PAGES) == sorted(PAGES)
    assert relay(capsys, "explain", "tuple").out == f"R0306  {PAGES['R0306'].title}\n"


def test_explain_of_no_code(capsys: Caps) -> None:
    ran = relay(capsys, "explain", "R9999")
    assert ran.status == 2 and "error[R0700]" in ran.err and "no code R9999" in ran.err


@pytest.mark.parametrize("code", PAGES)
def test_texts_meet_the_standard_of_prose(code: str) -> None:
    paragraphs = [" ".join(part.split()) for part in PAGES[code].text.strip().split("\n\n")]
    assert list(faults("\n\n".join(paragraphs))) == []


def test_pages_fit_a_terminal() -> None:
    for page in PAGES.values():
        for line in page_text(page).splitlines():
            assert len(line) <= 130, (page.code, line)
            assert line.isprintable(), (page.code, line)
    assert "Wrong:\n\n    (an empty file)\n" in page_text(PAGES["R0002"])


def test_main_is_what_the_tests_call() -> None:
    assert main(["explain", "R0101"]) == 0
