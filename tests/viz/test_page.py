"""The HTML page in a browser."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.viz import Graph, as_html, fold_repeats, graph_of
from relaylang.viz.boxes import Box
from relaylang.viz.graph import REASON
from relaylang.viz.scene import Line, Placed, Plans, Scene, scene_of
from relaylang.viz.steps import DrawSteps
from tests.viz.browser import Browser, chromium
from tests.viz.test_scene import NETWORKS, assert_apart, blocks, typed
from tests.viz.test_viz import BRANCHES, CONVNET, SKIP, chain, checked, fused

pytestmark = pytest.mark.skipif(chromium() is None, reason="chromium and chromedriver are not on this machine")


#: The page's boxes, the straight parts of its edges, and the edges that the boxes name.
PLACED = """
const parts = (l) => [[l.x0, l.y0, l.x0, l.track], [l.x0, l.track, l.x1, l.track], [l.x1, l.track, l.x1, l.y1]];
return [state.boxes.map((b) => [b.key, b.open, b.x, b.y, b.w, b.h]), state.lines.map((l) => [l.from, l.to, parts(l)]),
  state.boxes.flatMap((b) => [...new Set(b.from)].map((f) => [f, b.key]))];
"""


def titles(browser: Browser) -> list[str]:
    return browser.run("return [...document.querySelectorAll('#view .box')].map(g => g.querySelector('.title').textContent)")


def middle(browser: Browser, title: str, selector: str = "rect") -> tuple[float, float]:
    x, y = browser.run(
        "const boxes = [...document.querySelectorAll('#view .box')];"
        "const g = boxes.find(g => g.querySelector('.title').textContent.startsWith(arguments[0]));"
        "const r = g.querySelector(arguments[1]).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]",
        title,
        selector,
    )
    return x, y


def scene(browser: Browser) -> Scene:
    """What the page shows, in the form of the scenes of SVG pictures."""
    boxes, lines, wanted = browser.run(PLACED)
    made = Scene(width=float("inf"), height=float("inf"))
    made.boxes = [Placed(key, Box(0, ""), x + 1, y + 1, w, h, is_open) for key, is_open, x, y, w, h in boxes]
    for start, end, parts in lines:
        made.lines.append(Line(start, end, [(x + 1, y + 1) for x, y in (parts[0][:2], *(p[2:] for p in parts))]))
    assert {(line.start, line.end) for line in made.lines if line.end} == {tuple(pair) for pair in wanted}
    return made


def opened(browser: Browser, tmp_path: Path, graph: Graph, title: str = "net") -> None:
    page = tmp_path / "net.html"
    page.write_text(as_html(graph, title), encoding="utf-8")
    browser.open(page.as_uri())


@pytest.mark.sweep
@pytest.mark.sample(4)
@pytest.mark.parametrize("path", NETWORKS, ids=lambda p: p.stem)
def test_geometry_of_networks(browser: Browser, tmp_path: Path, path: Path) -> None:
    """Folded the page has the places of the SVG picture. Unfolding one box and all boxes moves the others apart."""
    graph = fold_repeats(graph_of(typed(path)))
    opened(browser, tmp_path, graph)
    folded = scene(browser)
    assert_apart(folded)
    if len(graph.roots()) == 1:
        drawn = scene_of(Plans(graph))
        assert [(p.key, p.w, p.h) for p in drawn.boxes] == [(p.key, p.w, p.h) for p in folded.boxes]
        moves = {(round(a.x - b.x, 1), round(a.y - b.y, 1)) for a, b in zip(drawn.boxes, folded.boxes)}
        assert len(moves) == 1 and len(drawn.lines) == len(folded.lines)
    inside = browser.run("return state.boxes.filter((b) => b.box.inner.length).map((b) => b.key)")
    for key in inside[:2]:
        browser.run("fold(arguments[0])", key)
        assert_apart(scene(browser))
    browser.run("document.getElementById('unfold').click()")
    unfolded = scene(browser)
    assert_apart(unfolded)
    assert len(unfolded.boxes) > len(folded.boxes) or not inside
    browser.run("document.getElementById('foldall').click()")
    assert [(p.key, p.x, p.y) for p in scene(browser).boxes] == [(p.key, p.x, p.y) for p in folded.boxes]
    assert browser.log() == []


def test_branches_and_clauses_unfold(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, graph_of(checked(BRANCHES)))
    browser.run("document.getElementById('unfold').click()")
    assert_apart(scene(browser))
    parts = browser.run("return state.labels.filter((l) => l.cls === 'part').map((l) => l.text)")
    assert {"then", "else", "Cons(%h, %t)", "Nil"} <= set(parts)
    assert parts.count("Nil") == 1  # @sum is not unfolded inside itself
    browser.run("state.root = 0; state.open.clear(); document.getElementById('unfold').click()")
    assert_apart(scene(browser))


def test_a_page_that_is_shown_later_opens_at_its_inputs(browser: Browser, tmp_path: Path) -> None:
    """Notebooks that are exported to HTML have the page in a frame, which may have no width at first."""
    page = tmp_path / "outer.html"
    text = as_html(graph_of(fused(CONVNET)), "net").replace("&", "&amp;").replace('"', "&quot;")
    page.write_text(f'<iframe id="f" style="width: 0; height: 600px; border: 0" srcdoc="{text}"></iframe>', encoding="utf-8")
    browser.open(page.as_uri())
    inside = "const page = document.getElementById('f').contentDocument; return "
    browser.wait(inside + "page.getElementById('view')?.hasAttribute('transform')")
    browser.run("document.getElementById('f').style.width = '900px'")
    shown = "[...page.querySelectorAll('.box')].map((b) => b.getBoundingClientRect()).some((r) => r.left > 0 && r.right < 900)"
    assert browser.wait(inside + shown)


def test_folding_choosing_searching_panning_zooming(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, graph_of(fused(CONVNET)))
    first = titles(browser)
    assert "⊞ nn.conv2d + nn.bias_add + nn.relu" in first and "nn.bias_add" not in first and "%data" in first
    size = browser.run("return document.querySelector('.pill .title').getBoundingClientRect().height")
    assert size > 10
    x, y = middle(browser, "%data")
    assert 0 < x < 1200 and 40 < y < 300
    assert browser.run("const m = document.getElementById('map'); return m.width > 0 && state.mapScale > 0")

    browser.click(*middle(browser, "⊞ nn.dense"))
    panel = browser.run("return document.getElementById('panel').innerText")
    assert "Tensor[(1, 10), float32]" in panel and "Primitive" in panel and "inputs" in panel

    browser.click(*middle(browser, "⊞ nn.conv2d + nn.bias_add + nn.relu", ".fold"))
    assert {"nn.conv2d", "nn.bias_add", "nn.relu"} <= set(titles(browser))
    browser.click(*middle(browser, "nn.conv2d"))
    panel = browser.run("return document.getElementById('panel').innerText")
    assert "kernel_size" in panel and "[3, 3]" in panel and "groups" in panel
    assert browser.run("return [...document.querySelectorAll('#panel .default td')].map((td) => td.textContent).includes('groups')")
    assert "nn.conv2d(%data" in browser.run("return document.querySelector('#panel code').textContent")

    browser.run("document.getElementById('foldall').click()")
    assert sorted(titles(browser)) == sorted(first)
    browser.run("const s = document.getElementById('search'); s.value = 'softmax'; s.dispatchEvent(new Event('input'))")
    assert browser.run("return document.getElementById('count').textContent") == "2 found"  # the call, and the operator in it
    browser.run("document.getElementById('search').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))")
    assert browser.run("return document.getElementById('count').textContent") == "1 of 2"
    assert browser.run("return document.querySelector('.chosen .title').textContent") == "⊞ nn.softmax"
    x, y = middle(browser, "⊞ nn.softmax")
    assert 100 < x < 1100 and 100 < y < 850

    before = browser.run("return [state.x, state.y, state.k]")
    browser.act(
        {"type": "pointerMove", "x": 30, "y": 500, "duration": 0},
        {"type": "pointerDown", "button": 0},
        {"type": "pointerMove", "x": 130, "y": 450, "duration": 50},
        {"type": "pointerUp", "button": 0},
    )
    moved = browser.run("return [state.x, state.y, state.k]")
    assert moved == pytest.approx([before[0] + 100, before[1] - 50, before[2]])
    browser.act({"type": "scroll", "x": 400, "y": 400, "deltaX": 0, "deltaY": -300, "duration": 0}, kind="wheel")
    assert browser.run("return state.k") > moved[2]
    assert browser.run("return performance.getEntriesByType('resource').length") == 0
    assert browser.log() == []


def test_pictures_of_the_page(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, graph_of(checked(SKIP)))
    text = browser.run("return svgText()")
    assert text.startswith("<svg") and "var(--" not in text and "nn.relu" in text
    browser.run("window.made = null; pngOf((blob) => { window.made = [blob.type, blob.size]; })")
    made = browser.wait("return window.made")
    assert made[0] == "image/png" and made[1] > 1000
    assert browser.log() == []


def test_numbers_of_constants(browser: Browser, tmp_path: Path) -> None:
    x = relay.var("x", shape=(4,), dtype="float32")
    mod = relay.IRModule.from_expr(relay.Function([x], relay.add(x, relay.const(np.array([1, -2, 0, 5], "float32")))))
    opened(browser, tmp_path, graph_of(mod))
    browser.click(*middle(browser, "add"))
    panel = browser.run("return document.getElementById('panel').textContent")
    assert "least" in panel and "-2" in panel and "greatest" in panel and "average" in panel
    assert browser.run("return document.querySelectorAll('#panel .bars rect').length") == 24


@pytest.mark.sweep
def test_thousands_of_calls_stay_usable(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, graph_of(checked(chain(3000))))
    assert browser.run("return state.boxes.length") == 3001
    browser.run("refresh(); for (let i = 0; i < 10; i++) { zoom(1.1, 500, 400); draw(); }")
    browser.run("const s = document.getElementById('search'); s.value = 'nn.relu'; s.dispatchEvent(new Event('input'))")
    assert browser.run("return state.found.length") == 1
    # where letters cannot be read, none are drawn; the saved picture has them
    assert browser.run("state.k = 0.1; draw(); return document.querySelectorAll('#view text').length") == 0
    assert "add" in browser.run("return svgText()")
    shown = browser.run("home(); choose(state.boxes[1].key); return document.querySelectorAll('#view .chosen, #view .near').length")
    assert shown > 2 and browser.run("choose(null); return document.querySelectorAll('#view .chosen, #view .near').length") == 0
    assert browser.log() == []


def test_stepping_through_passes_and_changes(browser: Browser, tmp_path: Path) -> None:
    mod = checked(CONVNET)
    steps = DrawSteps(mod)
    with relay.transform.PassContext(opt_level=3, instruments=[steps]):
        relay.transform.Sequential([relay.transform.SimplifyInference(), relay.transform.FuseOps(2)])(mod)
    page = tmp_path / "steps.html"
    page.write_text(steps.page("net"), encoding="utf-8")
    browser.open(page.as_uri())
    shown = browser.run("return [...document.querySelectorAll('#step option')].map((o) => o.textContent)")
    assert shown[:2] == ["1 of 3  before", "2 of 3  SimplifyInference: nothing changed"]
    assert shown[2].startswith("3 of 3  FuseOps: ") and shown[2].endswith(" added")
    assert "nn.conv2d" in titles(browser)
    browser.run("document.activeElement.blur(); for (let i = 0; i < 2; i++) document.getElementById('later').click()")
    assert_apart(scene(browser))
    assert "⊞ + nn.conv2d + nn.bias_add + nn.relu" in titles(browser)
    assert "changes" in browser.run("return document.getElementById('count').textContent")
    assert "FuseOps: " in browser.run("return document.getElementById('panel').textContent")
    for key in "nnN":
        browser.act({"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}, kind="key")
    assert browser.run("return document.getElementById('count').textContent").startswith("1 of ")
    assert browser.run("return document.querySelector('.chosen').classList.contains('added')")
    browser.act({"type": "keyDown", "value": "["}, {"type": "keyUp", "value": "["}, kind="key")
    assert browser.run("return [document.getElementById('step').value, state.boxes.length]") == ["1", 13]
    assert browser.log() == []


def test_a_painted_page(browser: Browser, tmp_path: Path) -> None:
    """The panel lists what costs most, and why calls stay; a click shows the box inside its folded part."""
    graph = graph_of(checked(blocks(5)))
    for node in graph.nodes:
        node.seconds = {"nn.dense": 1e-3 * (1 + node.id), "nn.relu": 1e-6}.get(node.label, 0.0)
        node.notes = [(REASON, "too small")] if node.label == "add" else []
    opened(browser, tmp_path, fold_repeats(graph))
    panel = browser.run("return document.getElementById('panel').innerText")
    assert "5 stay: too small" in panel and panel.index("nn.dense") < panel.index("nn.relu") and "≥" in panel
    assert browser.run("return document.querySelectorAll('.legend .key').length") == 5
    browser.run("[...document.querySelectorAll('#panel button')].find((a) => a.textContent === 'nn.dense').click()")
    assert browser.run("return document.querySelector('.chosen').classList.contains('heat5')")
    assert "time" in browser.run("return document.getElementById('panel').innerText")
    assert browser.log() == []
