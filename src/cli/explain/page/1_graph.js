"use strict";
// ---- Data and small helpers
const data = JSON.parse(document.getElementById("data").textContent);
const $ = id => document.getElementById(id);
const svgNamespace = document.getElementById("scene").namespaceURI;

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}
function shape(tag, attributes, text) {
  const made = document.createElementNS(svgNamespace, tag);
  for (const name in attributes) made.setAttribute(name, attributes[name]);
  if (text !== undefined) made.textContent = text;
  return made;
}
function bytes(x) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let u = 0;
  while (x >= 1024 && u < units.length - 1) { x /= 1024; ++u; }
  return (u === 0 ? Math.round(x) : x.toFixed(x < 10 ? 2 : 1)) + " " + units[u];
}
function count(x) {
  const units = ["", " k", " M", " G", " T"];
  let u = 0;
  while (x >= 1000 && u < units.length - 1) { x /= 1000; ++u; }
  return (u === 0 ? Math.round(x) : x.toFixed(x < 10 ? 2 : 1)) + units[u];
}
function seconds(x) {
  if (!(x > 0)) return "0";
  if (x < 1e-7) return (x * 1e9).toFixed(1) + " ns";
  if (x >= 1) return x.toFixed(2) + " s";
  if (x >= 1e-3) return (x * 1e3).toFixed(2) + " ms";
  return (x * 1e6).toFixed(x < 1e-5 ? 2 : 1) + " µs";
}
const breakable = text => text.split(/(?<=[._])/).flatMap(part => [part, element("wbr")]);
const cut = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;
const colours = {
  "One-to-One": "one", "One-to-Many": "many", "Many-to-Many": "mm", "Reorganize": "reorganize", "Shuffle": "shuffle", "barrier": "barrier",
};
const operators = block => block.ops.map(op => op.op).join(" + ");
const timeOf = block => block.measured !== undefined ? block.measured : block.seconds;

// ---- State
let graph = data.graphs[0], side = "after", plan = graph[side];
let unfolded = new Set();        // repeats that are shown in full, by number
let nodes = [], edges = [];      // what is drawn
let matches = [], match = -1;
const view = {x: 0, y: 0, scale: 1};

// ---- What is drawn: blocks, stubs for folded layers, inputs and results
function visibleGraph() {
  const made = [], of = new Array(plan.blocks.length);
  const stubs = new Map();
  plan.blocks.forEach((block, b) => {
    const r = plan.repeats.findIndex(([first, length, times]) => b >= first && b < first + length * times);
    const copy = r < 0 ? 0 : Math.floor((b - plan.repeats[r][0]) / plan.repeats[r][1]);
    if (r >= 0 && copy > 0 && !unfolded.has(r)) {
      if (!stubs.has(r)) {
        const [first, length, times] = plan.repeats[r];
        const hidden = plan.blocks.slice(first + length, first + length * times);
        const stub = {kind: "stub", title: `${times - 1} more like it`, sub: `${hidden.filter(x => !x.view).length} blocks, ${seconds(hidden.reduce((sum, x) => sum + (x.view ? 0 : timeOf(x)), 0))}`, repeat: r, order: b};
        stubs.set(r, stub);
        made.push(stub);
      }
      of[b] = stubs.get(r);
      return;
    }
    const node = {kind: block.view ? "view" : "block", block, index: b, order: b, repeat: r, copy, title: operators(block)};
    node.sub = block.view ? block.ops[0].type : `${seconds(timeOf(block))}  ${block.ops[block.ops.length - 1].type}`;
    made.push(node);
    of[b] = node;
  });
  plan.inputs.forEach(input => {  // inside a stub they are hidden, too; lines to every layer would say little
    const readers = [...new Set(input.readers.map(b => of[b]))].filter(node => node.kind !== "stub");
    if (!readers.length) return;
    const drawn = input.readers.length > 2 ? readers.slice(0, 1) : readers;
    made.push({kind: "input", title: input.name, sub: input.type + (drawn.length < input.readers.length ? `, ${input.readers.length} readers` : ""), input, drawnReaders: drawn, order: -1});
  });
  plan.outputs.forEach(output => { if (output.block !== null) made.push({kind: "output", title: output.name, sub: output.type, output, order: plan.blocks.length}); });
  const links = new Map();
  const ids = new Map(made.map((node, i) => [node, i]));
  const link = (from, to, edge) => {
    if (from === to) return;
    const key = ids.get(from) + " " + ids.get(to);
    if (!links.has(key)) links.set(key, {from, to, values: []});
    links.get(key).values.push(edge);
  };
  plan.edges.forEach(edge => link(of[edge.from], of[edge.to], edge));
  made.forEach(node => {
    if (node.kind === "input") node.drawnReaders.forEach(reader => link(node, reader, {value: node.input.name, type: node.input.type, end: "an input of the graph"}));
    if (node.kind === "output") link(of[node.output.block], node, {value: node.output.name, type: node.output.type, end: "a result of the graph"});
  });
  nodes = made;
  edges = [...links.values()];
  return of;
}
