"""The documentation: its blocks run, its calls exist, its links go somewhere, it is built, and it needs no network."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from relaylang.cli import VERBS
from relaylang.cli.command import make_parser
from relaylang.cli.usage import UsageError
from relaylang.ops import FAMILIES
from tests.docs.blocks import blocks, calls, fits, indented, run_call, run_page, transcripts
from tests.plugins.packages import undone
from tests.shared import ROOT

PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
#: Pages that a script writes, whose test runs their blocks (test_diagnostics_page.py).
MADE = {"diagnostics"}
WITH_BLOCKS = [p for p in PAGES if p.stem not in MADE and blocks(p.read_text(encoding="utf-8"))]


@pytest.mark.sample(3)
@pytest.mark.parametrize("page", WITH_BLOCKS, ids=lambda p: p.stem)
def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    with undone():
        wrong = run_page(page)
    assert wrong == [], "\n".join(wrong)


@pytest.mark.sample(3)
@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_every_call_is_one_that_relay_takes(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    lines = [(n, line.removeprefix("$ ")) for n, line in indented(text)]
    lines += [(b.line, call) for b in blocks(text) if b.language == "console" for call, _ in calls(b.text)]
    wrong = []
    for number, line in lines:
        found = re.search(r"(?:^|\| )(relay (?!VERB)[a-z].*)$", line)
        if found is None or line.startswith(("relay>", "//")):
            continue
        try:
            words = shlex.split(re.split(r"\s{2,}|\s[|>]\s|\s#", found[1])[0])
        except ValueError:
            continue  # goes on in the next line
        if len(words) < 2 or words[-1] == "\\" or words[1] not in VERBS:
            if len(words) > 1 and words[1] not in VERBS:
                wrong.append(f"{page.name}:{number}: there is no relay {words[1]}")
            continue
        try:
            make_parser(words[1]).parse_args(words[1:])
        except UsageError as e:
            wrong.append(f"{page.name}:{number}: {e.args[0]}")
    assert wrong == []


WRONG = """#[version = "0.0.5"]
def @main(%x: Tensor[(1, 8), float32], %w: Tensor[(4, 7), float32]) {
  nn.relu(nn.dense(%x, %w, units=4))
}
"""


def test_what_the_readme_shows_is_what_comes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "wrong.relay").write_text(WRONG)
    shown = 0
    for number, command, wanted in transcripts((ROOT / "README.md").read_text(encoding="utf-8")):
        if not wanted:
            continue
        if command.startswith("relay repl"):
            lines = wanted.splitlines()
            inputs = [s.removeprefix("relay> ") for s in lines if s.startswith("relay> ") and s != "relay> :help"]
            command = f"echo {shlex.quote(chr(10).join(inputs))} | {command}"
            wanted = "".join(s + "\n" for s in lines if not s.startswith("relay> "))
        printed = run_call(command)
        assert fits(re.sub(r"[\d.]+ kB", "... kB", wanted), printed), f"README.md:{number}: {command} prints\n{printed}"
        shown += 1
    assert shown >= 6


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_links_go_somewhere(page: Path) -> None:
    made = {"operators.md", "grammar.md", "codes.md", "changes.md", "reference/index.md"}
    text = re.sub(r"^```.*?^```$|`[^`\n]*`|^    [^\n]*$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if not target.startswith(("http://", "https://")) and target not in made:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.sweep
def test_the_pages_are_built_and_need_no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mkdocstrings", reason="pip install 'relaylang[docs]'")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    monkeypatch.setenv("NO_MKDOCS_2_WARNING", "1")
    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path / "site")))
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//', text), page.name
        for link in re.findall(r"<link[^>]*>", text):
            assert "stylesheet" not in link or not re.search(r'href="(?:https?:)?//', link), link
    operators = (tmp_path / "site/operators.html").read_text(encoding="utf-8")
    for family, ops in FAMILIES.items():
        reference = (tmp_path / f"site/operators/{family}.html").read_text(encoding="utf-8")
        assert f'href="operators/{family}.html"' in operators
        for op in ops:
            anchor = "op-" + op.name.replace(".", "-")
            assert f'<h2 id="{anchor}">{op.name}<' in reference and f'<a href="#{anchor}">{op.name}</a>' in reference
            assert f'<a href="operators/{family}.html#{anchor}" id="{anchor}">{op.name}</a>' in operators
    assert "default [1, 1]" in (tmp_path / "site/operators/nn_conv.html").read_text(encoding="utf-8")
    passes = (tmp_path / "site/reference/passes.html").read_text(encoding="utf-8")
    assert 'id="relaylang.transform.FuseOps"' in passes and "fuse_opt_level" in passes
    changes = (tmp_path / "site/changes.html").read_text(encoding="utf-8")
    assert re.search(r'<h2 id="[^"]*">0\.1\.0', changes)
    assert "LOCAL" in (tmp_path / "site/grammar.html").read_text(encoding="utf-8")
    index = json.loads((tmp_path / "site/search/search_index.json").read_text(encoding="utf-8"))
    assert {"data", "nn.dense"} <= {w for d in index["docs"] if d["title"] == "nn.dense" for w in re.split(r"[(,\s]+", d["text"])}
    tutorial = (tmp_path / "site/tutorial.html").read_text(encoding="utf-8")
    assert '<span class="gp">$ </span>' in tutorial and '<span class="gp">%' not in tutorial
    assert '<span class="cp">#[version' in tutorial and '<span class="gr">error[R0202]</span>' in tutorial
    gallery = (tmp_path / "site/diagnostics.html").read_text(encoding="utf-8")
    assert gallery.count('<span class="gr">error[R') >= 15 and '<span class="kd">def' in gallery
    codes = (tmp_path / "site/codes.html").read_text(encoding="utf-8")
    assert "(an empty file)" in codes and "\0" not in codes and "\N{SYMBOL FOR NULL}" in codes
    beside = (tmp_path / "site/beside_tvm.html").read_text(encoding="utf-8")
    assert beside.count("<table>") >= 8 and "measured:" not in beside
    assert "dense" in re.split(index["config"]["separator"], "nn.dense(data, weight)")


def test_every_page_is_in_the_contents() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [p.name for p in (ROOT / "docs").glob("*.md") if f" {p.name}" not in listed] == []
