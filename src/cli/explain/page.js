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

// ---- Layout in layers: ranks, a chain of bends for each value that passes layers, order by barycenters, then places
const boxWidth = 208, boxHeight = 42, rowHeight = 74, gap = 26, bendWidth = 10;

const widthOf = node => node.kind === "input" || node.kind === "output" ? 168 : boxWidth;

function rankNodes() {
  nodes.forEach(node => { node.rank = 0; node.into = []; node.outof = []; });
  edges.forEach(edge => { edge.from.outof.push(edge); edge.to.into.push(edge); });
  const inOrder = nodes.slice().sort((a, b) => a.order - b.order);
  inOrder.forEach(node => node.into.forEach(edge => { node.rank = Math.max(node.rank, edge.from.rank + 1); }));
  for (let i = inOrder.length - 1; i >= 0; --i) {  // what waits for nobody stands above its first reader
    const node = inOrder[i];
    if (node.outof.length && node.into.every(edge => edge.from.kind === "input"))
      node.rank = Math.max(node.rank, Math.min(...node.outof.map(edge => edge.to.rank)) - 1);
  }
}

function layersWithBends() {
  const layers = [];
  const place = item => { (layers[item.rank] = layers[item.rank] || []).push(item); };
  nodes.slice().sort((a, b) => a.order - b.order).forEach(node => { node.up = []; node.down = []; node.width = widthOf(node); node.weight = node.kind === "input" ? 0.1 : 1; place(node); });
  const connect = (a, b) => { a.down.push(b); b.up.push(a); };
  nodes.forEach(node => {
    const chain = [node];  // one for all readers
    node.outof.slice().sort((a, b) => a.to.rank - b.to.rank).forEach(edge => {
      while (chain.length < edge.to.rank - node.rank) {
        const bend = {rank: node.rank + chain.length, up: [], down: [], width: bendWidth, weight: 4, bend: true};
        place(bend);
        connect(chain[chain.length - 1], bend);
        chain.push(bend);
      }
      connect(chain[edge.to.rank - node.rank - 1], edge.to);
      edge.bends = chain.slice(1, edge.to.rank - node.rank);
    });
  });
  for (let r = 0; r < layers.length; ++r) layers[r] = layers[r] || [];
  return layers;
}

function orderLayers(layers) {
  const number = layer => layer.forEach((item, i) => { item.at = i; });
  layers.forEach(number);
  const centre = list => list.reduce((sum, item) => sum + item.at / Math.max(1, layers[item.rank].length - 1), 0) / list.length;
  const sweep = (layer, side) => {
    layer.forEach((item, i) => { item.key = item[side].length ? centre(item[side]) : item.at / Math.max(1, layer.length - 1); item.tie = i; });
    layer.sort((a, b) => a.key - b.key || a.tie - b.tie);
    number(layer);
  };
  for (let round = 0; round < 6; ++round) {
    for (let r = 1; r < layers.length; ++r) sweep(layers[r], "up");
    for (let r = layers.length - 2; r >= 0; --r) sweep(layers[r], "down");
  }
  for (let r = 1; r < layers.length; ++r) sweep(layers[r], "up");
}

/// The places nearest to what is wanted that keep order and distance: isotonic regression by pooling neighbours.
function settle(layer, wanted) {
  let offset = 0;
  const pools = [];
  layer.forEach((item, i) => {
    if (i > 0) offset += (layer[i - 1].width + item.width) / 2 + gap;
    item.offset = offset;
    let pool = {sum: (wanted[i] - offset) * item.weight, weight: item.weight, items: [item]};
    while (pools.length && pools[pools.length - 1].sum / pools[pools.length - 1].weight > pool.sum / pool.weight) {
      const before = pools.pop();
      pool = {sum: before.sum + pool.sum, weight: before.weight + pool.weight, items: before.items.concat(pool.items)};
    }
    pools.push(pool);
  });
  pools.forEach(pool => pool.items.forEach(item => { item.x = pool.sum / pool.weight + item.offset; }));
}

function placeLayers(layers) {
  layers.forEach(layer => settle(layer, layer.map(() => 0)));
  const pull = (layer, sides) => settle(layer, layer.map(item => {
    const near = sides.flatMap(side => item[side]).filter(x => x.kind !== "input");
    if (!near.length) return item.x;
    // A bend follows its chain, so that long lines are straight.
    const own = item.bend ? near.filter(x => x.bend) : [];
    const list = own.length ? own : near;
    return list.reduce((sum, x) => sum + x.x, 0) / list.length;
  }));
  // Downwards every column drifts to one side, upwards to the other: the middle stands straight.
  layers.forEach(layer => pull(layer, ["up"]));
  const downwards = layers.map(layer => layer.map(item => item.x));
  layers.forEach(layer => settle(layer, layer.map(() => 0)));
  layers.slice().reverse().forEach(layer => pull(layer, ["down"]));
  layers.forEach((layer, r) => settle(layer, layer.map((item, i) => (item.x + downwards[r][i]) / 2)));
  const rounds = nodes.length > 1000 ? 3 : 10;
  for (let round = 0; round < rounds; ++round) {
    layers.forEach(layer => pull(layer, ["up", "down"]));
    layers.slice().reverse().forEach(layer => pull(layer, ["up", "down"]));
  }
  nodes.forEach(node => { node.y = node.rank * rowHeight; });
}

function layout() {
  rankNodes();
  const layers = layersWithBends();
  orderLayers(layers);
  placeLayers(layers);
}

// ---- Drawing
function pathOf(edge) {
  const points = [[edge.from.x, edge.from.y + boxHeight], ...edge.bends.map(bend => [bend.x, bend.rank * rowHeight + boxHeight / 2]), [edge.to.x, edge.to.y]];
  let d = `M${points[0][0].toFixed(1)},${points[0][1].toFixed(1)}`;
  for (let i = 1; i < points.length; ++i) {
    const [x0, y0] = points[i - 1], [x1, y1] = points[i], middle = (y0 + y1) / 2;
    d += Math.abs(x0 - x1) < 0.5 ? `L${x1.toFixed(1)},${y1.toFixed(1)}` : `C${x0.toFixed(1)},${middle.toFixed(1)} ${x1.toFixed(1)},${middle.toFixed(1)} ${x1.toFixed(1)},${y1.toFixed(1)}`;
  }
  return d;
}

function drawFrame(repeat, copy, inside) {
  const [, , times] = plan.repeats[repeat];
  const left = Math.min(...inside.map(n => n.x)) - boxWidth / 2 - 14, right = Math.max(...inside.map(n => n.x)) + boxWidth / 2 + 14;
  const top = Math.min(...inside.map(n => n.y)) - 24, bottom = Math.max(...inside.map(n => n.y)) + boxHeight + 10;
  const made = shape("g", {class: "frame"});
  made.append(shape("rect", {x: left, y: top, width: right - left, height: bottom - top, rx: 8}));
  const folded = !unfolded.has(repeat);
  const label = shape("text", {x: left + 10, y: top + 15}, folded ? `layer 1 of ${times} alike — unfold` : `layer ${copy + 1} of ${times} alike — fold`);
  label.addEventListener("click", () => toggle(repeat));
  made.append(label);
  return made;
}

function drawNode(node) {
  const name = node.kind === "block" ? "" : node.kind === "view" ? " view" : node.kind === "stub" ? " stub" : " end";
  const made = shape("g", {class: "node" + name, transform: `translate(${(node.x - widthOf(node) / 2).toFixed(1)},${node.y})`});
  const colour = node.block && node.kind === "block" ? colours[node.block.mapping] : node.kind === "view" ? "view" : "end";
  made.append(shape("rect", {class: "box", width: widthOf(node), height: boxHeight, rx: node.kind === "input" || node.kind === "output" ? 20 : 5}));
  if (node.kind === "block") made.append(shape("rect", {x: 0, y: 0, width: 6, height: boxHeight, rx: 3, fill: `var(--${colour})`}));
  made.append(shape("text", {x: 15, y: 18}, cut(node.title, Math.floor(widthOf(node) / 7.2))), shape("text", {x: 15, y: 33, class: "sub"}, cut(node.sub, Math.floor(widthOf(node) / 6.1))));
  made.append(shape("title", {}, node.title));
  made.addEventListener("click", event => { event.stopPropagation(); node.kind === "stub" ? toggle(node.repeat) : select(node); });
  node.drawn = made;
  return made;
}

function drawEdge(edge) {
  const made = shape("g", {class: "edge"}), d = pathOf(edge);
  made.append(shape("path", {class: "line", d, "marker-end": "url(#arrow)"}), shape("path", {class: "hit", d}));
  made.addEventListener("click", event => { event.stopPropagation(); selectEdge(edge); });
  edge.drawn = made;
  return made;
}

function draw() {
  visibleGraph();
  layout();
  const scene = $("scene");
  scene.replaceChildren();
  const arrow = shape("marker", {id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto"});
  arrow.append(shape("path", {d: "M0,0L8,4L0,8z", fill: "var(--edge)"}));
  scene.append(arrow);
  const copies = new Map();
  nodes.forEach(node => {
    if (node.block === undefined || node.repeat < 0) return;
    const key = node.repeat + " " + node.copy;
    if (!copies.has(key)) copies.set(key, {repeat: node.repeat, copy: node.copy, inside: []});
    copies.get(key).inside.push(node);
  });
  copies.forEach(({repeat, copy, inside}) => scene.append(drawFrame(repeat, copy, inside)));
  edges.forEach(edge => scene.append(drawEdge(edge)));
  nodes.forEach(node => scene.append(drawNode(node)));
  $("fold").textContent = unfolded.size < plan.repeats.length ? "Unfold all" : "Fold all";
  $("fold").hidden = plan.repeats.length === 0;
}

// ---- View
const canvas = $("canvas");
function moveView() { $("scene").setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.scale})`); }
function extent() {
  const xs = nodes.map(node => node.x), ys = nodes.map(node => node.y);
  return {left: Math.min(...xs) - boxWidth / 2 - 30, right: Math.max(...xs) + boxWidth / 2 + 30, top: Math.min(...ys) - 40, bottom: Math.max(...ys) + boxHeight + 40};
}
function fit(whole) {
  const e = extent(), w = canvas.clientWidth, h = canvas.clientHeight;
  const wide = w / (e.right - e.left), high = h / (e.bottom - e.top);
  view.scale = Math.min(1.1, whole ? Math.min(wide, high) : Math.max(Math.min(wide, high), Math.min(wide, 0.9), 0.55));
  const blocks = nodes.filter(node => node.kind === "block").sort((a, b) => a.x - b.x);
  view.x = w / 2 - (wide < view.scale && blocks.length ? blocks[Math.floor(blocks.length / 2)].x : (e.left + e.right) / 2) * view.scale;
  view.y = view.scale === high ? h / 2 - (e.top + e.bottom) / 2 * view.scale : -e.top * view.scale;
  moveView();
}
function zoom(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const scale = Math.min(4, Math.max(0.005, view.scale * factor));
  view.x = x - (x - view.x) * scale / view.scale;
  view.y = y - (y - view.y) * scale / view.scale;
  view.scale = scale;
  moveView();
}
function show(node) {
  if (view.scale < 0.5) view.scale = 0.8;
  view.x = canvas.clientWidth / 2 - node.x * view.scale;
  view.y = canvas.clientHeight / 2 - (node.y + boxHeight / 2) * view.scale;
  moveView();
}
function toggle(repeat) {
  unfolded.has(repeat) ? unfolded.delete(repeat) : unfolded.add(repeat);
  const first = plan.repeats[repeat][0], at = node => [view.x + node.x * view.scale, view.y + node.y * view.scale];
  const before = nodes.find(node => node.index === first), [x, y] = at(before);
  draw();
  mark();
  const after = nodes.find(node => node.index === first);
  view.x = x - after.x * view.scale;  // what was clicked stays where it is
  view.y = y - after.y * view.scale;
  moveView();
}
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const box = canvas.getBoundingClientRect();
  if (event.ctrlKey || !event.shiftKey) zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
  else { view.x -= event.deltaY; moveView(); }
}, {passive: false});
let drag = null;
canvas.addEventListener("pointerdown", event => { drag = {x: event.clientX - view.x, y: event.clientY - view.y, fromX: event.clientX, fromY: event.clientY}; });
addEventListener("pointermove", event => {
  if (!drag) return;
  if (Math.abs(event.clientX - drag.fromX) + Math.abs(event.clientY - drag.fromY) > 3) canvas.classList.add("dragging");
  view.x = event.clientX - drag.x;
  view.y = event.clientY - drag.y;
  moveView();
});
addEventListener("pointerup", () => { drag = null; canvas.classList.remove("dragging"); });
canvas.addEventListener("keydown", event => {
  const step = {ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60]}[event.key];
  if (step) { view.x += step[0]; view.y += step[1]; moveView(); event.preventDefault(); }
  if (event.key === "+" || event.key === "=") zoom(1.25);
  if (event.key === "-") zoom(0.8);
});

// ---- Panels
function factTable(rows) {
  return element("table", {}, ...rows.filter(row => row).map(([name, value]) => element("tr", {}, element("td", {class: "facts"}, name), element("td", {}, value))));
}
function clearCurrent() { document.querySelectorAll(".current").forEach(x => x.classList.remove("current")); }
function openPanel(...children) {
  const panel = $("selection");
  panel.hidden = false;
  panel.replaceChildren(element("button", {class: "close", "aria-label": "close", onclick: () => { panel.hidden = true; clearCurrent(); }}, "×"), ...children);
  panel.parentElement.scrollTop = 0;
}
const percent = x => (100 * x).toFixed(x < 0.1 ? 1 : 0) + " %";

function edgeItem(edge, other, word) {
  const reason = edge.reason === undefined ? edge.end : plan.reasons[edge.reason].text;
  return element("li", {}, element("code", {}, edge.value), element("span", {class: "soft"}, `  ${edge.type}, ${word} `),
    other ? element("button", {class: "link", onclick: () => { select(other); show(other); }}, other.title) : "", element("div", {class: "soft"}, reason));
}

function select(node) {
  clearCurrent();
  node.drawn.classList.add("current");
  const ins = node.into.flatMap(edge => edge.values.map(value => edgeItem(value, edge.from, "from")));
  const outs = node.outof.flatMap(edge => edge.values.map(value => edgeItem(value, edge.to, "to")));
  const block = node.block, parts = [element("h3", {}, node.title)];
  if (!block) parts.push(element("p", {class: "soft"}, `${node.kind === "input" ? "input" : "result"} of the graph, ${node.sub}`));
  else if (block.view) parts.push(element("p", {class: "soft"}, `${block.mapping}: shares its operand's memory, so that nothing is launched`));
  else {
    const time = timeOf(block);
    parts.push(factTable([
      ["kernel", element("code", {}, block.kernel)], block.config ? ["configuration", element("code", {}, block.config)] : null, ["mapping type", block.mapping],
      ["moves", bytes(block.bytes)], ["operations", count(block.operations)], ["modelled", seconds(block.seconds)],
      block.measured !== undefined ? ["measured", seconds(block.measured)] : null, ["at least", `${seconds(block.least)} by the device's limits`],
      time > 0 ? ["of the limit", percent(block.least / time)] : null,
    ]));
  }
  if (block) {
    parts.push(element("h4", {}, block.ops.length === 1 ? "Operator" : `${block.ops.length} operators`));
    parts.push(element("ul", {class: "list"}, ...block.ops.map((op, i) => element("li", {}, element("strong", {}, op.op), i === block.anchor && block.ops.length > 1 ? element("span", {class: "soft"}, "  anchor") : "",
      element("div", {}, element("code", {}, op.name), element("span", {class: "soft"}, "  " + op.type)),
      op.attributes ? element("div", {class: "soft"}, op.attributes) : "", op.scope ? element("div", {class: "soft"}, op.scope) : ""))));
    const weights = (block.reads || []).filter(x => x.constant);
    if (weights.length) parts.push(element("h4", {}, "Weights"), element("ul", {class: "list"}, ...weights.map(x => element("li", {}, element("code", {}, x.name), element("span", {class: "soft"}, "  " + x.type)))));
  }
  if (ins.length) parts.push(element("h4", {}, "Reads"), element("ul", {class: "list"}, ...ins));
  if (outs.length) parts.push(element("h4", {}, "Read by"), element("ul", {class: "list"}, ...outs));
  openPanel(...parts);
}

function selectEdge(edge) {
  clearCurrent();
  edge.drawn.classList.add("current");
  const jump = node => element("button", {class: "link", onclick: () => { node.kind === "stub" ? toggle(node.repeat) : select(node); show(node); }}, node.title);
  openPanel(element("h3", {}, edge.values.length === 1 ? "A value between two blocks" : `${edge.values.length} values between two blocks`),
    factTable([["from", jump(edge.from)], ["to", jump(edge.to)]]),
    ...edge.values.map(value => element("div", {}, element("h4", {}, element("code", {}, value.value)),
      element("div", {class: "soft"}, value.type + (value.bytes === undefined ? "" : ", " + bytes(value.bytes))),
      element("div", {class: "why"}, value.reason === undefined ? value.end : `${plan.reasons[value.reason].why}: ${plan.reasons[value.reason].text}`))));
}

function totals() {
  const before = graph.before, after = graph.after;
  const rows = [["blocks", "launches", String], ["operators", "nodes", String], ["views", "views", String], ["intermediate bytes", "intermediate_bytes", bytes], ["peak of them", "peak_bytes", bytes],
    ["workspace", "workspace_bytes", bytes], ["modelled time", "modelled_seconds", seconds]];
  if (after.measured_seconds !== undefined && before.measured_seconds !== undefined) rows.push(["measured time", "measured_seconds", seconds]);
  const bar = (x, most, old) => element("div", {class: old ? "bar old" : "bar"}, element("i", {style: `width:${most > 0 ? 100 * x / most : 0}%`}));
  const table = element("table", {}, element("tr", {}, element("th", {}, `${before.nodes_before} operators given`), element("th", {class: "number"}, before.mode), element("th", {class: "number"}, after.mode), element("th", {class: "number"}, "ratio")));
  rows.forEach(([name, key, text]) => {
    const x = before[key], y = after[key], most = Math.max(x, y);
    table.append(element("tr", {}, element("td", {}, name), element("td", {class: "number"}, text(x), bar(x, most, true)), element("td", {class: "number"}, text(y), bar(y, most, false)),
      element("td", {class: "number"}, y > 0 ? (x / y).toFixed(2) : "–")));
  });
  $("totals").replaceChildren(table);
}

let sortKey = "time", sortDown = true;
function kernels() {
  const rows = new Map();
  plan.blocks.forEach(block => {
    if (block.view) return;
    const row = rows.get(block.kernel) || {kernel: block.kernel, blocks: 0, bytes: 0, operations: 0, time: 0, least: 0};
    row.blocks += 1; row.bytes += block.bytes; row.operations += block.operations; row.time += timeOf(block); row.least += block.least;
    rows.set(block.kernel, row);
  });
  const list = [...rows.values()];
  list.forEach(row => { row.limit = row.time > 0 ? row.least / row.time : 0; });
  list.sort((a, b) => (sortDown ? -1 : 1) * (typeof a[sortKey] === "string" ? -a[sortKey].localeCompare(b[sortKey]) : a[sortKey] - b[sortKey]));
  const columns = [["kernel", "kernel", x => element("button", {class: "link mono", onclick: () => find(x)}, ...breakable(x))], ["blocks", "blocks", String], ["moves", "bytes", bytes], ["ops", "operations", count], ["time", "time", seconds], ["limit", "limit", percent]];
  const head = element("tr", {}, ...columns.map(([name, key]) => element("th", {"data-key": key, class: key === "kernel" ? null : "number", onclick: () => { sortDown = sortKey === key ? !sortDown : true; sortKey = key; kernels(); }},
    name + (sortKey === key ? (sortDown ? " ↓" : " ↑") : ""))));
  $("kernels").replaceChildren(element("table", {}, head, ...list.map(row => element("tr", {}, ...columns.map(([, key, text]) => element("td", {class: key === "kernel" ? null : "number"}, text(row[key])))))));
}

function lists() {
  $("rules").replaceChildren(plan.rules.length ? element("table", {}, ...plan.rules.map(rule => element("tr", {}, element("td", {}, element("code", {}, rule.name)), element("td", {class: "number"}, String(rule.times))))) : element("span", {class: "soft"}, "none"));
  $("reasons").replaceChildren(plan.reason_counts.length ? element("table", {}, ...plan.reason_counts.map(reason => element("tr", {}, element("td", {}, element("strong", {}, reason.why), element("div", {class: "soft"}, reason.summary)), element("td", {class: "number"}, String(reason.edges))))) : element("span", {class: "soft"}, "none"));
}

function legend() {
  const entry = (name, colour) => element("span", {}, element("i", {style: `background:var(--${colour})`}), name);
  $("legend").replaceChildren(...Object.entries(colours).filter(([name]) => plan.blocks.some(block => !block.view && block.mapping === name)).map(([name, colour]) => entry(name, colour)), element("span", {}, "dashed: a view, or layers that are folded"));
}

// ---- Search
function matchesOf(text) {
  const words = text.toLowerCase();
  if (!words) return [];
  const has = x => x.toLowerCase().includes(words);
  const found = [];
  plan.blocks.forEach((block, b) => {
    if ((block.kernel && has(block.kernel)) || block.ops.some(op => has(op.op) || has(op.name) || has(op.scope)) || (block.reads || []).some(x => x.constant && has(x.name)) || (block.writes || []).some(x => has(x.name))) found.push(b);
  });
  return found;
}
function mark() {
  const set = new Set(matches);
  nodes.forEach(node => node.drawn.classList.toggle("matched", node.index !== undefined && set.has(node.index)));
  $("found").textContent = $("search").value ? (matches.length ? `${Math.max(match, 0) + 1} / ${matches.length}` : "none") : "";
}
function go(to) {
  if (!matches.length) return mark();
  match = (to + matches.length) % matches.length;
  const b = matches[match], hidden = plan.repeats.findIndex(([first, length, times]) => b >= first + length && b < first + length * times);
  if (hidden >= 0 && !unfolded.has(hidden)) { unfolded.add(hidden); draw(); }
  mark();
  const node = nodes.find(x => x.index === b);
  show(node);
  select(node);
}
function find(text) { $("search").value = text; matches = matchesOf(text); go(0); }
$("search").addEventListener("input", () => { matches = matchesOf($("search").value); match = 0; mark(); });
$("search").addEventListener("keydown", event => {
  if (event.key !== "Enter") return;
  go(match + (event.shiftKey ? -1 : drawnMatch() ? 1 : 0));
});
function drawnMatch() { return nodes.some(node => node.index === matches[match] && node.drawn.classList.contains("current")); }

// ---- Start
function showPlan() {
  plan = graph[side];
  unfolded = new Set();
  matches = matchesOf($("search").value);
  match = 0;
  $("selection").hidden = true;
  document.querySelectorAll("#plans button").forEach(button => button.setAttribute("aria-checked", String(button.dataset.side === side)));
  draw();
  fit(false);
  mark();
  kernels();
  lists();
  legend();
}
function showGraph() { totals(); plansSwitch(); showPlan(); }
function plansSwitch() {
  $("plans").replaceChildren(...["before", "after"].map(which => element("button", {role: "radio", "data-side": which, onclick: () => { side = which; showPlan(); }}, `${which}: ${graph[which].mode}`)));
}
function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = theme === "dark" ? "Light" : "Dark";
}
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
setTheme(prefersDark.matches ? "dark" : "light");
prefersDark.addEventListener("change", event => setTheme(event.matches ? "dark" : "light"));
$("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
$("model").textContent = data.model.split("/").pop() || data.model;
$("device").textContent = data.device;
document.title = $("model").textContent + " – cermet explain";
data.graphs.forEach((x, i) => $("graph").append(element("option", {value: i}, x.name)));
$("graph").hidden = data.graphs.length === 1;
$("graph").addEventListener("change", () => { graph = data.graphs[Number($("graph").value)]; showGraph(); });
$("in").addEventListener("click", () => zoom(1.25));
$("out").addEventListener("click", () => zoom(0.8));
$("fit").addEventListener("click", () => fit(true));
$("fold").addEventListener("click", () => { unfolded = unfolded.size < plan.repeats.length ? new Set(plan.repeats.keys()) : new Set(); draw(); mark(); fit(false); });
showGraph();
document.body.dataset.ready = "yes";
