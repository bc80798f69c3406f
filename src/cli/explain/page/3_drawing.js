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

const manyNodes = 1000;  // more have one line of text each: browsers take longest to measure text

function drawNode(node) {
  const name = node.kind === "block" ? "" : node.kind === "view" ? " view" : node.kind === "stub" ? " stub" : " end";
  const made = shape("g", {class: "node" + name, transform: `translate(${(node.x - widthOf(node) / 2).toFixed(1)},${node.y})`});
  const colour = node.block && node.kind === "block" ? colours[node.block.mapping] : node.kind === "view" ? "view" : "end";
  made.append(shape("rect", {class: "box", width: widthOf(node), height: boxHeight, rx: node.kind === "input" || node.kind === "output" ? 20 : 5}));
  if (node.kind === "block") made.append(shape("rect", {x: 0, y: 0, width: 6, height: boxHeight, rx: 3, fill: `var(--${colour})`}));
  made.append(shape("text", {x: 15, y: 18}, cut(node.title, Math.floor(widthOf(node) / 7.2))));
  if (nodes.length <= manyNodes) made.append(shape("text", {x: 15, y: 33, class: "sub"}, cut(node.sub, Math.floor(widthOf(node) / 6.1))), shape("title", {}, node.title));
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
  view.scale = Math.min(1.1, whole ? Math.min(wide, high) : Math.max(Math.min(wide, high), Math.min(wide, 0.9), 0.42));
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
