// A paged cache as tasks that write to it see it. Strides in elements.
#pragma once

#include "format/value_columns.hpp"
#include "kernel/cuda/device/integers.hpp"

namespace cermet::kv_cache {

/// How the quantized values of a cache are scaled.
enum class Scales : uint8_t { none, head, token };
constexpr const char* name_of(Scales scales) {
  if (scales == Scales::none) return "cermet::kv_cache::Scales::none";
  return scales == Scales::head ? "cermet::kv_cache::Scales::head" : "cermet::kv_cache::Scales::token";
}

struct Cache {
  void* data;
  float* scale;  ///< given per head, or filled per token; null for none
  int64_t page_stride, row_stride, head_stride, scale_page_stride, scale_row_stride, scale_head_stride;
  int64_t column_stride = 0;  ///< of values in columns, from one to the next; row_stride is that of 16 tokens then
};

/// Address of a slot's vector, and of its scale.
template <class To>
struct SlotPlace {
  To* vector;
  float* scale;
  int64_t step = 1;  ///< from one element of the vector to the next
};
template <class To, bool Columns = false>
CERMET_HOST_DEVICE SlotPlace<To> slot_place(const Cache& c, int64_t slot, int block, int head) {
  const int64_t page = slot / block, row = slot % block;
  To* const first = static_cast<To*>(c.data) + page * c.page_stride + head * c.head_stride;
  float* const scale = c.scale + page * c.scale_page_stride + row * c.scale_row_stride + head * c.scale_head_stride;
  if (!Columns) return {first + row * c.row_stride, scale};
  constexpr int column = format::value_column;
  return {first + row / column * c.row_stride + format::value_place(static_cast<int>(row) % column), scale,
          c.column_stride};
}

/// Most tokens of a work item.
inline constexpr int most_item_tokens = 32;
/// Shared memory in which their slots are collected.
constexpr int64_t slot_memory_bytes(int64_t tokens) { return 8 * (tokens + 1); }

}  // namespace cermet::kv_cache
