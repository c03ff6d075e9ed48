// Show a function of the step, by name where the step before had it.
function showStep(number) {
  const before = state.root >= 0 ? GROUPS[state.root].label : "@main";
  load(number);
  const roots = GROUPS.filter((g) => g.parent < 0);
  const option = (value, text, to) => { const o = document.createElement("option"); o.value = value; o.textContent = text; to.append(o); };
  $("function").replaceChildren();
  for (const g of roots) option(g.id, g.label + (g.change ? ` (${g.change})` : ""), $("function"));
  if (!$("step").options.length) STEPS.forEach((s, i) => option(i, `${i + 1} of ${STEPS.length}  ${s.name}${s.says && ": " + s.says}`, $("step")));
  $("step").value = number;
  showFunction((roots.find((g) => g.label === before) || roots.find((g) => g.label === "@main") || roots[0] || { id: -1 }).id);
}
function showFunction(root) {
  state.root = root;
  $("function").value = root;
  state.open.clear(); state.chosen = null;
  refresh(); show(); home();
}
const stepBy = (by) => showStep(Math.min(STEPS.length - 1, Math.max(0, +$("step").value + by)));
$("steps").hidden = STEPS.length < 2;
$("step").onchange = (e) => showStep(+e.target.value);
$("earlier").onclick = () => stepBy(-1);
$("later").onclick = () => stepBy(1);
$("function").onchange = (e) => showFunction(+e.target.value);
$("search").oninput = () => search();
$("search").onkeydown = (e) => { if (e.key === "Enter") step(e.shiftKey ? -1 : 1); else if (e.key === "Escape") e.target.blur(); };
$("next").onclick = () => step(1);
$("previous").onclick = () => step(-1);
$("fit").onclick = fit;
$("unfold").onclick = unfoldAll;
$("foldall").onclick = () => { state.open.clear(); refresh(); };
$("theme").onclick = () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  drawMap(); move();
};
$("savesvg").onclick = () => save(new Blob([svgText()], { type: "image/svg+xml" }), ".svg");
$("savepng").onclick = () => pngOf((blob) => save(blob, ".png"));
$("keys").onclick = () => { $("help").hidden = !$("help").hidden; };
const svg = $("svg");
let drag = null;
svg.onpointerdown = (e) => { drag = { x: e.clientX, y: e.clientY, moved: false, target: e.target }; };
window.onpointermove = (e) => {
  if (!drag) return;
  const dx = e.clientX - drag.x, dy = e.clientY - drag.y;
  if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
  drag.moved = true; drag.x = e.clientX; drag.y = e.clientY;
  state.x += dx; state.y += dy; soon();
};
window.onpointerup = () => {
  if (drag && !drag.moved) {
    const key = drag.target.dataset && drag.target.dataset.fold, box = drag.target.closest && drag.target.closest(".box");
    if (key) fold(key); else choose(box ? box.dataset.key : null);
  }
  drag = null;
};
svg.ondblclick = (e) => { const box = e.target.closest(".box"); if (box && !e.target.dataset.fold) fold(box.dataset.key); };
svg.addEventListener("wheel", (e) => {
  e.preventDefault();
  const r = svg.getBoundingClientRect();
  zoom(Math.exp(-e.deltaY * 0.0015), e.clientX - r.left, e.clientY - r.top);
}, { passive: false });
$("map").onpointerdown = $("map").onpointermove = (e) => {
  if (!e.buttons) return;
  const m = $("map").getBoundingClientRect(), r = svg.getBoundingClientRect();
  state.x = r.width / 2 - state.k * (e.clientX - m.left - 4) / state.mapScale;
  state.y = r.height / 2 - state.k * (e.clientY - m.top - 4) / state.mapScale;
  soon();
};
function zoom(by, px, py) {
  const k = Math.min(8, Math.max(0.01, state.k * by));
  state.x = px - (px - state.x) * k / state.k; state.y = py - (py - state.y) * k / state.k; state.k = k;
  soon();
}
const KEYS = {
  "+": () => zoom(1.25, svg.clientWidth / 2, svg.clientHeight / 2), "-": () => zoom(0.8, svg.clientWidth / 2, svg.clientHeight / 2),
  0: fit, Home: home, "[": () => stepBy(-1), "]": () => stepBy(1), n: () => step(1), N: () => step(-1), e: unfoldAll, c: () => $("foldall").onclick(), "?": () => $("keys").onclick(),
  Enter: () => { if (state.chosen) fold(state.chosen); }, Escape: () => { $("help").hidden = true; choose(null); },
  "/": () => $("search").focus(), ArrowLeft: () => { state.x += 80; soon(); }, ArrowRight: () => { state.x -= 80; soon(); },
  ArrowUp: () => { state.y += 80; soon(); }, ArrowDown: () => { state.y -= 80; soon(); },
};
window.onkeydown = (e) => {
  if (e.target.tagName === "INPUT" || e.target.tagName === "SELECT" || e.ctrlKey || e.metaKey || !Object.hasOwn(KEYS, e.key)) return;
  KEYS[e.key](); e.preventDefault();
};
window.onresize = draw;
showStep(0);
