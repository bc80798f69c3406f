// ---- Layout in layers: ranks, a chain of bends for each value that passes layers, order by barycenters, then places
const boxWidth = 208, boxHeight = 42, rowHeight = 74, gap = 26, bendWidth = 10;

const widthOf = node => node.kind === "input" || node.kind === "output" ? 168 : boxWidth;

function rankNodes() {
  nodes.forEach(node => { node.rank = 0; node.into = []; node.outof = []; });
  edges.forEach(edge => { edge.from.outof.push(edge); edge.to.into.push(edge); });
  const inOrder = nodes.slice().sort((a, b) => a.order - b.order);
  inOrder.forEach(node => node.into.forEach(edge => { node.rank = Math.max(node.rank, edge.from.rank + 1); }));
  for (let i = inOrder.length - 1; i >= 0; --i) {  // what waits for nothing stands above its first reader
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
