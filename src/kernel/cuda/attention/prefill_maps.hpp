// Maps of bulk tensor copies for attention of many queries.
#pragma once

#include <algorithm>
#include <bit>

#include "device/device.hpp"
#include "kernel/cuda/device/attention/prefill_tma.hpp"

namespace cermet::cuda {

/// An axis of a map. A single element has no step, but a map wants one.
inline TensorMapShape::Axis map_axis(std::int64_t size, std::int64_t stride, std::int64_t box = 1) {
  constexpr std::int64_t some_step = 64;
  return {std::max<std::int64_t>(1, size), size > 1 ? stride : some_step, static_cast<std::uint32_t>(box)};
}

/// Maps of queries, keys and values; false where steps do not suit copies.
template <class Config>
bool set_prefill_maps(const Device& device, const Config& c, attention::TmaPrefillParams& params) {
  const attention::Params& p = params.a;
  const bool paged = c.block != 0;
  const auto encode = [&](const void* data, std::int64_t columns, const TensorMapShape::Axis& rows,
                          const TensorMapShape::Axis& inner, const TensorMapShape::Axis& outer, TensorMapBytes& to) {
    if (rows.stride <= 0 || inner.stride <= 0 || outer.stride <= 0) return false;
    const auto piece = static_cast<std::uint32_t>(c.piece_elements());
    TensorMapShape shape{const_cast<void*>(data), c.kv, rows.size, columns, rows.stride, rows.box, piece, 128};
    shape.outer = {inner, outer};
    shape.outer_axes = 2;
    to = std::bit_cast<TensorMapBytes>(const_cast<Device&>(device).tensor_map(shape));
    return true;
  };
  const auto encode_keys = [&](const attention::KeyList& list, std::int64_t columns, TensorMapBytes& to) {
    const std::int64_t rows = paged ? c.block : p.key_tokens;
    // Without keys nothing is copied, and their address says nothing.
    const void* const data = (paged ? p.blocks : p.key_tokens) > 0 ? list.data : p.q;
    return encode(data, columns, map_axis(rows, list.row_stride, c.box_rows()), map_axis(p.kv_heads, list.head_stride),
                  map_axis(paged ? p.blocks : 1, list.page_stride), to);
  };
  return encode(p.q, c.head_size, map_axis(std::int64_t{p.kv_heads} * c.group, p.q_head_stride, c.heads()),
                map_axis(p.tokens, p.q_token_stride, c.tokens()), map_axis(1, 0), params.q) &&
         encode_keys(p.k, c.head_size, params.k) && (c.columns || encode_keys(p.v, c.value_size, params.v));
}

}  // namespace cermet::cuda
