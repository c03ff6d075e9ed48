"""The built pages in a browser, from a disk: they search, fit narrow windows, and need no network."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.shared import PATIENCE, ROOT
from tests.viz.browser import Browser, chromium

pytestmark = [
    pytest.mark.sweep,
    pytest.mark.skipif(chromium() is None, reason="chromium and chromedriver are not on this machine"),
]

WIDE = "return [document.documentElement.scrollWidth, window.innerWidth]"
LOADED = "return performance.getEntriesByType('resource').map((e) => e.name)"
FOUND = "return [...document.querySelectorAll('.md-search-result__item h2')].map((e) => e.textContent.trim())"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mkdocstrings", reason="pip install 'relaylang[docs]'")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder)))
    return folder


@pytest.fixture(scope="module")
def browser(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


@pytest.mark.parametrize(("typed", "wanted"), [("conv2d", "nn.conv2d"), ("R0221", "R0221: no such library")])
def test_the_search_needs_no_server(browser: Browser, site: Path, typed: str, wanted: str) -> None:
    browser.open(f"file://{site}/index.html?q={typed}")
    deadline = time.monotonic() + PATIENCE
    while wanted not in (found := browser.run(FOUND)):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


@pytest.mark.parametrize(("typed", "first"), [("relu", "nn.relu"), ("add", "add"), ("nn.conv2d", "nn.conv2d"), ("conv", "nn.conv1d")])
def test_the_search_puts_the_operator_of_that_name_first(browser: Browser, site: Path, typed: str, first: str) -> None:
    browser.open(f"file://{site}/index.html?q={typed}")
    deadline = time.monotonic() + PATIENCE
    while not (found := browser.run(FOUND)):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert found[0] == first


PAGES = [
    "index",
    "operators",
    "operators/tensor",
    "reference/passes",
    "install",
    "faq",
    "changes",
    "codes",
    "beside_tvm",
    "mistakes",
    "tutorial",
]


@pytest.mark.parametrize("page", PAGES)
def test_pages_fit_narrow_windows_and_need_no_network(browser: Browser, site: Path, page: str) -> None:
    for width in (420, 1280):
        browser.resize(width, 900)
        browser.open(f"file://{site}/{page}.html")
        needed, there = browser.run(WIDE)
        assert needed <= there, (page, width)
    assert [name for name in browser.run(LOADED) if not name.startswith("file:")] == []
    assert browser.log() == []


def test_an_old_link_to_an_operator_leads_to_it(browser: Browser, site: Path) -> None:
    browser.open(f"file://{site}/operators.html#op-nn-conv2d")
    assert browser.run("return document.querySelector(':target').getAttribute('href')") == "operators/nn_conv.html#op-nn-conv2d"


def test_pages_of_operators_are_small_enough_to_open_at_once(browser: Browser, site: Path) -> None:
    for page in (site / "operators").glob("*.html"):
        browser.open(f"file://{page}")
        assert browser.run("return document.querySelectorAll('*').length") < 8000, page.name
