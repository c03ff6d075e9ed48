// Show a function of the step, by name where the step before had it.
function showStep(number) {
  const before = state.root >= 0 ? GROUPS[state.root].label : "@main";
  load(number);
  const roots = GROUPS.filter((g) => g.parent < 0);
  const option = (value, text, to) => { const o = document.createElement("option"); o.value = value; o.textContent = text; to.append(o); };
  $("function").replaceChildren();
  state.changed = roots.filter((g) => STEP.says && (state.root = g.id, search(false), state.found.length)).map((g) => g.id);
  for (const g of roots) option(g.id, g.label + (g.change ? ` (${g.change})` : state.changed.includes(g.id) ? " (changed)" : ""), $("function"));
  if (!$("step").options.length) STEPS.forEach((s, i) => option(i, `${i + 1} of ${STEPS.length}  ${s.name}${s.says && ": " + s.says}`, $("step")));
  $("step").value = number;
  const wanted = (roots.find((g) => g.label === before) || roots.find((g) => g.label === "@main") || roots[0] || { id: -1 }).id;
  showFunction(state.changed.length && !state.changed.includes(wanted) ? state.changed[0] : wanted);
}
function showFunction(root) {
  state.root = root;
  $("function").value = root;
  state.open.clear(); state.chosen = null;
  refresh(); show(); home();
  // a difference opens where its first change is
  if (STEP.says && state.found.length) { reveal(state.found[0]); choose(null); }
}
const stepBy = (by) => showStep(Math.min(STEPS.length - 1, Math.max(0, +$("step").value + by)));
$("steps").hidden = STEPS.length < 2;
$("step").onchange = (e) => showStep(+e.target.value);
$("earlier").onclick = () => stepBy(-1);
$("later").onclick = () => stepBy(1);
$("function").onchange = (e) => showFunction(+e.target.value);
$("search").oninput = () => search();
$("search").onkeydown = (e) => { if (e.key === "Enter") step(e.shiftKey ? -1 : 1); else if (e.key === "Escape") $("svg").focus(); };
$("about").onclick = showAbout;
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
// One pointer moves the drawing or clicks; two fingers also zoom.
const pointers = new Map();
let drag = null;
const fingers = () => {
  const all = [...pointers.values()], [a, b] = [all[0], all[Math.min(1, all.length - 1)]];
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, apart: Math.hypot(a.x - b.x, a.y - b.y) };
};
svg.onpointerdown = (e) => {
  if (e.button) return;
  pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
  drag = { moved: pointers.size > 1, target: e.target };
};
window.onpointermove = (e) => {
  const at = pointers.get(e.pointerId);
  if (!at || (!drag.moved && Math.abs(e.clientX - at.x) + Math.abs(e.clientY - at.y) < 4)) return;
  // a move that ends outside the window ends here, too
  if (!drag.moved) svg.setPointerCapture(e.pointerId);
  drag.moved = true;
  const before = fingers(), r = svg.getBoundingClientRect();
  pointers.set(e.pointerId, { x: e.clientX, y: e.clientY });
  const now = fingers();
  state.x += now.x - before.x; state.y += now.y - before.y;
  zoom(before.apart && now.apart ? now.apart / before.apart : 1, now.x - r.left, now.y - r.top);
};
function released(e) {
  if (!pointers.delete(e.pointerId) || drag.moved || e.type !== "pointerup") return;
  const key = drag.target.dataset.fold, box = drag.target.closest(".box");
  if (key) fold(key); else choose(box ? box.dataset.key : null);
}
window.onpointerup = window.onpointercancel = released;
svg.ondblclick = (e) => { const box = e.target.closest(".box"); if (box && !e.target.dataset.fold) fold(box.dataset.key); };
svg.addEventListener("wheel", (e) => {
  e.preventDefault();
  const r = svg.getBoundingClientRect(), unit = [1, LINE, r.height][e.deltaMode], dx = e.deltaX * unit, dy = e.deltaY * unit;
  if (e.shiftKey || Math.abs(dx) > Math.abs(dy)) { state.x -= dx || dy; soon(); return; }
  // a pinch on a trackpad comes as small turns of a wheel with Ctrl
  const turn = e.ctrlKey ? Math.max(-0.3, Math.min(0.3, dy * 0.01)) : dy * 0.0015;
  zoom(Math.exp(-turn), e.clientX - r.left, e.clientY - r.top);
}, { passive: false });
$("map").onpointerdown = $("map").onpointermove = (e) => {
  if (!e.buttons) return;
  const m = $("map").getBoundingClientRect(), r = svg.getBoundingClientRect();
  state.x = r.width / 2 - state.k * (e.clientX - m.left - MAP_EDGE) / state.mapScale;
  state.y = r.height / 2 - state.k * (e.clientY - m.top - MAP_EDGE) / state.mapScale;
  soon();
};
function zoom(by, px, py) {
  const k = Math.min(8, Math.max(0.01, state.k * by));
  state.x = px - (px - state.x) * k / state.k; state.y = py - (py - state.y) * k / state.k; state.k = k;
  soon();
}
const KEYS = {
  "+": () => zoom(1.25, svg.clientWidth / 2, svg.clientHeight / 2), "-": () => zoom(0.8, svg.clientWidth / 2, svg.clientHeight / 2),
  0: fit, Home: home, End: toResult, i: showAbout, "[": () => stepBy(-1), "]": () => stepBy(1), n: () => step(1), N: () => step(-1), e: unfoldAll, c: () => $("foldall").onclick(), "?": () => $("keys").onclick(),
  Enter: () => { if (state.chosen) fold(state.chosen); else walk("down"); }, m: () => { mapWanted = !mapWanted; placeMap(); }, Escape: () => { $("help").hidden = true; choose(null); },
  "/": () => $("search").focus(), ArrowLeft: () => { state.x += 80; soon(); }, ArrowRight: () => { state.x -= 80; soon(); },
  ArrowUp: () => { state.y += 80; soon(); }, ArrowDown: () => { state.y -= 80; soon(); },
};
// Enter belongs to what has the focus.
const PRESSED = new Set(["BUTTON", "SUMMARY"]), TYPED = new Set(["INPUT", "SELECT"]);
window.onkeydown = (e) => {
  const { tagName } = e.target, arrow = e.shiftKey && e.key.startsWith("Arrow");
  if (TYPED.has(tagName) || e.ctrlKey || e.metaKey || e.altKey || (e.key === "Enter" && PRESSED.has(tagName))) return;
  if (arrow) walk(e.key.slice(5).toLowerCase()); else if (Object.hasOwn(KEYS, e.key)) KEYS[e.key](); else return;
  e.preventDefault();
};
svg.onpointerover = (e) => { if (!pointers.size) point(e.target.closest(".box")?.dataset.key ?? null); };
svg.onpointerleave = () => point(null);
// the panel takes room from the drawing, too
// A page in a hidden part of a notebook has no width before that part is shown.
new ResizeObserver(() => { if (state.unseen) home(); else draw(); }).observe(svg);
window.onbeforeprint = toPaper;
window.onafterprint = toScreen;
showStep(0);
