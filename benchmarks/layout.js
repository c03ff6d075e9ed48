"use strict";
// node layout.js elk|dagre NODE_MODULES < graph.json: times a layout, and writes the places of boxes and edges.
const { performance } = require("perf_hooks"), path = require("path");
const [tool, modules] = process.argv.slice(2);
const { boxes, edges, apart, between } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const load = (name) => require(path.resolve(modules, name));
const pairs = (points) => points.map((p) => [p.x, p.y]);

async function elk() {
  const ELK = load("elkjs/lib/elk.bundled.js"), made = new ELK();
  const layoutOptions = { "elk.algorithm": "layered", "elk.direction": "DOWN", "elk.edgeRouting": "ORTHOGONAL",
    "elk.spacing.nodeNode": apart, "elk.layered.spacing.nodeNodeBetweenLayers": between };
  const graph = { id: "root", layoutOptions, children: boxes.map(([width, height], i) => ({ id: "n" + i, width, height })),
    edges: edges.map(([a, b], i) => ({ id: "e" + i, sources: ["n" + a], targets: ["n" + b] })) };
  const begin = performance.now(), done = await made.layout(graph), milliseconds = performance.now() - begin;
  const routes = done.edges.map((e) => pairs([e.sections[0].startPoint, ...(e.sections[0].bendPoints || []), e.sections[0].endPoint]));
  return { milliseconds, routes, boxes: done.children.map((n) => [n.x, n.y]) };
}

async function dagre() {
  const made = load("@dagrejs/dagre"), graph = new made.graphlib.Graph({ multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: apart, ranksep: between });
  boxes.forEach(([width, height], i) => graph.setNode("n" + i, { width, height }));
  edges.forEach(([a, b], i) => graph.setEdge("n" + a, "n" + b, {}, "e" + i));
  const begin = performance.now();
  made.layout(graph);
  const milliseconds = performance.now() - begin, at = (i) => graph.node("n" + i);
  return { milliseconds, routes: edges.map(([a, b], i) => pairs(graph.edge("n" + a, "n" + b, "e" + i).points)),
    boxes: boxes.map(([w, h], i) => [at(i).x - w / 2, at(i).y - h / 2]) };
}

({ elk, dagre })[tool]().then((made) => process.stdout.write(JSON.stringify(made)));
