"""The HTML page in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from relaylang.viz import as_html, graph_of
from tests.viz.browser import Browser, chromium
from tests.viz.test_viz import CONVNET, chain, checked, fused

pytestmark = pytest.mark.skipif(chromium() is None, reason="chromium and chromedriver are not on this machine")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    made = Browser(tmp_path_factory.mktemp("profile"))
    yield made
    made.close()


def labels(browser: Browser) -> list[str]:
    return browser.run("return [...document.querySelectorAll('.node')].map(g => g.querySelector('text').textContent)")


def middle(browser: Browser, label: str, selector: str = "rect") -> tuple[float, float]:
    x, y = browser.run(
        "const g = [...document.querySelectorAll('.node')].find(g => g.querySelector('text').textContent.startsWith(arguments[0]));"
        "const r = g.querySelector(arguments[1]).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]",
        label,
        selector,
    )
    return x, y


def test_folding_choosing_searching_panning_zooming(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "net.html"
    page.write_text(as_html(graph_of(fused(CONVNET)), "net"), encoding="utf-8")
    browser.open(page.as_uri())
    folded = labels(browser)
    assert "nn.conv2d + nn.bias_add + nn.relu" in folded and "nn.bias_add" not in folded and "%data" in folded

    browser.click(*middle(browser, "nn.dense"))
    panel = browser.run("return document.getElementById('panel').innerText")
    assert "Tensor[(1, 10), float32]" in panel and "Primitive" in panel and "inputs" in panel

    browser.click(*middle(browser, "nn.conv2d + nn.bias_add + nn.relu", ".fold"))
    assert {"nn.conv2d", "nn.bias_add", "nn.relu"} <= set(labels(browser))
    browser.click(*middle(browser, "nn.conv2d"))
    panel = browser.run("return document.getElementById('panel').innerText")
    assert "kernel_size" in panel and "[3, 3]" in panel and "groups" in panel

    browser.run("document.getElementById('foldall').click()")
    assert labels(browser) == folded or sorted(labels(browser)) == sorted(folded)
    browser.run("document.getElementById('unfold').click()")
    assert "nn.bias_add" in labels(browser) and not any("+" in s for s in labels(browser))

    browser.run("const s = document.getElementById('search'); s.value = 'softmax'; s.dispatchEvent(new Event('input'))")
    assert browser.run("return document.getElementById('count').textContent") == "1 found"
    browser.run("document.getElementById('search').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))")
    assert browser.run("return document.querySelector('.chosen text').textContent") == "nn.softmax"
    x, y = middle(browser, "nn.softmax")
    assert 100 < x < 1100 and 100 < y < 850

    before = browser.run("return [state.x, state.y, state.k]")
    browser.act(
        {"type": "pointerMove", "x": 30, "y": 500, "duration": 0},
        {"type": "pointerDown", "button": 0},
        {"type": "pointerMove", "x": 130, "y": 450, "duration": 50},
        {"type": "pointerUp", "button": 0},
    )
    moved = browser.run("return [state.x, state.y, state.k]")
    assert (moved[0] - before[0], moved[1] - before[1], moved[2]) == (100, -50, before[2])
    browser.act({"type": "scroll", "x": 400, "y": 400, "deltaX": 0, "deltaY": -300, "duration": 0}, kind="wheel")
    assert browser.run("return state.k") > moved[2]
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.log() == []


def test_a_thousand_calls_stay_usable(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "long.html"
    page.write_text(as_html(graph_of(checked(chain(1000)))), encoding="utf-8")
    browser.open(page.as_uri())
    assert browser.run("return state.items.length") == 1001
    took = browser.run("const b = performance.now(); layout(); fit(); return performance.now() - b")
    assert took < 1000
    zooming = "const b = performance.now(); for (let i = 0; i < 10; i++) { zoom(1.1, 500, 400); draw(); }"
    took = browser.run(zooming + " return performance.now() - b")
    assert took < 2000
    browser.run("const s = document.getElementById('search'); s.value = 'nn.relu'; s.dispatchEvent(new Event('input'))")
    assert browser.run("return state.found.length") == 1
    assert browser.log() == []
