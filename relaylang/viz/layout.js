"use strict";
// The layouts come from relaylang/viz/layout.py. The page moves boxes apart where one is unfolded, and lays the edges anew.
const STEPS = JSON.parse(document.getElementById("data").textContent);
const named = (keys, row) => row && Object.fromEntries(keys.map((k, i) => [k, row[i]]));
const folded = new Map();
let STEP, NODES, GROUPS, SHEETS;
function load(number) {
  STEP = STEPS[number];
  NODES = STEP.nodes.map((r) => named(["kind", "label", "type", "shape", "attrs", "hidden", "name", "place", "line", "statistics", "notes", "seconds"], r));
  GROUPS = STEP.groups.map((r, id) => ({ id, ...named(["label", "kind", "parent", "attrs", "change"], r) }));
  SHEETS = STEP.sheets.map((s, group) => ({ ...s, group, boxes: s.boxes.map((r) =>
    named(["node", "title", "rows", "pill", "inner", "target", "classes", "change", "w", "h", "edges"], r)) }));
  for (const s of SHEETS) s.at = new Map(s.boxes.map((b, i) => [b.node, i]));
  folded.clear();
}
// the measures of relaylang/viz/scene.py and boxes.py
const PAD = 14, LABEL = 18, LETTERS = 11, ABOVE = 19, TRACK = 8, BELOW = 13, HEAD = 24, LINE = 15, ROUND = 5;
const READABLE = 0.2, DEEPEST = 60, MOST = 20000, MOST_WAYS = 4;
const $ = (id) => document.getElementById(id);
const el = (name, attrs, text) => {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const k in attrs) e.setAttribute(k, attrs[k]);
  if (text !== undefined) e.textContent = text;
  return e;
};
const state = { root: -1, open: new Set(), chosen: null, found: [], at: -1, changed: [], x: 0, y: 0, k: 1, boxes: [], lines: [], labels: [],
  byKey: new Map(), width: 0, height: 0 };

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

// The places of a group's boxes and edges; `prefix` is the way to the group.
function planOf(group, prefix) {
  const sheet = SHEETS[group], plain = !sheet.boxes.some((b) => state.open.has(prefix + group + "." + b.node));
  if (plain && folded.has(group)) return folded.get(group);
  const parts = sheet.boxes.map((b) => state.open.has(prefix + group + "." + b.node) ? partsOf(b, prefix + group + "." + b.node + "/") : null);
  const sizes = sheet.boxes.map((b, i) => parts[i] ? [Math.max(b.w, parts[i].w), parts[i].h] : [b.w, b.h]);
  const place = stretched(sheet, sizes.map((s) => s[0])), heights = [];
  sheet.ranks.forEach((r, i) => { heights[r] = Math.max(heights[r] || 0, sizes[i][1]); });
  const ports = portsOf(sheet, place, sizes);
  const pills = (user, source) => {
    const box = sheet.boxes[user], left = place.xs[user] - sizes[user][0] / 2, out = [];
    if (parts[user]) for (const e of box.edges) if (e[0] === source) for (const p of parts[user].list) {
      const pill = SHEETS[p.group].at.get(e[2]);
      if (pill !== undefined) out.push([left + p.x + p.plan.place.xs[pill],
        p.y + p.plan.tops[0] + p.plan.heights[0] - p.plan.sizes[pill][1]]);
    }
    return out.length ? out : [[ports[user].get(source), 0]];
  };
  const found = channels(sheet, place, (u, s) => pills(u, s).map((p) => p[0])), tops = [];
  let y = 0, height = 0;
  heights.forEach((h, r) => {
    tops[r] = y; height = y + h;
    y += h + ABOVE + TRACK * found[r].reduce((m, n) => Math.max(m, n.track + 1), 0) + BELOW;
  });
  const plan = { sheet, parts, sizes, place, heights, tops, height, found, pills, ports };
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

// The ranks of the boxes to which a part of a lane leads, from the first to the last.
function servedBy(plan, source, rank, side) {
  const last = plan.sheet.ranks[source] + (plan.place.lanes[source] || []).length + 1;
  return side ? [last + 1, Infinity] : [rank + 2, last];
}
// The ways inside a tuple that edges take; a single one has its shape behind it.
function pathsOf(edges) {
  const texts = [...new Set(edges.map((e) => e[1]).filter(Boolean))], ways = texts.map((text) => text.split(" ")[0]);
  if (texts.length < 2) return texts.join("");
  return ways.length <= MOST_WAYS ? ways.join(", ") : `${ways[0]}, ${ways[1]}, …, ${ways.at(-1)}`;
}

// Everything that is unfolded, with its places in the drawing.
function layout() {
  Object.assign(state, { boxes: [], lines: [], labels: [], byKey: new Map() });
  if (state.root < 0) { state.labels.push({ text: $("drawing").dataset.empty, x: 0, y: 15, cls: "function" }); return; }
  const plan = planOf(state.root, "");
  const stack = [{ plan, x: 0, y: 0, prefix: "" }];
  Object.assign(state, { width: plan.place.width, height: plan.height });
  while (stack.length) {
    const { plan, x, y, prefix } = stack.pop(), { sheet } = plan;
    const mine = sheet.boxes.map((box, i) => {
      const [w, h] = plan.sizes[i], r = sheet.ranks[i];
      const it = { key: prefix + sheet.group + "." + box.node, box, w, h, x: x + plan.place.xs[i] - w / 2, y: y + plan.tops[r] + plan.heights[r] - h,
        rank: r, labelled: 0, open: !!plan.parts[i], result: i === sheet.result, from: [], to: [] };
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
        const begin = net.fromSide ? track : upper;
        if (net.fromBox) state.labels.push({ text: NODES[from.box.node].shape.replace(/^\(.*/, ""), x: x + net.x + 4, y: begin + 11, cls: "shape" });
        net.ends.forEach(([ex, user], i) => {
          let end, under = 0, change = sheet.changes[net.source] || "", serves = null;
          if (user >= 0) {
            const pill = plan.pills(user, net.source).find((p) => p[0] === ex), edges = mine[user].box.edges.filter((e) => e[0] === net.source);
            end = mine[user].y + pill[1];
            under = pill[1] ? mine[user].y : 0;
            change = edges[0][3];
            const text = pathsOf(edges);
            const beside = mine[user].open ? ex : clearOf(plan.ports[user].values(), ex);
            if (text) state.labels.push({ text, x: x + beside + 6, y: y + plan.tops[r + 1] + 8 - LETTERS * ++mine[user].labelled, cls: "path" });
          } else if (net.toSide && i === net.ends.length - 1) {
            serves = servedBy(plan, net.source, r, true);
            const last = Math.max(...sheet.users[net.source].map((u) => sheet.ranks[u])) - 1;
            const leaves = plan.found[last].find((n) => n.source === net.source && n.fromSide);
            end = y + plan.tops[last] + plan.heights[last] + ABOVE + TRACK * leaves.track;
          } else {
            serves = servedBy(plan, net.source, r, false);
            end = y + plan.tops[r + 1] + plan.heights[r + 1];
          }
          state.lines.push({ from: from.key, to: user >= 0 ? mine[user].key : "", x0: x + net.x, y0: begin, track, x1: x + ex, y1: end, change, under, serves });
        });
      }
    });
  }
}

