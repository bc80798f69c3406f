#include <algorithm>
#include <cmath>
#include <functional>

#include "base/checked.hpp"
#include "kernel/cpu/convert.hpp"
#include "kernel/cpu/index_list.hpp"
#include "kernel/cpu/sampling/argmax.hpp"
#include "kernel/kernel.hpp"
#include "op/sample_parameters.hpp"
#include "op/sampling.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

/// One sequence's logits while a token is drawn.
struct Row {
  float* x;              ///< [vocabulary]: penalized logits, then divided by the temperature
  std::uint64_t* ranks;  ///< [vocabulary]: scratch
  std::int64_t vocabulary;
  float largest = 0;

  std::uint64_t rank(std::int64_t id) const { return sampling_rank(x[id], static_cast<std::uint32_t>(id)); }
  float exponential(std::int64_t id) const { return sampling_exp(x[id] - largest); }
  static std::int64_t id_of(std::uint64_t rank) { return 0xffffffffu - static_cast<std::uint32_t>(rank); }
};

void apply_penalty(const LaunchArgs& args, std::int64_t b, float penalty, Row& row) {
  if (!args.has(sample_previous)) return;
  const IndexList previous(args.inputs[sample_previous]);
  const TensorView& logits = args.inputs[sample_logits];
  const std::byte* original = Rows(logits).row(b);
  const std::int64_t count = args.inputs[sample_previous].shape[1];
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t id = previous[b * count + i];
    if (id < 0) continue;
    check_index("sample", "6 (previous)", id, row.vocabulary);
    row.x[id] = penalized(static_cast<float>(format::load_element(original, logits.dtype, id)),
                          penalty);  // from the original: a repeated id changes nothing
  }
}

/// Rank of the last token that top_p keeps of ranks[0 .. count): sorts more and more of them until their weight
/// suffices.
std::uint64_t top_p_cut(const Row& row, std::int64_t count, float top_p) {
  std::uint64_t total = 0, reached = 0;
  for (std::int64_t i = 0; i < count; ++i) total += sampling_weight(row.exponential(Row::id_of(row.ranks[i])));
  const std::uint64_t wanted = top_p_weight(total, top_p);
  for (std::int64_t begin = 0, piece = 64; begin < count; begin += piece, piece *= 4) {
    const std::int64_t end = std::min(count, begin + piece);
    std::partial_sort(row.ranks + begin, row.ranks + end, row.ranks + count, std::greater<>());
    for (std::int64_t i = begin; i < end; ++i) {
      reached += sampling_weight(row.exponential(Row::id_of(row.ranks[i])));
      if (reached >= wanted) return row.ranks[i];
    }
  }
  return row.ranks[count - 1];
}

/// Rank of the last token that top_k and top_p keep; 0 where they keep all.
std::uint64_t find_cut(const Row& row, const SampleParameters& p) {
  const bool by_count = p.top_k > 0 && p.top_k < row.vocabulary;
  if (!by_count && p.top_p >= 1) return 0;
  for (std::int64_t i = 0; i < row.vocabulary; ++i) row.ranks[i] = row.rank(i);
  const std::int64_t count = by_count ? p.top_k : row.vocabulary;
  if (by_count) std::nth_element(row.ranks, row.ranks + count - 1, row.ranks + row.vocabulary, std::greater<>());
  return p.top_p < 1 ? top_p_cut(row, count, p.top_p) : row.ranks[count - 1];
}

std::int64_t draw(Row& row, const SampleParameters& p) {
  const std::int64_t best = argmax_of_row(reinterpret_cast<const std::byte*>(row.x), DType::f32, row.vocabulary);
  row.largest = row.x[best] / p.temperature;
  if (p.temperature == 0 || !std::isfinite(row.largest)) return best;
  for (std::int64_t i = 0; i < row.vocabulary; ++i) row.x[i] /= p.temperature;
  const std::uint64_t cut = find_cut(row, p);
  const auto weight = [&](std::int64_t id) -> std::uint64_t {
    if (cut > 0 && row.rank(id) < cut) return 0;
    const float exponential = row.exponential(id);
    return exponential < p.min_p ? 0 : sampling_weight(exponential);
  };
  std::uint64_t total = 0, reached = 0;
  for (std::int64_t i = 0; i < row.vocabulary; ++i) total += weight(i);
  const std::uint64_t target = scale_random(total, random_bits(p.seed, p.step));
  for (std::int64_t i = 0; i < row.vocabulary; ++i) {
    reached += weight(i);
    if (reached > target) return i;
  }
  assertion_failed("a random number below the total weight", __FILE_NAME__, __LINE__);
}

std::int64_t scratch_bytes(std::int64_t vocabulary) { return round_up(vocabulary, 16) * 12; }

void sample_rows(const LaunchArgs& args) {
  const TensorView& logits = args.inputs[sample_logits];
  const Rows from(logits);
  const std::int64_t sequences = from.count(), vocabulary = from.length();
  const RunConverter convert = real_converter(logits.dtype, DType::f32);
  const int threads = args.pool->size();
  args.pool->run([&](int thread) {
    std::byte* scratch = args.workspace + thread * scratch_bytes(vocabulary);
    Row row{reinterpret_cast<float*>(scratch), reinterpret_cast<std::uint64_t*>(scratch + round_up(vocabulary, 16) * 4),
            vocabulary};
    for (std::int64_t b = sequences * thread / threads; b < sequences * (thread + 1) / threads; ++b) {
      const SampleParameters parameters(args.inputs, b);
      convert(from.row(b), reinterpret_cast<std::byte*>(row.x), vocabulary);
      apply_penalty(args, b, parameters.penalty, row);
      args.outputs[0].as<std::int32_t>()[b] = static_cast<std::int32_t>(draw(row, parameters));
    }
  });
}

}  // namespace

extern const Kernel sampling_sample{
    .name = "sampling.sample",
    .op = OpKind::sample,
    .summary = "selects rather than sorts; sequences spread over threads",
    .bind = [](const Problem&) -> Launcher { return sample_rows; },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      return threads * scratch_bytes(p.size(sample_logits, 1));
    },
};

}  // namespace cermet::cpu
