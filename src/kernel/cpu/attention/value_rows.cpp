#include "kernel/cpu/attention/value_rows.hpp"

#include "format/value_columns.hpp"
#include "op/kv_cache.hpp"
#include "op/operands.hpp"

namespace cermet::cpu {
namespace {

using enum op::incre_flash_attention::Operand;
constexpr int tokens_of_column = format::value_column;

}  // namespace

std::int64_t ValueRows::bytes(const Problem& p) {
  if (!in_columns(p.input(v_cache))) return 0;
  const std::int64_t tokens = p.size(block_tables, 0) * p.size(block_tables, 1) * p.size(v_cache, 2) * tokens_of_column,
                     vectors = tokens * p.size(v_cache, 1);
  return round_up(vectors * p.size(v_cache, 3), 64) + round_up(vectors * std::int64_t{sizeof(float)}, 64);
}

ValueRows::ValueRows(const LaunchArgs& args, std::byte* workspace) : args_(args), columns_(args.inputs[v_cache]) {
  if (!any()) return;
  heads_ = columns_.shape[1];
  size_ = columns_.shape[3];
  block_ = columns_.shape[2] * tokens_of_column;
  tokens_ = args.inputs[block_tables].shape[1] * block_;
  rows_ = workspace;
  const std::int64_t vectors = args.inputs[block_tables].shape[0] * heads_ * tokens_;
  scales_ = reinterpret_cast<float*>(workspace + round_up(vectors * size_, 64));
}

void ValueRows::fill() const {
  if (!any()) return;
  const std::int64_t sequences = args_.inputs[context_lens].shape[0];
  args_.pool->parallel_for(sequences * heads_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) fill(i / heads_, i % heads_);
  });
}

void ValueRows::fill(std::int64_t sequence, std::int64_t head) const {
  const TensorView& tables = args_.inputs[block_tables];
  const std::int32_t* const table = tables.as<const std::int32_t>() + sequence * tables.strides[0];
  const std::int64_t context = args_.inputs[context_lens].as<const std::int32_t>()[sequence];
  for (std::int64_t first = 0; first < context; first += tokens_of_column) {
    const std::int64_t page = table[first / block_], group = first % block_ / tokens_of_column;
    if (page < 0 || page >= columns_.shape[0]) continue;  // one that a window has left
    const std::byte* const from = columns_.as<const std::byte>() + page * columns_.strides[0] +
                                  head * columns_.strides[1] + group * columns_.strides[2];
    std::byte* const to = rows_ + (first_of(sequence, head) + first) * size_;
    const auto count = static_cast<int>(std::min<std::int64_t>(tokens_of_column, context - first));
    for (int token = 0; token < count; ++token)
      for (std::int64_t d = 0; d < size_; ++d)
        to[token * size_ + d] = from[d * columns_.strides[3] + format::value_place(token)];
    if (!args_.has(v_scale) || args_.inputs[v_scale].shape.rank() < 3) continue;
    const TensorView& scale = args_.inputs[v_scale];
    const float* const scales = scale.as<const float>() + page * scale.strides[0] + head * scale.strides[1];
    for (int token = 0; token < count; ++token)
      scales_[first_of(sequence, head) + first + token] = scales[(first % block_ + token) * scale.strides[2]];
  }
}

KeyRows ValueRows::of(std::int64_t sequence, std::int64_t head) const {
  KeyRows r;
  r.data = rows_ + first_of(sequence, head) * size_;
  r.row_step = size_;
  if (!args_.has(v_scale)) return r;
  const TensorView& scale = args_.inputs[v_scale];
  const bool per_token = scale.shape.rank() == 3;
  r.scale = per_token ? scales_ + first_of(sequence, head) : scale.as<const float>() + head * head_scale_step(scale);
  r.scale_row_step = per_token ? 1 : 0;
  return r;
}

}  // namespace cermet::cpu
