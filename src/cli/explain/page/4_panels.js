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

// For which blocks of its super-kernel a block waits, and which wait for it.
function waitsOf(index) {
  const region = (plan.super_kernels || []).find(each => each.first_block <= index && index <= each.last_block);
  if (!region) return [];
  const item = (wait, other, word) => element("li", {}, `${word} block ${other}`, element("span", {class: "soft"}, wait.values.length ? "  " + wait.values.join(", ") : "  memory that is written again"));
  const before = region.waits.filter(wait => wait.block === index).map(wait => item(wait, wait.for, "waits for"));
  const after = region.waits.filter(wait => wait.for === index).map(wait => item(wait, wait.block, "is waited for by"));
  return [element("h4", {}, `Block ${index} of super-kernel ${region.name}`), element("ul", {class: "list"}, ...before, ...after)];
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
  if (block) parts.push(...waitsOf(node.index));
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

function superKernels() {
  $("marked").hidden = !plan.super_kernels.length && !plan.super_kernel_breaks.length;
  $("super").replaceChildren(factTable(plan.super_kernels.map(each => [`${each.name}${each.options ? ` (${each.options})` : ""}`, `blocks ${each.first_block} to ${each.last_block}`])),
    element("ul", {class: "list"}, ...plan.super_kernel_breaks.map(line => element("li", {}, line))));
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
  superKernels();
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
