#include "op/attention.hpp"

#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet {
namespace {

/// Scores of the visible keys, -infinity for the others, and the bound on |terms| that made them.
struct Scores {
  std::vector<double> value;
  double magnitude = 0;
  std::int64_t visible = 0;
  std::vector<double> each = {};  ///< magnitudes of their own, where operands change scores: a masked key does not
                                  ///< widen the bound of the others
};

Scores score(const ReferenceCall& call, const AttentionSettings& s, const ReferenceQuery& query,
             const ReferenceKeys& keys, double slope) {
  Scores scores{std::vector<double>(static_cast<std::size_t>(keys.count), -INFINITY)};
  const std::int64_t head_size = query.head_size > 0 ? query.head_size : call.inputs[0].shape.back();
  if (keys.changed) scores.each.resize(scores.value.size());
  for (std::int64_t j = 0; j < keys.count; ++j) {
    const std::int64_t distance = keys.position - j;
    if (s.causal && distance < 0) continue;
    if (s.window > 0 && (distance >= s.window || -distance >= s.window_after)) continue;
    double dot = 0, terms = 0;
    for (std::int64_t d = 0; d < head_size; ++d) {
      const double product = load(call.inputs[0], query.q_index + d * query.q_step) * keys.key(j, d);
      dot += product;
      terms += std::abs(product);
    }
    dot *= s.scale;
    if (s.softcap > 0) dot = s.softcap * std::tanh(dot / s.softcap);
    const double bias = -slope * static_cast<double>(std::abs(distance));
    const double magnitude = terms * std::abs(s.scale) + std::abs(bias) + s.softcap;
    scores.value[static_cast<std::size_t>(j)] = dot + bias;
    if (keys.changed) {
      const auto [changed, added] = keys.changed(j, dot + bias);
      scores.value[static_cast<std::size_t>(j)] = static_cast<float>(changed);
      scores.each[static_cast<std::size_t>(j)] = magnitude + added;
    } else {
      scores.magnitude = std::max(scores.magnitude, magnitude);
    }
    ++scores.visible;
  }
  return scores;
}

/// What rounding to the type of the values may do to a weight, and sums of 8-bit products to a score.
struct WeightRounding {
  double relative = 0, absolute = 0;  ///< the latter of the largest weight
  double score = 0;                   ///< of its terms

  WeightRounding(DType queries, DType values, const Attributes& attributes) {
    if (queries == DType::f8_e4m3) score = 0x1p-12;
    if (attributes.flag("strict")) return;
    if (queries == DType::f8_e4m3 && values == DType::f8_e4m3) {
      relative = 0x1p-4, absolute = 0x1p-15;
      return;
    }
    if (values == DType::bf16) relative = 0x1p-8;
    if (values == DType::f16) relative = 0x1p-11, absolute = 0x1p-25;
    if (byte_size(values) == 1) relative = 0x1p-11;
  }
};

void check_attributes(const Problem& p) {
  for (const char* name : {"scale", "softcap"})
    if (!(p.attributes.number(name) >= 0) || std::isinf(p.attributes.number(name)))
      bad_attribute(p, name, "a finite number, not negative");
  if (p.attributes.integer("window") < 0) bad_attribute(p, "window", "a number of keys, or 0");
  for (const char* name : {"window_left", "window_right"})
    if (p.attributes.integer(name) < -1) bad_attribute(p, name, "a number of keys, or -1");
}

}  // namespace

std::vector<AttributeSpec> attention_attributes() {
  return {{"scale", 0.0, "factor of the dot products; 0 means 1 / sqrt(D)"},
          {"causal", true, "a query sees no key behind its own position"},
          {"window", std::int64_t{0}, "a query sees only keys less than this many positions away; 0 means all"},
          {"window_left", std::int64_t{-1},
           "keys before its own position that a query sees; -1 means as many as window says"},
          {"window_right", std::int64_t{-1},
           "keys after its own position that a query sees; -1 means as many as window says"},
          {"softcap", 0.0, "scores become softcap * tanh(score / softcap); 0 means they stay"},
          {"out_dtype", std::string(), "element type of o; that of q where empty, bf16 for queries of 8 bits"},
          {"strict", false,
           "weights are multiplied with 16-bit values unrounded, or as two parts; without, they may be rounded to the "
           "type of the values, to float16 where those are quantized, and to e4m3 where they and the queries are e4m3"},
          {"return_lse", false, "also give the logarithm of each query's denominator"}};
}

AttentionSettings::AttentionSettings(const Attributes& a, std::int64_t head_size)
    : scale(a.number("scale")),
      softcap(a.number("softcap")),
      window(a.integer("window")),
      causal(a.flag("causal")),
      return_lse(a.flag("return_lse")) {
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(head_size));
  const std::int64_t left = a.integer("window_left"), right = a.integer("window_right");
  if (window == 0 && left < 0 && right < 0) return;
  constexpr std::int64_t all = std::int64_t{1} << 40;  // no sequence is as long
  const std::int64_t both = window > 0 ? window : all;
  window = left < 0 ? both : std::min(all, left + 1);
  window_after = right < 0 ? both : std::min(all, right + 1);
}

std::int64_t constant_dim(const Problem& p, std::size_t operand, int axis, std::int64_t low, std::int64_t high) {
  const Dim dim = dim_of(p, operand, axis);
  if (!dim.is_constant() || dim.constant() < low || dim.constant() > high)
    bad_operand(p, operand, fmt::format("dimension {} to be a number from {} to {}", axis, low, high),
                p.input(operand).to_string());
  return dim.constant();
}

void check_attention(const Problem& p, const AttentionExtents& e, std::size_t sinks, std::size_t alibi) {
  constexpr std::int64_t most_heads = 1 << 16, largest_head = 1024;
  const auto is_number = [](const Dim& dim, std::int64_t most) {
    return dim.is_constant() && dim.constant() >= 1 && dim.constant() <= most;
  };
  if (!is_number(e.q_heads, most_heads))
    bad_operand(p, 0, fmt::format("heads to be a number from 1 to {}", most_heads), p.input(0).to_string());
  if (!is_number(e.head_size, largest_head))
    bad_operand(p, 0, fmt::format("head size to be a number from 1 to {}", largest_head), p.input(0).to_string());
  if (e.key_size != e.head_size)
    bad_operand(p, 1, fmt::format("head size {}, that of q", e.head_size.to_string()), p.input(1).to_string());
  if (!is_number(e.kv_heads, most_heads) || e.q_heads.constant() % e.kv_heads.constant() != 0)
    bad_operand(p, 0, fmt::format("heads that are a multiple of the {} key-value heads", e.kv_heads.to_string()),
                p.input(0).to_string());
  if (!is_number(e.value_size, largest_head))
    fail(Status::invalid_argument, "{}: head size of the values: expected a number from 1 to {}, found {}", p.op->name,
         largest_head, e.value_size.to_string());
  for (const std::size_t operand : {sinks, alibi})
    if (p.has(operand)) expect_dims(p, operand, {e.q_heads}, "heads of q");
  check_attributes(p);
}

std::vector<TensorType> infer_attention(const Problem& p, const Dim& heads, const Dim& head_size, Dim value_size,
                                        std::size_t sinks, std::size_t alibi) {
  constexpr std::int64_t most_heads = 1 << 16, largest_head = 1024;
  expect_rank(p, 0, 3);
  expect_dim(p, 0, 2, head_size, fmt::format("head size of {}", p.input_name(1)));
  constant_dim(p, 0, 2, 1, largest_head);
  const std::int64_t q_heads = constant_dim(p, 0, 1, 1, most_heads);
  if (!heads.is_constant() || heads.constant() < 1 || q_heads % heads.constant() != 0)
    bad_operand(p, 0, fmt::format("heads that are a multiple of the {} key-value heads", heads.to_string()),
                p.input(0).to_string());
  if (!value_size.is_constant() || value_size.constant() < 1 || value_size.constant() > largest_head)
    fail(Status::invalid_argument, "{}: head size of the values: expected a number from 1 to {}, found {}", p.op->name,
         largest_head, value_size.to_string());
  for (const std::size_t operand : {sinks, alibi})
    if (p.has(operand)) expect_dims(p, operand, {dim_of(p, 0, 1)}, "heads of q");
  check_attributes(p);
  const DType queries = p.input(0).dtype, out = dtypes::real.contains(queries) ? queries : DType::bf16;
  std::vector<TensorType> outputs{
      {dtype_attribute(p, "out_dtype", out, dtypes::real), {dim_of(p, 0, 0), dim_of(p, 0, 1), value_size}}};
  if (p.attributes.flag("return_lse")) outputs.push_back({DType::f32, {dim_of(p, 0, 1), dim_of(p, 0, 0)}});
  return outputs;
}

void reference_attention(const ReferenceCall& call, const AttentionSettings& s, const ReferenceQuery& query,
                         const ReferenceKeys& keys, std::size_t sinks, std::size_t alibi) {
  const TensorView& o = call.outputs[0];
  const double slope = call.has(alibi) ? load(call.inputs[alibi], query.head) : 0;
  const double sink = call.has(sinks) ? load(call.inputs[sinks], query.head) : -INFINITY;
  const Scores scores = score(call, s, query, keys, slope);
  double largest = sink, denominator = 0;
  bool poisoned = std::isnan(sink);
  for (const double value : scores.value) {
    if (value > largest) largest = value;
    poisoned |= std::isnan(value);
  }
  std::vector<double> sum(static_cast<std::size_t>(o.shape.back())), magnitude(sum.size()), rounding(sum.size());
  const WeightRounding rounded(call.inputs[0].dtype, call.inputs[2].dtype, call.attributes);
  double spread = 0;  // error of the weights, where each has its own
  for (std::size_t j = 0; j < scores.value.size(); ++j) {
    if (scores.value[j] == -INFINITY) continue;
    const double weight = std::exp(scores.value[j] - largest);  // NaN for NaN, and for infinite scores
    denominator += weight;
    if (keys.changed) spread += weight * scores.each[j];
    for (std::size_t d = 0; d < sum.size(); ++d) {
      if (weight == 0 && keys.changed) continue;
      const double value = keys.value(static_cast<std::int64_t>(j), static_cast<std::int64_t>(d)),
                   term = weight * value;
      sum[d] += term;
      rounding[d] += std::abs(term) * (rounded.relative + 2 * rounded.score * scores.magnitude) +
                     std::abs(value) * rounded.absolute;
      magnitude[d] += std::abs(term) * (keys.changed ? 1 + scores.each[j] : 1);
    }
  }
  const AttributeValue* empty_rows = call.attributes.find("empty_rows");
  const bool zeros = empty_rows && std::get<std::string>(*empty_rows) == "zero";
  const bool empty = !poisoned && (scores.visible == 0 || (zeros && denominator == 0));
  if (sink > -INFINITY) denominator += std::exp(sink - largest);
  spread /= denominator;
  // Magnitudes are multiplied with the errors of so many float32 roundings at least.
  const double roundings =
      0x1p-24 *
      attention_rounding_depth(query.head_size > 0 ? query.head_size : call.inputs[0].shape.back(), keys.count);
  for (std::size_t d = 0; d < sum.size(); ++d) {
    const std::int64_t index = query.o_index + static_cast<std::int64_t>(d);
    const double result = empty ? 0 : poisoned ? NAN : sum[d] / denominator;
    store(o, index, result);
    note_magnitude(call, 0, index,
                   empty ? 0
                         : magnitude[d] / denominator * (1 + scores.magnitude) + std::abs(result) * spread +
                               rounding[d] / denominator / roundings);
  }
  if (!s.return_lse) return;
  const double lse = poisoned ? NAN : largest + std::log(denominator);
  store(call.outputs[1], query.lse_index, denominator == 0 ? -INFINITY : lse);
  note_magnitude(call, 1, query.lse_index,
                 1 + scores.magnitude * (1 + rounded.score / roundings) + spread + std::abs(lse));
}

}  // namespace cermet
