// Cases of decoding attention: sequences with contexts and queries, whose pages follow each other.
#pragma once

#include <algorithm>

#include "base/checked.hpp"
#include "tests/kernel_cuda/operands.hpp"

namespace cermet {

struct PagedCase {
  std::vector<double> contexts, queries;       ///< of each sequence
  DType q = DType::bf16, cache = DType::bf16;  ///< of one byte: with scales of each token
  std::int64_t heads = 8, kv_heads = 2, head_size = 64;
  bool columns = false;  ///< values are in columns, and scales are those of heads

  /// So many sequences of one query each, with contexts from 1 up to `longest`.
  static PagedCase decoding(int sequences, int longest = 400) {
    PagedCase c;
    for (int s = 0; s < sequences; ++s) c.contexts.push_back(1 + 67 * s % longest), c.queries.push_back(1);
    return c;
  }

  Case named(std::string name) const {
    const auto sequences = static_cast<std::int64_t>(contexts.size());
    constexpr std::int64_t page = 16;
    const std::int64_t pages = div_up(static_cast<std::int64_t>(std::ranges::max(contexts)), page);
    std::vector<double> tables, starts{0};
    for (std::int64_t i = 0; i < sequences * pages; ++i) tables.push_back(static_cast<double>(i));
    for (const double count : queries) starts.push_back(starts.back() + count);
    const Dims rows{sequences * pages, kv_heads, page};
    const CaseOperand cached = real(cache, {rows[0], rows[1], rows[2], head_size});
    const CaseOperand in_columns = real(cache, {rows[0], rows[1], page / 16, head_size, 16});
    Case made{std::move(name),
              {real(q, {static_cast<std::int64_t>(starts.back()), heads, head_size}), cached,
               columns ? in_columns : cached, CaseOperand{{DType::i32, {sequences, pages}}, values(std::move(tables))},
               CaseOperand{{DType::i32, {sequences}}, values(contexts)},
               CaseOperand{{DType::i32, {sequences + 1}}, values(std::move(starts))}}};
    const Dims scales = columns ? Dims{kv_heads} : rows;
    if (byte_size(cache) == 1) made.inputs.resize(8, CaseOperand{{DType::f32, scales}, uniform(0.005, 0.01)});
    return made;
  }
};

}  // namespace cermet
