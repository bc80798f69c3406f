// Counts of n-grams of integers.
#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

/// How often each n-gram of `grams` ([count * n], one after the other) is found in x [N, L] with this distance between
/// its elements: f32 [N, count].
Operand gram_counts(Lowering& l, Operand x, const Ints& grams, std::int64_t n, std::int64_t distance) {
  const std::int64_t length = l.size(x, 1), count = static_cast<std::int64_t>(grams.size()) / n,
                     places = length - (n - 1) * distance;
  if (places <= 0) return l.filled({l.dim(x, 0), count}, DType::f32, 0);
  Operand found;
  for (std::int64_t j = 0; j < n; ++j) {
    Ints wanted;
    for (std::int64_t g = 0; g < count; ++g) wanted.push_back(grams[static_cast<std::size_t>(g * n + j)]);
    const Operand same = l.binary(OpKind::equal, l.unsqueeze(l.slice(x, 1, j * distance, j * distance + places), {2}),
                                  l.ints(wanted));  // [N, places, count]
    found = found ? l.binary(OpKind::logical_and, found, same) : same;
  }
  return l.reduce(OpKind::reduce_sum, l.cast(found, DType::f32), {1}, false);
}

}  // namespace

void lower_tfidf_vectorizer(Lowering& l) {
  if (l.has_attribute("pool_strings")) l.unsupported("attribute pool_strings is not supported");
  const Ints pool = l.integers("pool_int64s"), starts = l.integers("ngram_counts"),
             columns = l.integers("ngram_indexes");
  const std::int64_t least = l.integer("min_gram_length", 1), most = l.integer("max_gram_length", 1),
                     skips = l.integer("max_skip_count", 0);
  l.expect(skips >= 0 && skips <= (1 << 10), "attribute max_skip_count: expected 0 to {}, found {}", 1 << 10, skips);
  l.expect(starts.size() <= (1 << 10), "attribute ngram_counts: expected at most {}, found {}", 1 << 10, starts.size());
  const std::string mode = l.text("mode", "TF");
  l.expect(mode == "TF" || mode == "IDF" || mode == "TFIDF", "attribute mode: expected TF, IDF or TFIDF, found {}",
           mode);
  Operand x = l.cast(l.in(0), DType::i64);
  const bool one_row = l.rank(x) == 1;
  if (one_row) x = l.unsqueeze(x, {0});
  std::vector<Operand> counts;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto n = static_cast<std::int64_t>(i) + 1,
               end = i + 1 < starts.size() ? starts[i + 1] : static_cast<std::int64_t>(pool.size());
    l.expect(starts[i] >= 0 && starts[i] <= end && end <= static_cast<std::int64_t>(pool.size()) &&
                 (end - starts[i]) % n == 0,
             "attribute ngram_counts: expected bounds of {}-grams in a pool of {}, found {} to {}", n, pool.size(),
             starts[i], end);
    if (starts[i] == end) continue;
    const Ints grams(pool.begin() + starts[i], pool.begin() + end);
    Operand sum = l.filled({l.dim(x, 0), (end - starts[i]) / n}, DType::f32, 0);
    if (n >= least && n <= most)
      for (std::int64_t skip = 0; skip <= (n == 1 ? 0 : skips); ++skip)
        sum = l.binary(OpKind::add, sum, gram_counts(l, x, grams, n, skip + 1));
    counts.push_back(sum);
  }
  l.expect(!counts.empty(), "expected at least one n-gram, found none");
  Operand y = l.concat(counts, 1);
  const auto grams = static_cast<std::size_t>(l.size(y, 1));
  const Floats weights = l.numbers("weights", Floats(grams, 1));
  l.expect(columns.size() == grams && weights.size() == grams, "expected {} ngram_indexes and weights, found {} and {}",
           grams, columns.size(), weights.size());
  if (mode == "IDF") y = l.cast(l.binary(OpKind::greater, y, 0.0), DType::f32);
  if (mode != "TF") y = l.binary(OpKind::mul, y, l.vector(DType::f32, weights));
  std::int64_t width = 0;
  for (const std::int64_t c : columns) {
    l.expect(c >= 0 && c < (std::int64_t{1} << 26),
             "attribute ngram_indexes: expected columns from 0 to 2^26, found {}", c);
    width = std::max(width, c + 1);
  }
  Floats place(l.listed(static_cast<std::int64_t>(grams) * width));
  for (std::size_t g = 0; g < grams; ++g) {
    place[g * static_cast<std::size_t>(width) + static_cast<std::size_t>(columns[g])] = 1;
  }
  y = l.op(OpKind::matmul, {y, l.reshape(l.vector(DType::f32, place), {static_cast<std::int64_t>(grams), width})});
  l.set(0, one_row ? l.squeeze(y, {0}) : y);
}

}  // namespace cermet::onnx
