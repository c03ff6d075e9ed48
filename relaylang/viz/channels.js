
// Where edges meet the upper sides of boxes, as in `ports` of channels.py.
const PORT_APART = 12, PORT_LEAST = 3, PORT_CORNER = 8, CLOSE = 40, COMPARED = 60;
function portsOf(sheet, place, sizes) {
  const entries = sheet.boxes.map(() => []);
  sheet.users.forEach((users, source) => {
    const lane = place.lanes[source] || [];
    for (const user of users) {
      const passed = sheet.ranks[user] - sheet.ranks[source] - 1;
      entries[user].push([source, passed > lane.length ? place.sides[source] : passed ? lane[passed - 1] : place.xs[source]]);
    }
  });
  return entries.map((entry, box) => spread(place.xs[box], sizes[box][0], entry));
}
function spread(middle, width, entries) {
  const half = Math.max(0, width / 2 - PORT_CORNER), low = middle - half, high = middle + half;
  const found = new Map(entries.filter(([, x]) => low <= x && x <= high));
  const left = entries.filter(([, x]) => x < low).sort((a, b) => b[1] - a[1] || b[0] - a[0]);
  const right = entries.filter(([, x]) => x > high).sort((a, b) => a[1] - b[1] || a[0] - b[0]);
  const straight = [...found.values()], alone = !straight.length && !(left.length && right.length);
  const first = straight.length ? Math.min(...straight) : middle, last = straight.length ? Math.max(...straight) : middle;
  for (const [side, sign, begin, limit] of [[left, -1, first, low], [right, 1, last, high]]) {
    const gap = Math.min(PORT_APART, sign * (limit - begin) / Math.max(1, side.length));
    const shift = alone ? -sign * gap * (side.length + 1) / 2 : 0;
    side.forEach(([source], i) => found.set(source, gap >= PORT_LEAST ? begin + shift + sign * gap * (i + 1) : (begin + limit) / 2));
  }
  return found;
}

// The last of ports that stand close together, from one to the right. No line crosses a label behind it.
const clearOf = (places, from) => [...places].sort((a, b) => a - b).reduce((x, place) => x < place && place < x + CLOSE ? place : x, from);

// The edges of each channel, as in `channels` of channels.py.
function channels(sheet, place, port) {
  const found = Array.from({ length: Math.max(-1, ...new Set(sheet.ranks)) + 1 }, () => []);
  sheet.users.forEach((users, box) => {
    if (!users.length) return;
    const rank = sheet.ranks[box], lane = place.lanes[box] || [], byRank = new Map();
    for (const u of users) if (!byRank.get(sheet.ranks[u])?.push(u)) byRank.set(sheet.ranks[u], [u]);
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
  found.forEach(tracks);
  return found;
}
// Nets that all lead to one place alone share one height. Only wires with a horizontal part need one.
function wiresOf(nets) {
  const byEnd = new Map();
  nets.forEach((net, i) => {
    const [x, user] = net.ends[0], key = net.ends.length === 1 && user >= 0 ? x + " " + user : i;
    if (!byEnd.get(key)?.push(net)) byEnd.set(key, [net]);
  });
  const up = (xs) => xs.sort((a, b) => a - b);
  return [...byEnd.values()].map((together) => {
    const tops = up(together.map((n) => n.x)), bottoms = up(together.flatMap((n) => n.ends.map((e) => e[0])));
    return { nets: together, tops, bottoms, low: Math.min(tops[0], bottoms[0]), high: Math.max(tops.at(-1), bottoms.at(-1)) };
  }).filter((w) => w.high - w.low >= 0.5).sort((a, b) => a.low - b.low || a.high - b.high);
}
function crossings(above, below) {
  const inside = (xs, w) => xs.reduce((count, x) => count + (w.low < x && x < w.high), 0);
  return inside(above.bottoms, below) + inside(below.tops, above);
}
// Of two edges, that one runs above which makes fewer crossings, as in `_tracks` of channels.py.
function tracks(nets) {
  const wires = wiresOf(nets), give = (wire, track) => { for (const net of wire.nets) net.track = track; };
  if (wires.length > COMPARED) {
    const right = [];
    for (const wire of wires) {
      let track = right.findIndex((end) => end + 4 < wire.low);
      if (track < 0) track = right.length;
      right[track] = wire.high;
      give(wire, track);
    }
    return;
  }
  const meet = (a, b) => a.low < b.high && b.low < a.high;
  const costs = wires.map((a) => wires.map((b) => meet(a, b) ? crossings(a, b) - crossings(b, a) : 0));
  const totals = costs.map((row) => row.reduce((sum, cost) => sum + cost, 0)), left = new Set(wires.keys()), placed = [];
  while (left.size) {
    let at = -1;
    for (const i of left) if (at < 0 || totals[i] < totals[at]) at = i;
    left.delete(at);
    for (const i of left) totals[i] -= costs[i][at];
    const beside = placed.filter(([i]) => wires[i].low < wires[at].high + 4 && wires[at].low < wires[i].high + 4);
    let track = beside.reduce((most, [i, t]) => costs[i][at] < 0 ? Math.max(most, t + 1) : most, 0);
    const taken = new Set(beside.map(([, t]) => t));
    while (taken.has(track)) track++;
    placed.push([at, track]);
    give(wires[at], track);
  }
}
