const MOST_LISTED = 15, SIGNED = new Set(["added", "removed", "changed"]), REASON = "stays because";
function add(tag, text, to, cls) {
  const e = document.createElement(tag);
  e.textContent = text;
  if (cls) e.className = cls;
  to.append(e);
  return e;
}
function table(rows, to) {
  const t = add("table", "", to);
  for (const [k, v, cls] of rows) { const tr = add("tr", "", t, cls); add("td", k, tr); add("td", v, tr); }
}
function facts(n, to) {
  const rows = [];
  if (n.name) rows.push(["name", "%" + n.name]);
  if (n.type) rows.push(["type", n.type]);
  if (n.place) rows.push(["at", n.place]);
  if (n.seconds) rows.push(["time", timeText(n.seconds)]);
  table(rows, to);
  if (n.notes.length) { add("h3", "notes", to); table(n.notes, to); }
  if (n.line) add("code", n.line, to);
  if (n.attrs.length) { add("h3", "attributes", to); table(n.attrs.map(([k, v], i) => [k, v, i >= n.attrs.length - n.hidden ? "default" : ""]), to); }
  if (n.statistics) {
    add("h3", `numbers${n.statistics.counted < n.statistics.of ? ` (${n.statistics.counted} of ${n.statistics.of} counted)` : ""}`, to);
    table(Object.entries(n.statistics.numbers), to);
    const high = Math.max(...n.statistics.bars), svg = el("svg", { class: "bars", width: 300, height: 64 }), w = 300 / n.statistics.bars.length;
    n.statistics.bars.forEach((b, i) => svg.append(el("rect", { x: i * w, y: 64 - 60 * b / high, width: w - 1, height: 60 * b / high })));
    to.append(svg);
  }
}
function links(what, keys, to, cls) {
  if (!keys.length) return;
  add("h3", what, to, cls);
  for (const k of [...new Set(keys)].slice(0, 50)) {
    const o = state.byKey.get(k), a = add("button", o.box.title, to);
    a.onclick = () => { choose(k); center(k); };
    add("span", " " + NODES[o.box.node].shape, to, "default");
    add("br", "", to);
  }
}
const timeText = (s) => s >= 1 ? s.toPrecision(3) + " s" : s >= 1e-3 ? (s * 1e3).toPrecision(3) + " ms" : (s * 1e6).toPrecision(3) + " µs";
// What is worth seeing first: the costliest boxes, the changes, what each target takes and why calls stay.
function overview(panel) {
  if (state.about) about(panel);
  if (STEP.says) add("h2", (STEP.name ? STEP.name + ": " : "") + STEP.says, panel);
  if (!STEP.legend.length) return;
  const key = add("div", "", panel, "legend");
  for (const [cls, text] of STEP.legend) {
    const line = add("div", "", key), svg = el("svg", { width: 34, height: 18 }), g = el("g", { class: "box key " + cls });
    g.append(el("rect", { class: "body", x: 3, y: 2, width: 26, height: 14, rx: 3 }));
    svg.append(g);
    line.append(svg);
    add("span", text, line);
  }
  const all = [...ways()].flatMap(([group, prefix]) => group < 0 ? [] : SHEETS[group].boxes.map((b) => ({ b, n: NODES[b.node], key: prefix + group + "." + b.node })))
    .filter((it) => !it.b.pill || !it.key.includes("/"));
  const list = (title, items, says) => {
    if (!items.length) return;
    add("h3", title, panel);
    for (const it of items.slice(0, MOST_LISTED)) {
      const a = add("button", it.b.title, panel);
      a.onclick = () => reveal(it.key);
      add("span", " " + says(it), panel, "default");
      add("br", "", panel);
    }
    if (items.length > MOST_LISTED) add("span", `… ${items.length - MOST_LISTED} more`, panel, "default");
  };
  const spent = all.filter((it) => it.n.seconds).sort((a, b) => b.n.seconds - a.n.seconds);
  const whole = spent.reduce((sum, it) => sum + it.n.seconds, 0);
  list(`time: ${timeText(whole)}`, spent, (it) => `${timeText(it.n.seconds)}  ${(100 * it.n.seconds / whole).toFixed(1)} %`);
  for (const change of ["added", "removed", "changed"])
    list(change, all.filter((it) => it.b.change === change), (it) => it.n.notes.map((row) => row.join(" ")).join(", ") || it.n.shape);
  const reasons = new Map(), calls = all.filter((it) => it.n.kind === "op" && !it.b.pill && !it.b.inner.length), gone = calls.filter((it) => it.b.target);
  for (const it of all) for (const [name, text] of it.n.notes) if (name === REASON) reasons.set(text, [...(reasons.get(text) || []), it]);
  if (reasons.size) add("h2", `${gone.length} of ${calls.length} calls go to ${STEP.targets.join(", ") || "an accelerator"}`, panel);
  for (const [text, items] of [...reasons].sort((a, b) => b[1].length - a[1].length)) list(`${items.length} stay: ${text}`, items, (it) => it.n.shape);
}
function show() {
  const panel = $("panel"), it = state.byKey.get(state.chosen);
  panel.replaceChildren();
  if (!it) { overview(panel); return; }
  const n = NODES[it.box.node];
  const text = [n.label, n.type, n.place, n.line].filter(Boolean).join("\n");
  add("button", "copy", add("h2", n.label + " ", panel), "copy").onclick = () => navigator.clipboard?.writeText(text).catch(() => {});
  if (it.box.target) table([["target", it.box.target]], panel);
  facts(n, panel);
  for (const [name, size, id] of it.box.rows) if (id >= 0) {
    const more = add("details", "", panel);
    add("summary", `${name}  ${size}`, more);
    facts(NODES[id], more);
  }
  links("inputs", it.from, panel, "in");
  links("used by", it.to, panel, "out");
  const known = JSON.stringify(n.attrs);  // a call of a composite has its attributes
  for (const group of it.box.inner) if (GROUPS[group].attrs.length && JSON.stringify(GROUPS[group].attrs) !== known) { add("h3", GROUPS[group].label, panel); table(GROUPS[group].attrs, panel); }
}

const counted = (count, one, more = one + "s") => `${count} ${count === 1 ? one : more}`;
// The way to each group from the function that is shown, for search inside what is folded.
function ways() {
  const way = new Map([[state.root, ""]]), queue = [state.root];
  for (let i = 0; i < queue.length; i++)
    for (const b of queue[i] >= 0 ? SHEETS[queue[i]].boxes : []) for (const g of b.inner)
      if (!way.has(g) && way.get(queue[i]).split("/").length < DEEPEST) { way.set(g, way.get(queue[i]) + queue[i] + "." + b.node + "/"); queue.push(g); }
  return way;
}
function search(go = true) {
  const text = $("search").value.trim().toLowerCase();
  const says = (n) => [n.label, n.name, n.type, ...n.attrs.map((a) => a.join("="))].some((s) => s.toLowerCase().includes(text));
  // without a text, the changes of a difference are what is found
  const fits = (b) => text ? says(NODES[b.node]) || b.rows.some((r) => r[2] >= 0 && says(NODES[r[2]])) : SIGNED.has(b.change);
  state.found = [];
  state.searched = !!text;
  if (text || STEP.says) for (const [group, prefix] of ways()) if (group >= 0)
    for (const b of SHEETS[group].boxes) if ((!b.pill || !prefix) && fits(b)) state.found.push(prefix + group + "." + b.node);
  state.at = -1;
  $("count").textContent = text ? `${state.found.length} found` : STEP.says ? counted(state.found.length, "change") : counted(state.boxes.length, "box", "boxes");
  if (go) draw();
}
function step(by) {
  if (!state.found.length) return;
  let at = state.at < 0 && by < 0 ? state.found.length - 1 : state.at + by;
  if (state.found[at] === undefined && !state.searched && state.changed.length > 1) {
    const all = state.changed;
    showFunction(all[(all.indexOf(state.root) + by + all.length) % all.length]);
    at = by < 0 ? -1 : 0;
  }
  at = (at + state.found.length) % state.found.length;
  reveal(state.found[at]);
  state.at = at;
  $("count").textContent = `${at + 1} of ${state.found.length}`;
}
// Choose a box, and unfold those around it.
function reveal(key) {
  const parts = key.split("/");
  if (!state.byKey.has(key)) {
    for (let i = 1; i < parts.length; i++) state.open.add(parts.slice(0, i).join("/"));
    refresh();
  }
  choose(key); center(key);
}
function fold(key) {
  const it = state.byKey.get(key);
  if (!it || !it.box.inner.length) return;
  if (state.open.has(key)) { for (const k of [...state.open]) if (k === key || k.startsWith(key + "/")) state.open.delete(k); }
  else if (key.split("/").length < DEEPEST) state.open.add(key);
  refresh();
  // the box stays under the pointer
  const now = state.byKey.get(key);
  state.x += state.k * (it.x + it.w / 2 - now.x - now.w / 2); state.y += state.k * (it.y - now.y);
  draw();
}
// Unfold what is seen, level by level, until there are too many boxes.
function unfoldAll() {
  let items = state.boxes;
  for (let level = 0; level < DEEPEST && items.length && state.boxes.length < MOST; level++) {
    const size = state.open.size, held = new Set(state.open);
    for (const it of items) if (it.box.inner.length && !above(it)) state.open.add(it.key);
    if (state.open.size === size) break;
    layout();
    if (state.boxes.length > MOST) { state.open = held; break; }
    items = state.boxes.filter((it) => !it.open);
  }
  refresh();
}
// A box that stands inside itself, as recursion has it.
function above(it) {
  const keys = it.key.split("/");
  for (let i = 1; i < keys.length; i++) if (state.byKey.get(keys.slice(0, i).join("/")).box.inner.some((g) => it.box.inner.includes(g))) return true;
  return it.box.inner.includes(state.root);
}

