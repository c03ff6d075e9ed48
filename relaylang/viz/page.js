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
    parts.append(el("text", { class: l.cls, x: l.x, y: l.y }, l.text.length > 48 ? l.text.slice(0, 47) + "…" : l.text));
  return parts;
}
function windowNow() {
  const r = $("svg").getBoundingClientRect();
  return [-state.x / state.k, -state.y / state.k, (r.width - state.x) / state.k, (r.height - state.y) / state.k];
}
function draw() {
  const [x0, y0, x1, y1] = windowNow(), w = (x1 - x0) / 2, h = (y1 - y0) / 2;
  $("view").replaceChildren(picture(x0 - w, y0 - h, x1 + w, y1 + h, state.k > READABLE));
  highlight();
  move();
}
// The chosen box, and the edges at it.
function highlight() {
  for (const e of $("view").querySelectorAll(".chosen, .near")) e.classList.remove("chosen", "near");
  if (!state.chosen) return;
  for (const e of $("view").querySelectorAll(`[data-key="${state.chosen}"]`)) e.classList.add("chosen");
  for (const e of $("view").querySelectorAll(`[data-from="${state.chosen}"], [data-to="${state.chosen}"]`)) e.classList.add("near");
}
// The colour that a difference, a time or a target gives a box on the map.
function mark(box) {
  if (STEP.says) return box.change === "inside" ? "changed" : box.change;
  return (box.classes.match(/heat\d/) || [""])[0] || (box.target && "target" + (STEP.targets.indexOf(box.target) % 4));
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
    c.fillStyle = colour(it.open ? "rim" : mark(it.box) || (it.box.pill ? "line" : it.box.classes.split(" ")[1]));
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
function choose(key) { state.chosen = key; show(); highlight(); move(); }

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

