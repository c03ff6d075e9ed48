
// What a function is: its inputs, its result, its weights, and how often it has each operator.
const BITS = /(\d+)/;
function about(panel) {
  const groups = [...ways().keys()].filter((group) => group >= 0), drawn = groups.flatMap((group) => SHEETS[group].boxes);
  // a called function's parameters are weights of its callers
  const outer = groups.filter((group) => group === state.root || GROUPS[group].kind !== "function").flatMap((group) => SHEETS[group].boxes);
  const rows = (boxes) => boxes.flatMap((b) => b.rows.map((r) => r[2])).filter((id) => id >= 0 && NODES[id].type.startsWith("Tensor["));
  add("h2", state.root < 0 ? "" : GROUPS[state.root].label, panel);
  const top = state.boxes.filter((it) => !it.key.includes("/"));
  links("inputs", top.filter((it) => it.box.pill).map((it) => it.key), panel);
  links("result", top.filter((it) => it.result).map((it) => it.key), panel);
  const weights = new Set([...rows(outer), ...rows(drawn).filter((id) => NODES[id].kind === "const")]);
  let numbers = 0, bytes = 0;
  for (const id of weights) {
    const [, dims, dtype] = NODES[id].type.match(/^Tensor\[\((.*)\), (\w+)\]$/) || [];
    const count = dims === undefined ? NaN : dims.split(",").filter((d) => d.trim()).reduce((n, d) => n * Number(d), 1);
    if (Number.isFinite(count)) { numbers += count; bytes += count * (BITS.test(dtype) ? dtype.match(BITS)[1] : 8) / 8; }
  }
  if (weights.size) table([["weights", weights.size], ["numbers", numbers.toLocaleString("en")], ["bytes", Math.ceil(bytes).toLocaleString("en")]], panel);
  const counts = new Map();
  for (const b of drawn) if (!b.pill && NODES[b.node].kind === "op") counts.set(NODES[b.node].label, (counts.get(NODES[b.node].label) || 0) + 1);
  if (counts.size) add("h3", `operators: ${counted([...counts.values()].reduce((a, b) => a + b), "call")}`, panel);
  for (const [name, count] of [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))) {
    add("button", name, panel).onclick = () => { $("search").value = name; search(); step(1); };
    add("span", " " + count, panel, "default");
    add("br", "", panel);
  }
}
function showAbout() { state.about = state.chosen ? true : !state.about; choose(null); }
