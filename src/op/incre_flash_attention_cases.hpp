// What cases of incre_flash_attention are made of.
#pragma once

#include "op/schema/case.hpp"

namespace cermet::incre_flash_attention_op {

struct Sizes {
  std::int64_t heads = 4, kv_heads = 2, d = 16, dv = 16, block = 8;
  DType q = DType::f32, cache = DType::f32;
  bool aligned = false;      ///< rows of q and keys are multiples of 16 bytes apart, as tiled kernels need them
  bool columns = false;      ///< values are stored in columns
  bool whole_pages = false;  ///< rows of keys follow each other without gaps, as those of values do
};

/// Sequences with these contexts, one query each or as many as `queries` says; every table names other blocks, the
/// unused entries are -1.
Case make_case(std::string case_name, const Sizes& s, const std::vector<std::int64_t>& contexts,
               const std::vector<std::int64_t>& queries = {}, Attributes attributes = {});
/// Scales of a head or of a token for a quantized cache.
void add_scales(Case& c, bool per_token);

/// Prefill with bulk tensor copies: pages of each size in both layouts, pages that a window has left, and rows past a
/// context that are NaN.
void add_copies(std::vector<Case>& list);
/// Caches without gaps, of which whole pages are copied: one query and several of a sequence, groups of key-value
/// heads, more spans than blocks and fewer, pages of several tiles in both layouts, and values past a context that are
/// NaN.
void add_whole_pages(std::vector<Case>& list);

}  // namespace cermet::incre_flash_attention_op
