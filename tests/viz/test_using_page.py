"""The page by keyboard, by touch, on paper, in small windows, and with hostile names."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import relaylang as relay
from relaylang.ir import IRModule
from relaylang.viz import as_html, difference, fold_repeats, graph_of
from relaylang.viz.svg import COLOURS
from tests.shared import few
from tests.viz.browser import Browser, chromium
from tests.viz.test_page import middle, opened, titles
from tests.viz.test_scene import blocks
from tests.viz.test_viz import BRANCHES, CONVNET, chain, checked, fused

pytestmark = pytest.mark.skipif(chromium() is None, reason="chromium and chromedriver are not on this machine")

#: The keys that WebDriver names by letters of its own.
TAB, ENTER, ESCAPE, SHIFT, UP, DOWN, END = "\ue004", "\ue007", "\ue00c", "\ue008", "\ue013", "\ue015", "\ue010"


@pytest.fixture(autouse=True)
def window(browser: Browser) -> Iterator[None]:
    yield
    browser.resize(1200, 900)


def press(browser: Browser, *keys: str) -> None:
    """Press keys one after the other; Shift stays down until the last."""
    held = [{"type": "keyDown", "value": SHIFT}] if SHIFT in keys else []
    strokes = [{"type": kind, "value": key} for key in keys if key != SHIFT for kind in ("keyDown", "keyUp")]
    browser.act(*held, *strokes, *[{"type": "keyUp", "value": SHIFT}] * bool(held), kind="key")


def chosen(browser: Browser) -> str:
    return browser.run("return state.chosen && state.byKey.get(state.chosen).box.title")


def wide(count: int) -> IRModule:
    """A program whose values stand beside each other."""
    names = [f"%x{i}" for i in range(count)]
    params = ", ".join(f"{name}: Tensor[(2, 3), float32]" for name in names)
    lines = "".join(f"let %y{i} = exp({name}); let %z{i} = tanh(%y{i});" for i, name in enumerate(names))
    return checked(f"def @main({params}) {{ {lines} ({', '.join(f'%z{i}' for i in range(count))}) }}")


@pytest.mark.sweep
def test_keys_reach_all(browser: Browser, tmp_path: Path) -> None:
    """Tab comes to the drawing; arrows with Shift walk along its edges; Enter unfolds; buttons keep their own Enter."""
    opened(browser, tmp_path, graph_of(fused(CONVNET)))
    for _ in range(20):
        press(browser, TAB)
        if browser.run("return document.activeElement.id") == "svg":
            break
    assert browser.run("return document.activeElement.id") == "svg"
    assert browser.run("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press(browser, ENTER)
    assert chosen(browser) == "%data"
    press(browser, SHIFT, DOWN)
    first = chosen(browser)
    assert first == "nn.conv2d + nn.bias_add + nn.relu"
    press(browser, ENTER)
    assert "nn.bias_add" in titles(browser)
    press(browser, ENTER)
    assert "nn.bias_add" not in titles(browser)
    press(browser, SHIFT, DOWN, UP)
    assert chosen(browser) == first
    press(browser, SHIFT, *[DOWN] * 30)
    x0, y0, x1, y1, box = browser.run("return [...windowNow(), state.byKey.get(state.chosen)]")
    assert x0 < box["x"] and box["x"] + box["w"] < x1 and y0 < box["y"] and box["y"] + box["h"] < y1
    assert box["to"] == [] and "inputs" in browser.run("return document.getElementById('panel').innerText")
    browser.run("document.querySelector('#panel button:not(.copy)').focus()")
    press(browser, ENTER)
    assert chosen(browser) != box["box"]["title"]
    press(browser, ESCAPE)
    assert chosen(browser) is None
    browser.run("document.getElementById('keys').focus()")
    press(browser, ENTER)
    assert not browser.run("return document.getElementById('help').hidden")
    press(browser, "/", ESCAPE)
    assert browser.run("return document.activeElement.id") == "svg"
    nameless = "!e.ariaLabel && !/\\w/.test(e.textContent)"
    assert browser.run(f"return [...document.querySelectorAll('button, select, input')].filter((e) => {nameless}).length") == 0
    assert browser.log() == []


@pytest.mark.sweep
def test_arrows_walk_beside_and_out(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, graph_of(checked(BRANCHES)))
    browser.run("unfoldAll(); choose(state.boxes.find((it) => it.key.includes('/') && it.box.pill).key)")
    inside = browser.run("return state.chosen")
    press(browser, SHIFT, UP)
    assert browser.run("return state.chosen") == inside[: inside.rindex("/")]
    opened(browser, tmp_path, graph_of(wide(3)))
    browser.run("choose(state.boxes.find((it) => it.box.title === '%x0').key)")
    seen = [chosen(browser)]
    for way in ("right", "right", "right", "left"):
        browser.run(f"walk('{way}')")
        seen.append(chosen(browser))
    assert seen == ["%x0", "%x1", "%x2", "%x2", "%x1"]


def test_edges_of_the_chosen_box_show_their_whole_way(browser: Browser, tmp_path: Path) -> None:
    """Also in a lane, and in that at the side, but no edge to another box."""
    lines = "".join(f"let %v{i} = exp(%v{i - 1});" for i in range(1, 30))
    text = f"def @main(%x: Tensor[(2, 3), float32]) {{ let %v0 = tanh(%x); {lines} let %w = add(%v5, %v0); add(add(%v29, %v0), %w) }}"
    opened(browser, tmp_path, graph_of(checked(text)))
    browser.run(
        "fit(); choose(state.boxes.filter((it) => it.box.title === 'add' && it.from.some((k) => "
        "state.byKey.get(k).box.title === 'tanh'))[0].key)"
    )
    ways = """
      const drawn = [...document.querySelectorAll('.line')];
      const by = (cls) => state.lines.filter((l, i) => drawn[i].classList.contains(cls));
      const it = state.byKey.get(state.chosen), last = (l) => l.x1 + ' ' + l.y1, first = (l) => l.x0 + ' ' + l.y0;
      const near = by('near').filter((l) => l.from !== it.key), ends = near.filter((l) => l.to === it.key);
      // each line that comes to the box begins at its source, or where another near line ends
      const whole = ends.every(function back(l) {
        const from = state.byKey.get(l.from);
        const before = near.filter((m) => m.from === l.from && !m.to && (last(m) === first(l) || m.x1 === l.x0));
        return l.y0 === from.y + from.h || before.some(back); });
      const out = by('out'), others = near.filter((l) => l.to && l.to !== it.key);
      return [ends.length, whole, others.length, out.every((l) => l.from === it.key), out.length > 0];"""
    assert browser.run(ways) == [2, True, 0, True, True]
    browser.run("choose(null); point(state.boxes[1].key)")
    assert browser.run("return document.querySelectorAll('.line.hint').length") > 2
    assert browser.run("point(null); return document.querySelectorAll('.hint, .near').length") == 0
    press(browser, END)
    assert browser.run("return state.byKey.get(state.chosen).result") and browser.log() == []


@pytest.mark.sweep
def test_the_panel_covers_no_chosen_box(browser: Browser, tmp_path: Path) -> None:
    browser.resize(1200, 900)
    opened(browser, tmp_path, graph_of(wide(30)))
    browser.run("home(); state.x -= 300; draw()")
    inside = "const [x0, , x1] = windowNow(); return state.boxes.filter((b) => b.x > x0 && b.x + b.w < x1).map((b) => b.key)"
    for key in browser.run(inside)[::4]:
        browser.run("choose(null)")
        before = browser.run("return state.x")
        seen = browser.run(
            "choose(arguments[0]); const it = state.byKey.get(state.chosen), [x0, , x1] = windowNow(); "
            "return it.x > x0 && it.x + it.w < x1",
            key,
        )
        assert seen
        browser.run("choose(null); state.x = arguments[0]; draw()", before)


def test_about_a_function(browser: Browser, tmp_path: Path) -> None:
    """Inputs, result, weights and operators; a click on an operator searches it."""
    opened(browser, tmp_path, graph_of(fused(CONVNET)))
    press(browser, "i")
    panel = browser.run("return document.getElementById('panel').innerText")
    assert "%data" in panel and "result" in panel and "nn.conv2d 2" in panel.replace("\xa0", " ")
    params = [p.checked_type for p in fused(CONVNET)["main"].params[1:]]
    numbers = sum(int(np.prod([int(d) for d in t.shape])) for t in params)
    facts = dict(browser.run("return [...document.querySelectorAll('#panel tr')].map((r) => [...r.cells].map((c) => c.textContent))"))
    assert facts == {"weights": str(len(params)), "numbers": f"{numbers:,}", "bytes": f"{4 * numbers:,}"}
    browser.run("[...document.querySelectorAll('#panel button')].findLast((b) => b.textContent === 'nn.softmax').click()")
    assert browser.run("return document.getElementById('search').value") == "nn.softmax" and "softmax" in chosen(browser)
    press(browser, ESCAPE, "i")
    assert browser.run("return document.getElementById('panel').textContent") == "" and browser.log() == []


def test_two_fingers_zoom_one_moves(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, graph_of(checked(chain(12))))
    before = browser.run("return [state.x, state.y, state.k]")

    def finger(name: str, y: int, to: int) -> dict:
        moves = [
            {"type": "pointerMove", "x": 300, "y": y, "duration": 0},
            {"type": "pointerDown", "button": 0},
            {"type": "pointerMove", "x": 300, "y": to, "duration": 60},
            {"type": "pointerUp", "button": 0},
        ]
        return {"type": "pointer", "id": name, "parameters": {"pointerType": "touch"}, "actions": moves}

    browser.acts(finger("a", 300, 250), finger("b", 400, 450))
    apart = browser.run("return [state.x, state.y, state.k, state.chosen]")
    assert apart[2] == pytest.approx(2 * before[2], rel=0.05) and apart[3] is None
    top = browser.run("return document.getElementById('svg').getBoundingClientRect().top")
    kept = (350 - top - before[1]) / before[2]  # what lies between the fingers stays there
    assert (350 - top - apart[1]) / apart[2] == pytest.approx(kept, abs=4)
    browser.acts(finger("a", 300, 360))
    moved = browser.run("return [state.x, state.y, state.k]")
    assert moved == pytest.approx([apart[0], apart[1] + 60, apart[2]], abs=6)
    pinch = "document.getElementById('svg').dispatchEvent(new WheelEvent('wheel', {deltaY: -10, ctrlKey: true, cancelable: true}))"
    browser.run(pinch)
    assert browser.run("return state.k") == pytest.approx(moved[2] * np.exp(0.1))
    browser.run(pinch.replace("deltaY: -10, ctrlKey", "deltaX: 30, bubbles"))
    assert browser.run("return state.k") == pytest.approx(moved[2] * np.exp(0.1))
    assert browser.log() == []


COVERED = """
const map = document.getElementById('map'), m = map.getBoundingClientRect();
const boxes = [...document.querySelectorAll('#view .box:not(.open) > rect.body')].map((e) => e.getBoundingClientRect());
const over = boxes.filter((b) => b.left < m.right && b.right > m.left && b.top < m.bottom && b.bottom > m.top).length;
return [map.hidden, map.classList.contains('over'), over];
"""


VIEWS = ("home()", "fit()", "state.k = 1.5; state.x = state.y = -40; draw()", "state.y = 500; draw()")


@pytest.mark.sweep
@pytest.mark.parametrize("size", few([(1200, 900), (900, 700), (420, 800)], (420, 800)))
def test_the_map_covers_nothing(browser: Browser, tmp_path: Path, size: tuple[int, int]) -> None:
    """It goes to a free corner. Where none is free, it lets the drawing through; while all is seen, it is hidden."""
    browser.resize(*size)
    for mod in (checked(chain(60)), wide(30), wide(2)):
        opened(browser, tmp_path, graph_of(mod))
        for script in (*VIEWS, "choose(state.boxes[0].key)"):
            browser.run(f"{script}; return new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")
            hidden, through, over = browser.run(COVERED)
            assert hidden or through or not over, script
            seen = "const [x0, y0, x1, y1] = windowNow(); return x0 <= 0 && y0 <= 0 && x1 >= state.width && y1 >= state.height"
            assert hidden or not browser.run(seen)
        browser.run("fit()")
        assert browser.run("return document.getElementById('map').hidden") or browser.run("return state.k") == 0.02
    press(browser, "m")
    browser.run("state.k = 1.5; state.x = state.y = -40; draw()")
    assert browser.run(COVERED)[0]
    opened(browser, tmp_path, graph_of(wide(30)))
    form = browser.run("const m = document.getElementById('map'); return [state.width / state.height, m.width / m.height]")
    assert form[1] == pytest.approx(min(form[0], 170 / 24), rel=0.35)


@pytest.mark.sweep
def test_a_difference_opens_at_its_first_change(browser: Browser, tmp_path: Path) -> None:
    """Also where only another function than @main has changes, and n goes on to the next function."""
    helper = "def @{0}(%x: Tensor[(2, 3), float32]) {{ {1}(%x) }}\n"
    text = chain(60) + helper.format("g", "exp") + helper.format("h", "exp")
    old, new = checked(text), checked(text.replace("{ exp(%x) }", "{ tanh(%x) }"))
    opened(browser, tmp_path, difference(graph_of(old), graph_of(new)))
    here = "return GROUPS[state.root].label"
    assert browser.run(here) == "@g" and chosen(browser) is None
    options = browser.run("return [...document.querySelectorAll('#function option')].map((o) => o.textContent)")
    assert options == ["@main", "@g (changed)", "@h (changed)"]
    seen = []
    browser.run("document.getElementById('svg').focus()")
    for key in "nnnnnN":
        press(browser, key)
        seen.append((browser.run(here), chosen(browser)))
    assert seen[:4] == [("@g", seen[0][1]), ("@g", seen[1][1]), ("@h", seen[0][1]), ("@h", seen[1][1])]
    assert seen[4] == seen[0] and seen[5] == seen[3] and {seen[0][1], seen[1][1]} == {"− exp", "+ tanh"}
    before, at, after = chain(60).rpartition("add(")
    opened(browser, tmp_path, difference(graph_of(checked(before + at + after)), graph_of(checked(f"{before}maximum({after}"))))
    rect = "document.querySelector('.added > rect.body, .removed > rect.body').getBoundingClientRect()"
    top, height = browser.run(f"const r = {rect}; return [r.top, r.height]")
    assert 40 < top < 900 and height > 10
    assert "added" in browser.run("return document.getElementById('panel').innerText")
    assert browser.log() == []


@pytest.mark.sweep
def test_paper_has_the_whole_drawing(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, graph_of(checked(chain(60))))
    browser.run("document.documentElement.dataset.theme = 'dark'; draw()")
    before = browser.run("return [document.getElementById('svg').getAttribute('viewBox'), document.querySelectorAll('.box').length]")
    pages = base64.b64decode(browser.print())
    assert pages.startswith(b"%PDF") and pages.count(b"/Type /Page\n") > 3
    after = "return [document.getElementById('svg').getAttribute('viewBox'), document.querySelectorAll('.box').length]"
    assert browser.run(after) == before and browser.run("return document.documentElement.dataset.theme") == "dark"
    shown = "[document.querySelectorAll('.box').length, document.documentElement.dataset.theme]"
    assert browser.run(f"toPaper(); const shown = {shown}; toScreen(); return shown") == [61, "light"]
    assert browser.log() == []


def test_hostile_names_are_text(browser: Browser, tmp_path: Path) -> None:
    script = "<script>window.broken = 1</script>"
    names = [f"</script>{script}", "<img src=x onerror='window.broken = 1'>", '"]]>\u2028__DATA__', "名" * 40, "W" * 300]
    params = [relay.var(name, shape=(4,), dtype="float32") for name in names]
    body = params[0]
    for i, param in enumerate(params[1:]):
        numbers = np.array([[np.nan, np.inf, -np.inf, 1], [np.nan] * 4, [3e38, -3e38, 0, 1], [7, 7, 7, 7]][i], "float32")
        body = relay.multiply(relay.add(body, relay.const(numbers)), relay.nn.relu(param))
    title = f"</title>{script}__SCRIPT__"
    opened(browser, tmp_path, graph_of(IRModule.from_expr(relay.Function(params, body))), title)
    assert browser.run("return window.broken ?? document.title") == title
    assert browser.run("return document.querySelectorAll('script').length") == 2
    assert next(t for t in titles(browser) if t.startswith("%")) == "%" + names[0][:38] + "…"
    for key in browser.run("return state.boxes.map((it) => it.key)"):
        browser.run("choose(arguments[0])", key)
        assert "NaN" not in browser.run("return document.querySelector('#panel').innerHTML")
    narrow = (
        "fit(); state.k = 1; draw(); return [...document.querySelectorAll('#view .box')].filter((g) => "
        "g.querySelector('.title').getBBox().width > g.querySelector('.body').getBBox().width - 6).length"
    )
    assert browser.run(narrow) == 0
    browser.run("const s = document.getElementById('search'); s.value = '<img'; s.dispatchEvent(new Event('input'))")
    assert browser.run("return state.found.length") == 1
    assert browser.log() == []


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("numbers", "bars"),
    [
        ([1e308, -1e308, 0, 1], {0: 1, 12: 2, 23: 1}),
        ([1e20] * 3, {0: 3}),
        ([5e-324, 0], {0: 1, 23: 1}),
        ([1e308, 1.7e308], {0: 1, 23: 1}),
        ([np.nan, np.inf, -np.inf, 2, 4], {0: 1, 23: 1}),
        ([0.0, -0.0], {0: 2}),
        ([True, False, True], {0: 1, 23: 2}),
    ],
)
def test_histograms_of_extreme_numbers(numbers: list[float], bars: dict[int, int]) -> None:
    value = np.array(numbers)
    page = as_html(graph_of(relay.const(value, str(value.dtype))))
    found = json.loads(page[page.index('"bars":') + 7 :].split("]")[0] + "]")
    assert {i: n for i, n in enumerate(found) if n} == bars
    finite = value[np.isfinite(value)].astype("float64")
    least, average = (page.split(f'"{name}":"')[1].split('"')[0] for name in ("least", "average"))
    assert float(least) == pytest.approx(finite.min(), rel=1e-5)
    assert float(average) == pytest.approx(sum(finite / len(finite)), rel=1e-5, abs=1e-323)


def test_programs_without_functions(browser: Browser, tmp_path: Path) -> None:
    for mod in (IRModule({}), checked("type List[A] { Cons(A, List[A]), Nil }")):
        opened(browser, tmp_path, graph_of(mod))
        text = "return document.getElementById('view').textContent"
        assert browser.run(text) == "The program has no functions."
        browser.run("fit(); unfoldAll(); home(); step(1); walk('down'); zoom(2, 0, 0); toPaper(); toScreen()")
        assert "no functions" in browser.run("return svgText()") and browser.run("return document.getElementById('map').hidden")
        assert browser.log() == []


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    """The ratio of WCAG 2, from 1 to 21."""
    high, low = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [0, 1])
def test_texts_have_contrast(dark: int) -> None:
    """4.5 to 1, as WCAG 2 asks for small texts; 3 to 1 for borders that say something."""
    colour = {name: both[dark] for name, both in COLOURS.items()}

    def weak(text: str, grounds: str, least: float = 4.5) -> set[str]:
        return {name for name in grounds.split() if contrast(text, colour[name]) < least}

    heads = "product pool norm element move quantised data control call other same target0 target1 target2 target3"
    assert weak("#ffffff", heads) == set()
    assert weak(colour["fore"], "back inside body panel var heat1 heat2 heat3 heat4 heat5") == set()
    assert weak(colour["soft"], "back inside body panel heat1") == set()
    assert weak(colour["body"], "added removed changed") == set()
    assert weak(colour["back"], "line mark out", 3) == set()


def test_nothing_moves_by_itself(browser: Browser, tmp_path: Path) -> None:
    """There are no animations to switch off, and no colour that a system with few colours replaces."""
    opened(browser, tmp_path, graph_of(checked(chain(3))))
    browser.run("choose(state.boxes[1].key); zoom(1.2, 100, 100)")
    assert browser.run("return document.getAnimations().length") == 0
    rules = browser.run("return [...document.styleSheets].flatMap((s) => [...s.cssRules]).map((r) => r.cssText).join('\\n')")
    assert "transition" not in rules and "animation" not in rules
    assert "forced-color-adjust: none" in rules and "prefers-contrast" in rules


def test_values_that_come_into_a_folded_part_are_no_calls(browser: Browser, tmp_path: Path) -> None:
    graph = fold_repeats(graph_of(checked(blocks(5))))
    opened(browser, tmp_path, graph)
    browser.run("document.getElementById('unfold').click()")
    press(browser, "i")
    panel = browser.run("return document.getElementById('panel').innerText")
    assert f"operators: {sum(n.kind == 'op' for n in graph.nodes)} calls" in panel


def test_the_panels_title_leaves_room_for_its_button(browser: Browser, tmp_path: Path) -> None:
    opened(browser, tmp_path, graph_of(fused(CONVNET)))
    browser.click(*middle(browser, "⊞ nn.conv2d + nn.bias_add + nn.relu"))
    apart = (
        "const h = document.querySelector('#panel h2'), t = document.createRange(); t.selectNodeContents(h.firstChild);"
        "const c = h.querySelector('.copy').getBoundingClientRect();"
        "return [...t.getClientRects()].every((r) => r.right <= c.left || r.bottom <= c.top)"
    )
    assert browser.run(apart)
