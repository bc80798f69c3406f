// Which bytes the items of a GEMV touch.
#include "kernel/cuda/gemm/product_items.hpp"
#include "kernel/cuda/gemv/gemv.hpp"

namespace cermet::cuda {

/// Of a row, an item has a share of the columns. Shares of several rows begin and end in the middle of them, which no
/// box of columns says.
void Gemv::declare(const LaunchArgs& args, const gemv::RopeParams& p) const {
  const bool one = p.rows == 1 && p.groups == 0;
  ProductTiles tiles{.grid = item_grid(1, 1, 1, p.shares), .m = p.rows, .n = p.columns, .groups = p.groups};
  if (one) tiles.columns = shares_along(grid_columns, p.columns, p.shares);
  ProductItems items(product_, args, tiles);
  const TensorView &x = *product_.given(args, product_.at.x), &w = *product_.given(args, product_.at.w);
  items.read(&x);
  const bool fetched = constant_ && p.groups == 0;
  if (heads_) {
    heads_->touch(args, p.shares, w, p.w_stride, fetched, items);
    for (std::size_t i = 0; i < product_.extras().size(); ++i) items.read(&product_.extra(args, i));
  } else {
    const std::int64_t k = w.shape.back();
    items.read(early(items.weight(w, {}, p.w_stride, k, 1, product_.gated ? 2 : 1), fetched));
    if (const TensorView* up = product_.given(args, product_.at.w_up))
      items.read(early(items.weight(*up, {}, p.w_up_stride, k, 1), fetched));
    for (std::size_t i = 0; i < product_.extras().size(); ++i) items.read_extra(i, p.extra[i]);
    items.write(items.result({}, p.y_stride));
    if (product_.also) items.write(items.second_result({}, p.y_second_stride));
  }
  for (const int place : {product_.at.offsets, product_.at.x_scale, product_.at.w_scale, norm_weight_, delta_, ids_})
    items.read(product_.given(args, place));
  // What is made on the way is stored by the first item.
  const auto store = [&](int result, bool by_first) {
    if (result < 0) return;
    const ByteRange range = byte_range(args.outputs[static_cast<std::size_t>(result)]);
    if (by_first && range.bytes > 0)
      items.write(
          ItemAxes(range.begin, 1, tiles.grid).axis(range.bytes, 1, tiles_along(grid_columns, range.bytes)).range());
    else items.write(range);
  };
  store(sum_, one);
  store(normed_, one);
  store(sorted_offsets_, true);
  store(row_of_, true);
  if (gating_) {
    for (const int place : gating_->operands()) items.read(product_.given(args, place));
    for (const int place : gating_->results()) store(place, true);
  }
  items.declare();
}

/// An item has a share of the pairs of queries, keys and values, which come in this order. Of a head, it counts as
/// touching all.
void RotatedHeads::touch(const LaunchArgs& args, std::int64_t shares, const TensorView& weight,
                         std::int64_t weight_stride, bool fetched, ProductItems& items) const {
  const ItemGrid grid = item_grid(1, 1, 1, shares);
  const TensorView &queries = args.outputs[at_.q], &keys = args.outputs[at_.k_cache],
                   &values = args.outputs[at_.v_cache];
  const std::int64_t q_heads = queries.shape[1], kv_heads = keys.shape[axes_.heads], of_head = queries.shape[2] / 2,
                     of_value = values.shape[3] / 2;
  const std::int64_t first_key = q_heads * of_head, first_value = first_key + kv_heads * of_head;
  // Heads of `size` pairs, of which the first head's first is pair `first`.
  const auto heads = [&](std::int64_t first, std::int64_t size) -> Along {
    return {grid_columns, pairs_, pairs_ + (size - 1) * shares, -first * shares, size * shares};
  };
  const auto rows = [&](std::int64_t first, std::int64_t count, std::int64_t size) {
    const auto bytes = static_cast<std::int64_t>(size_of(weight.dtype));
    ItemAxes axes(weight.as<const std::byte>() + 2 * first * weight_stride * bytes, bytes, grid);
    return axes.axis(count, 2 * size * weight_stride, heads(first, size))
        .axis(2 * size, weight_stride)
        .axis(weight.shape.back(), 1)
        .range();
  };
  items.read(early(rows(0, q_heads + kv_heads, of_head), fetched));
  items.read(early(rows(first_value, kv_heads, of_value), fetched));
  for (const std::size_t operand : {at_.cos, at_.sin, at_.positions, at_.slots}) items.read(&args.inputs[operand]);
  // Keys and values go to any slot.
  const auto cache = [&](const TensorView& view, const Along& own) {
    return axes_.heads == 1 ? range_of_items(view, grid, {{}, own}) : range_of_items(view, grid, {{}, {}, own});
  };
  items.write(range_of_items(queries, grid, {{}, heads(0, of_head)}));
  items.write(cache(keys, heads(first_key, of_head)));
  items.write(cache(values, heads(first_value, of_value)));
}

}  // namespace cermet::cuda
