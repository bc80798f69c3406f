#include <algorithm>

#include "op/sample_parameters.hpp"
#include "op/sampling.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::sample_op {
namespace {

constexpr std::int64_t largest_vocabulary = 1 << 23;  ///< sums of weights stay below 2^63

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, sample_logits, 2);
  const Dim sequences = dim_of(p, sample_logits, 0), vocabulary = dim_of(p, sample_logits, 1);
  if (!vocabulary.is_constant() || vocabulary.constant() < 1 || vocabulary.constant() > largest_vocabulary)
    bad_operand(p, sample_logits, fmt::format("a vocabulary of 1 to {}", largest_vocabulary),
                p.input(sample_logits).to_string());
  for (const std::size_t operand :
       {sample_temperature, sample_top_k, sample_top_p, sample_min_p, sample_penalty, sample_seeds, sample_steps})
    if (p.has(operand)) expect_dims(p, operand, {sequences}, "sequences of logits");
  if (p.has(sample_previous)) {
    expect_rank(p, sample_previous, 2);
    expect_dim(p, sample_previous, 0, sequences, "sequences of logits");
  }
  return {{DType::i32, {sequences}}};
}

/// Logits of a sequence as float32 with the repetition penalty applied once to every token of `previous`.
std::vector<float> penalized_logits(const ReferenceCall& call, std::int64_t b, float penalty) {
  const TensorView &logits = call.inputs[sample_logits], &previous = call.inputs[sample_previous];
  std::vector<float> x;
  for (std::int64_t i = 0; i < logits.shape[1]; ++i)
    x.push_back(static_cast<float>(load(logits, b * logits.shape[1] + i)));
  if (!call.has(sample_previous)) return x;
  std::vector<bool> seen(x.size());
  for (std::int64_t i = 0; i < previous.shape[1]; ++i) {
    const std::int64_t id = load_index(previous, b * previous.shape[1] + i);
    if (id < 0) continue;
    check_index("sample", "previous", id, logits.shape[1]);
    const auto token = static_cast<std::size_t>(id);
    if (!seen[token]) x[token] = penalized(x[token], penalty);
    seen[token] = true;
  }
  return x;
}

std::uint32_t draw(const std::vector<float>& logits, const SampleParameters& p) {
  std::vector<std::uint32_t> ids(logits.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return order_key(logits[a]) > order_key(logits[b]); });
  if (p.temperature == 0 || !std::isfinite(logits[ids[0]] / p.temperature)) return ids[0];
  std::vector<float> scaled;
  for (const float x : logits) scaled.push_back(x / p.temperature);
  std::sort(ids.begin(), ids.end(), [&](std::uint32_t a, std::uint32_t b) {
    return sampling_rank(scaled[a], a) > sampling_rank(scaled[b], b);
  });
  if (p.top_k > 0 && static_cast<std::size_t>(p.top_k) < ids.size()) ids.resize(static_cast<std::size_t>(p.top_k));
  const float largest = scaled[ids[0]];
  const auto exponential = [&](std::uint32_t id) { return sampling_exp(scaled[id] - largest); };
  const auto sum = [&] {
    std::uint64_t total = 0;
    for (const std::uint32_t id : ids) total += sampling_weight(exponential(id));
    return total;
  };
  if (p.top_p < 1) {
    const std::uint64_t wanted = top_p_weight(sum(), p.top_p);
    std::uint64_t reached = 0;
    std::size_t kept = 0;
    do reached += sampling_weight(exponential(ids[kept++]));
    while (reached < wanted);
    ids.resize(kept);
  }
  std::erase_if(ids, [&](std::uint32_t id) { return exponential(id) < p.min_p; });
  std::sort(ids.begin(), ids.end());
  const std::uint64_t target = scale_random(sum(), random_bits(p.seed, p.step));
  std::uint64_t reached = 0;
  for (const std::uint32_t id : ids) {
    reached += sampling_weight(exponential(id));
    if (reached > target) return id;
  }
  return ids.back();
}

void reference(const ReferenceCall& call) {
  for (std::int64_t b = 0; b < call.inputs[sample_logits].shape[0]; ++b) {
    const SampleParameters parameters(call.inputs, b);
    store(call.outputs[0], b, draw(penalized_logits(call, b, parameters.penalty), parameters));
  }
}

struct Settings {
  Fill temperature = constant(1), top_k = constant(0), top_p = constant(1), min_p = constant(0);
  std::optional<Fill> penalty = {};
};

Case make_case(std::string name, TensorType logits, const Settings& s, Fill fill = normal(3)) {
  const Dims sequences{logits.dims[0]};
  const auto list = [&](DType type, Fill values) { return CaseOperand{{type, sequences}, std::move(values)}; };
  Case c{std::move(name), {CaseOperand{logits, std::move(fill), 5}}};
  c.inputs.insert(c.inputs.end(), {list(DType::f32, s.temperature), list(DType::i32, s.top_k),
                                   list(DType::f32, s.top_p), list(DType::f32, s.min_p)});
  c.inputs.resize(sample_seeds);
  if (s.penalty) {
    c.inputs[sample_penalty] = list(DType::f32, *s.penalty);
    c.inputs[sample_previous] =
        CaseOperand{{DType::i32, {logits.dims[0], 6}}, integers(-1, logits.dims[1].constant() - 1)};
  }
  c.inputs.insert(c.inputs.end(), {list(DType::i64, integers(0, 1'000'000'000)), list(DType::i64, integers(0, 5000))});
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    list.push_back(make_case(fmt::format("{}", name_of(t)), {t, {40, 300}}, {}));
  const TensorType logits{DType::f32, {60, 257}};
  list.push_back(make_case("greedy", {DType::bf16, {9, 129}}, {.temperature = constant(0)}));
  list.push_back(make_case("temperature", logits, {.temperature = uniform(0.1, 4)}));
  list.push_back(make_case("top_k", logits, {.top_k = integers(0, 12)}));
  list.push_back(make_case("top_p", logits, {.top_p = uniform(0.01, 1)}));
  list.push_back(make_case("top_p_flat", logits, {.top_p = uniform(0.5, 1)}, normal(0.01)));
  list.push_back(make_case("min_p", logits, {.min_p = uniform(0, 1)}));
  list.push_back(
      make_case("penalty", {DType::f32, {60, 11}}, {.temperature = uniform(0, 1), .penalty = uniform(0.5, 2)}));
  list.push_back(make_case("everything", logits,
                           {.temperature = values({0, 0.7, 1, 1.3}),
                            .top_k = integers(0, 300),
                            .top_p = uniform(0.3, 1),
                            .min_p = uniform(0, 0.1),
                            .penalty = uniform(0.8, 1.5)}));
  const TensorType vocabulary{DType::f32, {5, 32011}};
  list.push_back(make_case("vocabulary", vocabulary, {.temperature = uniform(0.5, 1.5)}));
  list.push_back(make_case(
      "vocabulary_cut", vocabulary,
      {.top_k = values({0, 50, 1, 9000, 0}), .top_p = values({0.9, 0.8, 0.5, 0.99, 0.1}), .penalty = uniform(1, 2)}));
  list.push_back(make_case("vocabulary_flat", {DType::bf16, {4, 20000}},
                           {.top_k = values({0, 7000, 15000, 0}), .top_p = values({0.5, 1, 0.3, 0.95})}, normal(0.01)));
  list.push_back(make_case("ties", logits, {.top_k = integers(1, 5), .top_p = uniform(0.2, 1)}, integers(-1, 1)));
  list.push_back(make_case("one_token", {DType::f32, {3, 1}}, {.top_p = constant(0.5)}));
  list.push_back(make_case("not_finite", {DType::f32, {4, 4}}, {},
                           values({1, NAN, 2, NAN, 1, INFINITY, 2, 3, -INFINITY, -INFINITY, -INFINITY, -INFINITY,
                                   -INFINITY, 1, -INFINITY, 2})));
  list.push_back(make_case("tiny_temperature", {DType::f32, {4, 30}}, {.temperature = constant(1e-42)}));
  list.push_back(make_case("far_apart", {DType::f32, {20, 40}}, {.top_p = constant(0.999)}, normal(60)));
  list.push_back(make_case("no_sequences", {DType::f32, {0, 4}}, {}));
  list.push_back({"defaults", {CaseOperand{{DType::f32, {9, 20}}}}});
  list.back().inputs.resize(sample_seeds);
  for (int i = 0; i < 2; ++i)
    list.back().inputs.push_back(CaseOperand{{DType::i64, {9}}, integers(-1'000'000, 1'000'000)});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Sampling",
      .summary = "Draws the next token of each sequence",
      .semantics =
          "In this order, float32 throughout: (1) the logit x of every token in previous (negative ids are padding) "
          "becomes x / penalty where it is positive, "
          "else x * penalty; "
          "(2) with temperature 0, or where the largest x / temperature is not finite, the result is the argmax of x; "
          "(3) z = x / temperature; (4) tokens are "
          "ranked by descending z, "
          "ties by ascending id, and the first top_k stay (0: all); (5) weight = floor(2^40 exp(z - largest z)), an "
          "integer; the shortest beginning of the "
          "ranking whose weight "
          "reaches floor(top_p * total) stays, at least one token; (6) tokens with exp(z - largest z) < min_p go; (7) "
          "with U = 64 bits of Philox 4x32-10 for "
          "counter (step, 0) and key seed, the "
          "result is the lowest id whose weight together with that of all lower ids exceeds floor(total * U / 2^64). "
          "Integer weights make every backend agree, "
          "whatever its order of sums. "
          "A parameter out of range is an error that names the sequence.",
      .inputs = {{"logits", dtypes::real, "[B, V]", "scores of the next token", Mapping::many_to_many},
                 {"temperature", {DType::f32}, "[B]", "at least 0; 1 where not given", Mapping::barrier, true},
                 {"top_k", {DType::i32}, "[B]", "at least 0; 0, all, where not given", Mapping::barrier, true},
                 {"top_p", {DType::f32}, "[B]", "in (0, 1]; 1 where not given", Mapping::barrier, true},
                 {"min_p", {DType::f32}, "[B]", "in [0, 1]; 0 where not given", Mapping::barrier, true},
                 {"repetition_penalty", {DType::f32}, "[B]", "above 0; 1 where not given", Mapping::barrier, true},
                 {"previous", dtypes::index, "[B, N]", "tokens that the penalty applies to; negative ids are padding",
                  Mapping::barrier, true},
                 {"seeds", {DType::i64}, "[B]", "names the random stream of each sequence", Mapping::barrier},
                 {"steps", {DType::i64}, "[B]", "number of the draw within its stream", Mapping::barrier}},
      .outputs = {{"ids", {DType::i32}, "[B]", "the tokens"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return 20.0 * static_cast<double>(p.input(sample_logits).elements().value(p.maximum));
          },
      .cases = cases,
  };
}

}  // namespace cermet::sample_op
