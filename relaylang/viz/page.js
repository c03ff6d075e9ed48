function path(l) {
  // a line into an unfolded box goes on under its head
  const last = l.under ? `V${l.under}M${l.x1},${l.under + HEAD}V${l.y1}` : `V${l.y1}`, y1 = l.under || l.y1;
  const bend = Math.min(ROUND, Math.abs(l.x1 - l.x0) / 2, Math.abs(l.track - l.y0), Math.abs(y1 - l.track));
  if (bend < 0.5) return `M${l.x0},${l.y0}V${l.track}H${l.x1}${last}`;
  const to = l.x1 > l.x0 ? bend : -bend, down = y1 >= l.track ? bend : -bend, drop = l.track >= l.y0 ? bend : -bend;
  return `M${l.x0},${l.y0}V${l.track - drop}q0,${drop} ${to},${drop}H${l.x1 - to}q${to},0 ${to},${down}${last}`;
}
function drawnBox(it, found, letters) {
  const { box, w, h } = it, inside = box.inner.length > 0;
  const cls = [box.classes, it.open && "open", it.result && "result", box.target && "target" + (STEP.targets.indexOf(box.target) % 4),
    found.has(it.key) && "found"];
  const g = el("g", { class: cls.filter(Boolean).join(" "), transform: `translate(${it.x},${it.y})`, "data-key": it.key });
  g.append(el("rect", { class: "body", width: w, height: h, rx: box.pill ? HEAD / 2 : 5 }));
  if (!box.pill) {
    const rest = box.rows.length || it.open ? `V${HEAD}H0V5` : `V${h - 5}a5,5 0 0 1 -5,5H5a5,5 0 0 1 -5,-5V5`;
    g.append(el("path", { class: "head", d: `M0,5a5,5 0 0 1 5,-5H${w - 5}a5,5 0 0 1 5,5${rest}Z` }));
  }
  if (letters) g.append(el("text", { class: "title", y: 16, ...(it.open ? { x: 8 } : { x: w / 2, "text-anchor": "middle" }) },
    (it.open ? "⊟ " : inside ? "⊞ " : "") + box.title));
  if (!it.open && letters) box.rows.forEach(([name, size, , style], i) => {
    g.append(el("text", { class: ("row " + style).trim(), x: 8, y: HEAD + LINE * (i + 1) - 3 }, name));
    if (size) g.append(el("text", { class: "size", x: w - 8, y: HEAD + LINE * (i + 1) - 3 }, size));
  });
  if (inside) g.append(el("rect", { class: "fold", "data-fold": it.key, width: it.open ? w : HEAD + 8, height: HEAD, x: it.open ? 0 : Math.max(0, w / 2 - box.title.length * 3.5 - 20) }));
  return g;
}
function drawnLine(l) {
  const cls = l.change && " " + l.change, ends = { "data-from": l.from, "data-to": l.to };
  if (l.serves) Object.assign(ends, { "data-first": l.serves[0], "data-last": l.serves[1] });
  const out = [el("path", { class: "line" + cls, d: path(l), ...ends })];
  if (l.to) out.push(el("path", { class: "tip" + cls, d: `M${l.x1},${l.y1}l-3.5,-7h7z`, ...ends }));
  return out;
}
// What a window shows: outer boxes, edges, the other boxes, names. Letters cost most, and are left out where they are tiny.
function picture(x0, y0, x1, y1, letters = true) {
  const parts = document.createDocumentFragment(), found = new Set(state.searched ? state.found : []);
  const sees = (it) => it.x < x1 && it.x + it.w > x0 && it.y < y1 && it.y + it.h > y0;
  for (const it of state.boxes) if (it.open && sees(it)) parts.append(drawnBox(it, found, letters));
  for (const l of state.lines)
    if (Math.min(l.x0, l.x1) < x1 && Math.max(l.x0, l.x1) > x0 && Math.min(l.y0, l.y1) < y1 && Math.max(l.y0, l.y1) > y0) parts.append(...drawnLine(l));
  for (const it of state.boxes) if (!it.open && sees(it)) parts.append(drawnBox(it, found, letters));
  if (letters) for (const l of state.labels) if (l.text && l.x < x1 && l.x + 200 > x0 && l.y < y1 && l.y + 12 > y0)
    parts.append(el("text", { class: l.cls, x: l.x, y: l.y }, shortened(l.text)));
  return parts;
}
const shortened = (text) => text.length > 48 ? text.slice(0, 47) + "…" : text;
function windowNow() {
  const r = $("svg").getBoundingClientRect();
  return [-state.x / state.k, -state.y / state.k, (r.width - state.x) / state.k, (r.height - state.y) / state.k];
}
function draw() {
  const [x0, y0, x1, y1] = windowNow(), w = (x1 - x0) / 2, h = (y1 - y0) / 2;
  $("view").replaceChildren(picture(x0 - w, y0 - h, x1 + w, y1 + h, state.k > READABLE));
  highlight();
  placeMap();
  move();
}
// The chosen box with the whole ways of its edges, and the edges of the box under the pointer.
let pointed = null;
function highlight() {
  for (const e of $("view").querySelectorAll(".chosen, .near, .out, .hint")) e.classList.remove("chosen", "near", "out", "hint");
  if (pointed && pointed !== state.chosen) for (const [e] of edgesAt(pointed)) e.classList.add("hint");
  if (!state.chosen) return;
  for (const e of $("view").querySelectorAll(`[data-key="${state.chosen}"]`)) e.classList.add("chosen");
  for (const [e, leaves] of edgesAt(state.chosen)) e.classList.add("near", ...(leaves ? ["out"] : []));
}
// The drawn parts of the edges at a box, and whether they leave it. A value in a lane passes other users before.
function edgesAt(key) {
  const it = state.byKey.get(key), found = [];
  for (const e of it ? $("view").querySelectorAll("[data-from]") : []) {
    const { from, to, first, last } = e.dataset;
    if (from === key || to === key || (first && first <= it.rank && it.rank <= last && it.from.includes(from))) found.push([e, from === key]);
  }
  return found;
}
function point(key) { if (key !== pointed) { pointed = key; highlight(); } }
// The colour that a difference, a time or a target gives a box on the map.
function mark(box) {
  if (STEP.says) return box.change === "inside" ? "changed" : box.change;
  return (box.classes.match(/heat\d/) || [""])[0] || (box.target && "target" + (STEP.targets.indexOf(box.target) % 4));
}
// The map is as large as the drawing's form needs, and at most so large.
const MAP_WIDTH = 170, MAP_HEIGHT = 190, MAP_EDGE = 4, MAP_LEAST = 16, CORNER = 10;
let mapPicture = null, mapCorner = 0, mapWanted = true;
function drawMap() {
  const map = $("map"), dense = window.devicePixelRatio || 1, c = map.getContext("2d");
  const k = Math.min((MAP_WIDTH - 2 * MAP_EDGE) / state.width, (MAP_HEIGHT - 2 * MAP_EDGE) / state.height);
  state.mapScale = k;
  mapPicture = null;
  if (!(k < Infinity)) return;
  const size = [state.width, state.height].map((s) => Math.max(MAP_LEAST, Math.ceil(s * k)) + 2 * MAP_EDGE);
  [map.width, map.height] = size.map((s) => s * dense);
  [map.style.width, map.style.height] = size.map((s) => s + "px");
  state.mapSize = size.map((s) => s + 2);
  c.scale(dense, dense);
  const style = getComputedStyle(document.documentElement), colours = new Map();
  const colour = (name) => colours.get(name) || (colours.set(name, style.getPropertyValue("--" + name) || "#888"), colours.get(name));
  for (const it of state.boxes) {
    c.fillStyle = colour(it.open ? "rim" : mark(it.box) || (it.box.pill ? "line" : it.box.classes.split(" ")[1]));
    c.fillRect(MAP_EDGE + it.x * k, MAP_EDGE + it.y * k, Math.max(1, it.w * k), Math.max(0.8, it.h * k));
  }
  mapPicture = c.getImageData(0, 0, map.width, map.height);
}
// The map stands in a corner where it covers no box. There is none while all is seen, and none in a small window.
function placeMap() {
  const map = $("map"), r = $("svg").getBoundingClientRect(), [x0, y0, x1, y1] = windowNow();
  const small = r.width < 2 * MAP_WIDTH || r.height < 2 * MAP_HEIGHT;
  map.hidden = !mapWanted || !mapPicture || small || (x0 <= 0 && y0 <= 0 && x1 >= state.width && y1 >= state.height);
  if (map.hidden) return;
  const [w, h] = state.mapSize, right = r.width - w - CORNER, bottom = r.height - h - CORNER;
  const corners = [[CORNER, bottom], [right, bottom], [right, CORNER], [CORNER, CORNER]];
  const covers = ([left, top]) => {
    const [l, t] = [(left - state.x) / state.k, (top - state.y) / state.k], [rest, low] = [l + w / state.k, t + h / state.k];
    return state.boxes.some((it) => !it.open && it.x < rest && it.x + it.w > l && it.y < low && it.y + it.h > t);
  };
  const free = [mapCorner, 0, 1, 2, 3].find((n) => !covers(corners[n]));
  mapCorner = free ?? mapCorner;
  map.classList.toggle("over", free === undefined);
  [map.style.left, map.style.top] = corners[mapCorner].map((p) => p + "px");
}
function move() {
  $("view").setAttribute("transform", `translate(${state.x},${state.y}) scale(${state.k})`);
  if (!mapPicture) return;
  const c = $("map").getContext("2d"), [x0, y0, x1, y1] = windowNow(), k = state.mapScale;
  c.putImageData(mapPicture, 0, 0);
  c.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--mark");
  c.lineWidth = 1.5;
  c.strokeRect(MAP_EDGE + x0 * k, MAP_EDGE + y0 * k, (x1 - x0) * k, (y1 - y0) * k);
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
// The first input, else the first box.
function firstBox() {
  return state.boxes.filter((it) => it.box.pill && !it.key.includes("/")).sort((a, b) => a.y - b.y)[0] || state.boxes[0];
}
// A size at which text can be read, with the inputs at the top.
function home() {
  const r = $("svg").getBoundingClientRect();
  const first = firstBox();
  state.unseen = !r.width;
  if (!first) {
    Object.assign(state, { x: 40, y: 40, k: 1 });
    draw();
    return;
  }
  state.k = Math.min(1.1, Math.max(0.85, r.width / (state.width + 60)));
  state.x = state.width * state.k < r.width ? (r.width - state.k * state.width) / 2 : r.width / 2 - state.k * (first.x + first.w / 2);
  // calls above the inputs stay in sight where there is room for them
  state.y = 28 - state.k * (first.y * state.k < r.height / 2 ? 0 : first.y - 60);
  draw();
}
// The result, in the middle.
function toResult() {
  const it = state.boxes.find((b) => b.result && !b.key.includes("/"));
  if (it) { choose(it.key); center(it.key); }
}
function center(key) {
  const it = state.byKey.get(key), r = $("svg").getBoundingClientRect();
  if (!it) return;
  state.k = Math.max(state.k, 0.7);
  state.x = r.width / 2 - state.k * (it.x + it.w / 2);
  state.y = r.height / 2 - state.k * (it.y + Math.min(it.h, 300) / 2);
  draw();
}
function choose(key) {
  const [width, height] = [$("svg").clientWidth, $("svg").clientHeight];
  state.chosen = key;
  show();
  // the panel may open over the box
  const it = state.byKey.get(key), [, , x1, y1] = windowNow(), edge = 12 / state.k;
  if (it && $("svg").clientWidth < width) state.x -= state.k * Math.max(0, Math.min(it.x + it.w + edge - x1, it.x - edge + state.x / state.k));
  if (it && $("svg").clientHeight < height) state.y -= state.k * Math.max(0, Math.min(it.y + it.h + edge - y1, it.y - edge + state.y / state.k));
  highlight(); move();
}

// The box that an arrow leads to: an input, a user, or the nearest at that side. From the last box, the one around it.
function beside(it, way) {
  const around = it.key.includes("/") ? it.key.slice(0, it.key.lastIndexOf("/")) : null;
  if (way === "up" || way === "down") return (way === "up" ? it.from : it.to)[0] ?? around;
  const sheet = it.key.slice(0, it.key.lastIndexOf(".")), sign = way === "left" ? -1 : 1, middle = it.x + it.w / 2;
  let best = null, least = Infinity;
  for (const other of state.boxes) {
    const far = sign * (other.x + other.w / 2 - middle);
    const level = other.y < it.y + it.h && other.y + other.h > it.y && other.key.slice(0, other.key.lastIndexOf(".")) === sheet;
    if (level && far > 0 && far < least) [best, least] = [other.key, far];
  }
  return best;
}
function walk(way) {
  const it = state.byKey.get(state.chosen), key = it ? beside(it, way) : firstBox()?.key;
  if (!key) return;
  choose(key);
  const now = state.byKey.get(key), [x0, y0, x1, y1] = windowNow();
  if (now.x < x0 || now.x + now.w > x1 || now.y < y0 || now.y + Math.min(now.h, y1 - y0) > y1) center(key);
}

// The size of the whole drawing with a margin; labels at edges may be wider than the boxes.
function paper() {
  const end = (l) => l.x + (l.cls === "function" ? 10 : 6) * shortened(l.text).length;
  return [state.labels.reduce((most, l) => Math.max(most, end(l)), state.width) + 40, Math.max(state.height, LINE) + 40];
}
// Paper shows the whole drawing in light colours, at its own size or as wide as the paper.
let themeBefore;
function toPaper() {
  themeBefore = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = "light";
  const [w, h] = paper();
  $("svg").setAttribute("viewBox", `-20 -20 ${w} ${h}`);
  $("svg").style.maxWidth = w + "px";
  $("view").removeAttribute("transform");
  $("view").replaceChildren(picture(-Infinity, -Infinity, Infinity, Infinity));
}
function toScreen() {
  if (themeBefore) document.documentElement.dataset.theme = themeBefore; else delete document.documentElement.dataset.theme;
  $("svg").removeAttribute("viewBox");
  $("svg").style.maxWidth = "";
  draw();
}

function svgText() {
  const style = getComputedStyle(document.documentElement), rules = [...document.styleSheets].flatMap((s) => [...s.cssRules]).map((r) => r.cssText);
  const plain = rules.filter((t) => !t.startsWith("@") && !t.startsWith(":root")).join("\n").replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name));
  const [width, height] = paper(), svg = el("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: `-20 -20 ${width} ${height}`, width, height });
  svg.append(el("style", {}, plain), el("rect", { class: "paper", x: -20, y: -20, width, height }),
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

