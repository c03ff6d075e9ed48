"use strict";
// The layouts come from relaylang/viz/layout.py. The page moves boxes apart where one is unfolded, and lays the edges anew.
const DATA = JSON.parse(document.getElementById("data").textContent);
const named = (keys, row) => row && Object.fromEntries(keys.map((k, i) => [k, row[i]]));
const NODES = DATA.nodes.map((r) => named(["kind", "label", "type", "shape", "attrs", "hidden", "name", "place", "line", "statistics"], r));
const GROUPS = DATA.groups.map((r, id) => ({ id, ...named(["label", "kind", "parent", "attrs"], r) }));
const SHEETS = DATA.sheets.map((s, group) => ({ ...s, group, boxes: s.boxes.map((r) =>
  named(["node", "title", "rows", "pill", "inner", "target", "family", "w", "h", "edges"], r)) }));
for (const s of SHEETS) s.at = new Map(s.boxes.map((b, i) => [b.node, i]));
// the measures of relaylang/viz/scene.py and boxes.py
const PAD = 14, LABEL = 18, ABOVE = 19, TRACK = 8, BELOW = 13, HEAD = 24, LINE = 15, ROUND = 5;
const DEEPEST = 60, MOST = 20000;
const $ = (id) => document.getElementById(id);
const el = (name, attrs, text) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const k in attrs) e.setAttribute(k, attrs[k]);
  if (text !== undefined) e.textContent = text;
  return e;
};
const state = { root: -1, open: new Set(), chosen: null, found: [], at: -1, x: 0, y: 0, k: 1, boxes: [], lines: [], labels: [],
  byKey: new Map(), width: 0, height: 0 };
const roots = GROUPS.filter((g) => g.parent < 0);
state.root = (roots.find((g) => g.label === "@main") || roots[0] || { id: -1 }).id;

// Where the places of a sheet go when some of its boxes become wider. Both ways to push are tried, from the left and from
// the right; their mean is symmetric, and keeps every distance at least as it was.
function stretched(sheet, widths) {
  const ends = sheet.boxes.map((b, i) => [sheet.xs[i] - b.w / 2, sheet.xs[i] + b.w / 2]);
  const wider = sheet.boxes.map((b, i) => i).filter((i) => widths[i] > sheet.boxes[i].w);
  if (!wider.length) return { xs: sheet.xs, lanes: sheet.lanes, sides: sheet.sides, width: sheet.width };
  const points = [...new Set([...ends.flat(), ...Object.values(sheet.lanes).flat(), ...Object.values(sheet.sides), 0, sheet.width])];
  points.sort((a, b) => a - b);
  const index = new Map(points.map((p, i) => [p, i])), last = points.length - 1;
  const byLeft = new Map(), byRight = new Map();
  for (const i of wider) {
    const [l, r] = ends[i].map((p) => index.get(p));
    byLeft.set(l, [...(byLeft.get(l) || []), [r, widths[i]]]);
    byRight.set(r, [...(byRight.get(r) || []), [l, widths[i]]]);
  }
  const forth = [points[0]], back = [];
  for (let j = 1; j <= last; j++) {
    forth[j] = forth[j - 1] + points[j] - points[j - 1];
    for (const [l, w] of byRight.get(j) || []) forth[j] = Math.max(forth[j], forth[l] + w);
  }
  back[last] = forth[last];
  for (let j = last - 1; j >= 0; j--) {
    back[j] = back[j + 1] - points[j + 1] + points[j];
    for (const [r, w] of byLeft.get(j) || []) back[j] = Math.min(back[j], back[r] - w);
  }
  const now = (p) => (forth[index.get(p)] + back[index.get(p)]) / 2;
  const moved = (o, f) => Object.fromEntries(Object.entries(o).map(([k, v]) => [k, f(v)]));
  return { xs: ends.map(([l, r]) => (now(l) + now(r)) / 2), lanes: moved(sheet.lanes, (xs) => xs.map(now)), sides: moved(sheet.sides, now),
    width: now(sheet.width) };
}

// The edges of each channel, as in `channels` of layout.py.
function channels(sheet, place, port) {
  const found = Array.from({ length: Math.max(-1, ...new Set(sheet.ranks)) + 1 }, () => []);
  sheet.users.forEach((users, box) => {
    if (!users.length) return;
    const rank = sheet.ranks[box], lane = place.lanes[box] || [], byRank = new Map();
    for (const u of users) byRank.set(sheet.ranks[u], [...(byRank.get(sheet.ranks[u]) || []), u]);
    const below = new Set([rank, ...lane.map((_, i) => rank + i + 1), ...[...byRank.keys()].map((r) => r - 1)]);
    for (const r of below) {
      const fromSide = r - rank > lane.length;
      const x = fromSide ? place.sides[box] : r === rank ? place.xs[box] : lane[r - rank - 1];
      const ends = (byRank.get(r + 1) || []).flatMap((u) => port(u, box).map((p) => [p, u]));
      if (r - rank < lane.length) ends.push([lane[r - rank], -1]);
      const toSide = r === rank && place.sides[box] !== undefined;
      if (toSide) ends.push([place.sides[box], -1]);
      if (ends.length) found[r].push({ source: box, x, ends, fromBox: r === rank, fromSide, toSide, track: 0 });
    }
  });
  for (const nets of found) {
    const spans = nets.map((n) => { const xs = [n.x, ...n.ends.map((e) => e[0])]; return [Math.min(...xs), Math.max(...xs), n]; });
    spans.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    const right = [];
    for (const [low, high, net] of spans) {
      if (high - low < 0.5) continue;
      let track = right.findIndex((end) => end + 4 < low);
      if (track < 0) track = right.length;
      right[track] = high;
      net.track = track;
    }
  }
  return found;
}

const folded = new Map();
// The places of a group's boxes and edges; `prefix` is the way to the group.
function planOf(group, prefix) {
  const sheet = SHEETS[group], plain = !sheet.boxes.some((b) => state.open.has(prefix + group + "." + b.node));
  if (plain && folded.has(group)) return folded.get(group);
  const parts = sheet.boxes.map((b) => state.open.has(prefix + group + "." + b.node) ? partsOf(b, prefix + group + "." + b.node + "/") : null);
  const sizes = sheet.boxes.map((b, i) => parts[i] ? [Math.max(b.w, parts[i].w), parts[i].h] : [b.w, b.h]);
  const place = stretched(sheet, sizes.map((s) => s[0])), heights = [];
  sheet.ranks.forEach((r, i) => { heights[r] = Math.max(heights[r] || 0, sizes[i][1]); });
  const pills = (user, source) => {
    const box = sheet.boxes[user], left = place.xs[user] - sizes[user][0] / 2, out = [];
    if (parts[user]) for (const e of box.edges) if (e[0] === source) for (const p of parts[user].list) {
      const pill = SHEETS[p.group].at.get(e[2]);
      if (pill !== undefined) out.push([left + p.x + p.plan.place.xs[pill],
        p.y + p.plan.tops[0] + (p.plan.heights[0] - p.plan.sizes[pill][1]) / 2]);
    }
    return out.length ? out : [[place.xs[user], 0]];
  };
  const found = channels(sheet, place, (u, s) => pills(u, s).map((p) => p[0])), tops = [];
  let y = 0, height = 0;
  heights.forEach((h, r) => {
    tops[r] = y; height = y + h;
    y += h + ABOVE + TRACK * found[r].reduce((m, n) => Math.max(m, n.track + 1), 0) + BELOW;
  });
  const plan = { sheet, parts, sizes, place, heights, tops, height, found, pills };
  if (plain) folded.set(group, plan);
  return plan;
}
function partsOf(box, prefix) {
  const list = [];
  let x = PAD, h = 0;
  for (const group of box.inner) {
    const plan = planOf(group, prefix), labelled = ["branch", "clause"].includes(GROUPS[group].kind);
    const y = HEAD + (labelled ? LABEL : 0) + PAD / 2;
    list.push({ group, plan, x, y, labelled });
    x += Math.max(plan.place.width, 7 * Math.min(GROUPS[group].label.length, 40)) + PAD;
    h = Math.max(h, y + plan.height);
  }
  return { list, w: x, h: h + PAD };
}

// Everything that is unfolded, with its places in the drawing.
function layout() {
  Object.assign(state, { boxes: [], lines: [], labels: [], byKey: new Map() });
  if (state.root < 0) return;
  const plan = planOf(state.root, "");
  const stack = [{ plan, x: 0, y: 0, prefix: "" }];
  Object.assign(state, { width: plan.place.width, height: plan.height });
  while (stack.length) {
    const { plan, x, y, prefix } = stack.pop(), { sheet } = plan;
    const mine = sheet.boxes.map((box, i) => {
      const [w, h] = plan.sizes[i], r = sheet.ranks[i];
      const it = { key: prefix + sheet.group + "." + box.node, box, w, h, x: x + plan.place.xs[i] - w / 2, y: y + plan.tops[r] + (plan.heights[r] - h) / 2,
        open: !!plan.parts[i], result: i === sheet.result, from: [], to: [] };
      state.boxes.push(it); state.byKey.set(it.key, it);
      if (it.open) for (const p of plan.parts[i].list) {
        if (p.labelled) state.labels.push({ text: GROUPS[p.group].label, x: it.x + p.x, y: it.y + HEAD + LABEL - 5, cls: "part" });
        stack.push({ plan: p.plan, x: it.x + p.x, y: it.y + p.y, prefix: it.key + "/" });
      }
      return it;
    });
    for (const it of mine) for (const e of it.box.edges) { it.from.push(mine[e[0]].key); mine[e[0]].to.push(it.key); }
    plan.found.forEach((nets, r) => {
      const upper = y + plan.tops[r] + plan.heights[r];
      for (const net of nets) {
        const from = mine[net.source], track = upper + ABOVE + TRACK * net.track;
        let begin = net.fromBox ? from.y + from.h : upper;
        if (net.fromBox) state.labels.push({ text: NODES[from.box.node].shape.replace(/^\(.*/, ""), x: x + net.x + 4, y: begin + 11, cls: "shape" });
        if (net.fromSide) begin = track;
        net.ends.forEach(([ex, user], i) => {
          let end, text = "";
          if (user >= 0) {
            const pill = plan.pills(user, net.source).find((p) => p[0] === ex);
            end = mine[user].y + pill[1];
            text = (mine[user].box.edges.find((e) => e[0] === net.source && e[1]) || [])[1] || "";
          } else if (net.toSide && i === net.ends.length - 1) {
            const last = Math.max(...sheet.users[net.source].map((u) => sheet.ranks[u])) - 1;
            const leaves = plan.found[last].find((n) => n.source === net.source && n.fromSide);
            end = y + plan.tops[last] + plan.heights[last] + ABOVE + TRACK * leaves.track;
          } else end = y + plan.tops[r + 1] + plan.heights[r + 1];
          state.lines.push({ from: from.key, to: user >= 0 ? mine[user].key : "", x0: x + net.x, y0: begin, track, x1: x + ex, y1: end, text });
        });
      }
    });
  }
}

function path(l) {
  const bend = Math.min(ROUND, Math.abs(l.x1 - l.x0) / 2, Math.abs(l.track - l.y0), Math.abs(l.y1 - l.track));
  if (bend < 0.5) return `M${l.x0},${l.y0}V${l.track}H${l.x1}V${l.y1}`;
  const to = l.x1 > l.x0 ? bend : -bend, down = l.y1 >= l.track ? bend : -bend, drop = l.track >= l.y0 ? bend : -bend;
  return `M${l.x0},${l.y0}V${l.track - drop}q0,${drop} ${to},${drop}H${l.x1 - to}q${to},0 ${to},${down}V${l.y1}`;
}
function drawnBox(it, found) {
  const { box, w, h } = it, inside = box.inner.length > 0;
  const cls = ["box", box.family, it.open && "open", it.result && "result", box.target && "target" + (DATA.targets.indexOf(box.target) % 4),
    state.chosen === it.key && "chosen", found.has(it.key) && "found"];
  const g = el("g", { class: cls.filter(Boolean).join(" "), transform: `translate(${it.x},${it.y})`, "data-key": it.key });
  g.append(el("rect", { class: "body", width: w, height: h, rx: box.pill ? HEAD / 2 : 5 }));
  if (!box.pill) {
    const rest = box.rows.length || it.open ? `V${HEAD}H0V5` : `V${h - 5}a5,5 0 0 1 -5,5H5a5,5 0 0 1 -5,-5V5`;
    g.append(el("path", { class: "head", d: `M0,5a5,5 0 0 1 5,-5H${w - 5}a5,5 0 0 1 5,5${rest}Z` }));
  }
  g.append(el("text", { class: "title", y: 16, ...(it.open ? { x: 8 } : { x: w / 2, "text-anchor": "middle" }) },
    (it.open ? "⊟ " : inside ? "⊞ " : "") + box.title));
  if (!it.open) box.rows.forEach(([name, size], i) => {
    g.append(el("text", { class: "row", x: 8, y: HEAD + LINE * (i + 1) - 3 }, name));
    g.append(el("text", { class: "size", x: w - 8, y: HEAD + LINE * (i + 1) - 3 }, size));
  });
  if (inside) g.append(el("rect", { class: "fold", "data-fold": it.key, width: it.open ? w : HEAD + 8, height: HEAD, x: it.open ? 0 : Math.max(0, w / 2 - box.title.length * 3.5 - 20) }));
  return g;
}
function drawnLine(l) {
  const near = state.chosen && (l.from === state.chosen || l.to === state.chosen) ? " near" : "";
  const out = [el("path", { class: "line" + near, d: path(l), "data-from": l.from, "data-to": l.to })];
  if (l.to) out.push(el("path", { class: "tip" + near, d: `M${l.x1},${l.y1}l-3.5,-7h7z` }));
  if (l.text) out.push(el("text", { class: "path", x: l.x1 + 4, y: l.y1 - 3 }, l.text));
  return out;
}
// What a window shows: outer boxes, edges, the other boxes, names.
function picture(x0, y0, x1, y1) {
  const parts = document.createDocumentFragment(), found = new Set(state.found);
  const sees = (it) => it.x < x1 && it.x + it.w > x0 && it.y < y1 && it.y + it.h > y0;
  for (const it of state.boxes) if (it.open && sees(it)) parts.append(drawnBox(it, found));
  for (const l of state.lines)
    if (Math.min(l.x0, l.x1) < x1 && Math.max(l.x0, l.x1) > x0 && Math.min(l.y0, l.y1) < y1 && Math.max(l.y0, l.y1) > y0) parts.append(...drawnLine(l));
  for (const it of state.boxes) if (!it.open && sees(it)) parts.append(drawnBox(it, found));
  for (const l of state.labels) if (l.text && l.x < x1 && l.x + 200 > x0 && l.y < y1 && l.y + 12 > y0)
    parts.append(el("text", { class: l.cls, x: l.x, y: l.y }, l.text.length > 48 ? l.text.slice(0, 47) + "…" : l.text));
  return parts;
}
function windowNow() {
  const r = $("svg").getBoundingClientRect();
  return [-state.x / state.k, -state.y / state.k, (r.width - state.x) / state.k, (r.height - state.y) / state.k];
}
function draw() {
  const [x0, y0, x1, y1] = windowNow(), w = (x1 - x0) / 2, h = (y1 - y0) / 2;
  $("view").replaceChildren(picture(x0 - w, y0 - h, x1 + w, y1 + h));
  move();
}
let mapPicture = null;
function drawMap() {
  const map = $("map"), dense = window.devicePixelRatio || 1, W = 150, H = 190, c = map.getContext("2d");
  const k = Math.min((W - 8) / state.width, (H - 8) / state.height);
  map.hidden = !(k < Infinity);
  state.mapScale = k;
  map.width = W * dense; map.height = H * dense; map.style.width = W + "px"; map.style.height = H + "px";
  c.scale(dense, dense);
  const style = getComputedStyle(document.documentElement), colours = new Map();
  const colour = (name) => colours.get(name) || (colours.set(name, style.getPropertyValue("--" + name) || "#888"), colours.get(name));
  for (const it of state.boxes) {
    c.fillStyle = colour(it.open ? "rim" : it.box.pill ? "line" : it.box.family);
    c.fillRect(4 + it.x * k, 4 + it.y * k, Math.max(1, it.w * k), Math.max(0.8, it.h * k));
  }
  mapPicture = c.getImageData(0, 0, map.width, map.height);
}
function move() {
  $("view").setAttribute("transform", `translate(${state.x},${state.y}) scale(${state.k})`);
  if (!mapPicture) return;
  const c = $("map").getContext("2d"), [x0, y0, x1, y1] = windowNow(), k = state.mapScale;
  c.putImageData(mapPicture, 0, 0);
  c.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark");
  c.lineWidth = 1.5;
  c.strokeRect(4 + x0 * k, 4 + y0 * k, (x1 - x0) * k, (y1 - y0) * k);
}
let later = 0;
function soon() { move(); clearTimeout(later); later = setTimeout(draw, 60); }
function refresh() { layout(); drawMap(); search(false); draw(); }

function fit() {
  const r = $("svg").getBoundingClientRect(), most = Math.min(r.width / (state.width + 60), r.height / (state.height + 60));
  state.k = Math.min(1.4, Math.max(0.02, most));
  state.x = (r.width - state.k * state.width) / 2; state.y = (r.height - state.k * state.height) / 2;
  draw();
}
// A size at which text can be read, with the inputs at the top.
function home() {
  const r = $("svg").getBoundingClientRect();
  const first = state.boxes.filter((it) => it.box.pill && !it.key.includes("/")).sort((a, b) => a.y - b.y)[0] || state.boxes[0];
  if (!first) return;
  state.k = Math.min(1.1, Math.max(0.85, r.width / (state.width + 60)));
  state.x = state.width * state.k < r.width ? (r.width - state.k * state.width) / 2 : r.width / 2 - state.k * (first.x + first.w / 2);
  // calls above the inputs stay in sight where there is room for them
  state.y = 28 - state.k * (first.y * state.k < r.height / 2 ? 0 : first.y - 60);
  draw();
}
function center(key) {
  const it = state.byKey.get(key), r = $("svg").getBoundingClientRect();
  if (!it) return;
  state.k = Math.max(state.k, 0.7);
  state.x = r.width / 2 - state.k * (it.x + it.w / 2);
  state.y = r.height / 2 - state.k * (it.y + Math.min(it.h, 300) / 2);
  draw();
}
function choose(key) { state.chosen = key; show(); draw(); }

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
  table(rows, to);
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
function links(what, keys, to) {
  if (!keys.length) return;
  add("h3", what, to);
  for (const k of [...new Set(keys)].slice(0, 50)) {
    const o = state.byKey.get(k), a = add("a", o.box.title, to);
    a.onclick = () => { choose(k); center(k); };
    add("span", " " + NODES[o.box.node].shape, to, "default");
    add("br", "", to);
  }
}
function show() {
  const panel = $("panel"), it = state.byKey.get(state.chosen);
  panel.replaceChildren();
  if (!it) return;
  const n = NODES[it.box.node];
  add("h2", n.label, panel);
  if (it.box.target) table([["target", it.box.target]], panel);
  facts(n, panel);
  for (const [name, size, id] of it.box.rows) if (id >= 0) {
    const more = add("details", "", panel);
    add("summary", `${name}  ${size}`, more);
    facts(NODES[id], more);
  }
  links("inputs", it.from, panel);
  links("used by", it.to, panel);
  for (const group of it.box.inner) if (GROUPS[group].attrs.length) { add("h3", GROUPS[group].label, panel); table(GROUPS[group].attrs, panel); }
}

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
  state.found = [];
  if (text) for (const [group, prefix] of ways()) if (group >= 0)
    for (const b of SHEETS[group].boxes) if ((!b.pill || !prefix) && (says(NODES[b.node]) || b.rows.some((r) => r[2] >= 0 && says(NODES[r[2]])))) state.found.push(prefix + group + "." + b.node);
  state.at = -1;
  $("count").textContent = text ? `${state.found.length} found` : `${state.boxes.length} boxes`;
  if (go) draw();
}
function step(by) {
  if (!state.found.length) return;
  const at = state.at < 0 && by < 0 ? state.found.length - 1 : (state.at + by + state.found.length) % state.found.length;
  const key = state.found[at], parts = key.split("/");
  if (!state.byKey.has(key)) {
    for (let i = 1; i < parts.length; i++) state.open.add(parts.slice(0, i).join("/"));
    refresh();
  }
  state.at = at;
  $("count").textContent = `${at + 1} of ${state.found.length}`;
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

function svgText() {
  const style = getComputedStyle(document.documentElement), rules = [...document.styleSheets].flatMap((s) => [...s.cssRules]).map((r) => r.cssText);
  const plain = rules.filter((t) => !t.startsWith("@") && !t.startsWith(":root")).join("\n").replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name));
  const svg = el("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `-20 -20 ${state.width + 40} ${state.height + 40}`, width: state.width + 40, height: state.height + 40 });
  svg.append(el("style", {}, plain), el("rect", { class: "paper", x: -20, y: -20, width: state.width + 40, height: state.height + 40 }),
    picture(-Infinity, -Infinity, Infinity, Infinity));
  return new XMLSerializer().serializeToString(svg);
}
function save(blob, ending) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(blob);
  a.download = document.title.replace(/\.\w+$/, "") + ending;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}
function pngOf(done) {
  const image = new Image(), text = svgText();
  image.onload = () => {
    const canvas = document.createElement("canvas"), k = Math.min(2, 16000 / Math.max(image.width, image.height));
    canvas.width = image.width * k; canvas.height = image.height * k;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob(done);
  };
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
}

for (const g of roots) { const o = document.createElement("option"); o.value = g.id; o.textContent = g.label; $("function").append(o); }
$("function").value = state.root;
$("function").onchange = (e) => { state.root = +e.target.value; state.open.clear(); state.chosen = null; show(); refresh(); home(); };
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
  0: fit, Home: home, n: () => step(1), N: () => step(-1), e: unfoldAll, c: () => $("foldall").onclick(), "?": () => $("keys").onclick(),
  Enter: () => { if (state.chosen) fold(state.chosen); }, Escape: () => { $("help").hidden = true; choose(null); },
  "/": () => $("search").focus(), ArrowLeft: () => { state.x += 80; soon(); }, ArrowRight: () => { state.x -= 80; soon(); },
  ArrowUp: () => { state.y += 80; soon(); }, ArrowDown: () => { state.y -= 80; soon(); },
};
window.onkeydown = (e) => {
  if (e.target.tagName === "INPUT" || e.target.tagName === "SELECT" || e.ctrlKey || e.metaKey || !Object.hasOwn(KEYS, e.key)) return;
  KEYS[e.key](); e.preventDefault();
};
window.onresize = draw;
refresh();
home();
