#include "op/attention.hpp"
#include "op/float_order.hpp"
#include "op/mixture.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::topk_gating_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, 0, 2);
  const std::int64_t experts = constant_dim(p, 0, 1, 1, 1 << 16);
  if (p.has(1)) expect_dims(p, 1, {experts}, "experts of logits");
  check_gating(p, experts);
  const std::int64_t k = p.attributes.integer("k");
  return {{DType::f32, {dim_of(p, 0, 0), k}},
          {dtype_attribute(p, "index_dtype", DType::i32, dtypes::index), {dim_of(p, 0, 0), k}}};
}

/// Ids of the `count` largest keys in descending order; of equal keys the lower id comes first.
std::vector<std::size_t> largest(const std::vector<cermet_u32>& keys, std::int64_t count) {
  std::vector<std::size_t> ids(keys.size());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
  std::stable_sort(ids.begin(), ids.end(), [&](std::size_t a, std::size_t b) { return keys[a] > keys[b]; });
  ids.resize(static_cast<std::size_t>(count));
  return ids;
}

struct Row {
  std::vector<double> scores, choice;
  double spread = 0;  ///< largest distance from the maximum: which scales the exponent's rounding error
};

Row score_row(const ReferenceCall& call, std::int64_t row) {
  const std::int64_t experts = call.inputs[0].shape[1];
  const auto logit = [&](std::int64_t e) { return load(call.inputs[0], row * experts + e); };
  const bool softmax = call.attributes.text("score") == "softmax";
  double maximum = -INFINITY, sum = 0;
  for (std::int64_t e = 0; e < experts; ++e) maximum = logit(e) > maximum ? logit(e) : maximum;
  Row r;
  for (std::int64_t e = 0; e < experts; ++e) {
    r.scores.push_back(softmax ? std::exp(logit(e) - maximum) : 1 / (1 + std::exp(-logit(e))));
    sum += r.scores.back();
    if (std::isfinite(logit(e))) r.spread = std::max(r.spread, softmax ? maximum - logit(e) : std::abs(logit(e)));
  }
  for (double& s : r.scores) s /= softmax ? sum : 1;
  const bool by_logit = !call.has(1) && call.attributes.integer("groups") == 1;
  for (std::int64_t e = 0; e < experts; ++e)
    r.choice.push_back(by_logit ? logit(e)
                                : r.scores[static_cast<std::size_t>(e)] + (call.has(1) ? load(call.inputs[1], e) : 0));
  return r;
}

std::vector<cermet_u32> keys_of(const std::vector<double>& values) {
  std::vector<cermet_u32> keys;
  for (const double value : values) keys.push_back(order_key(static_cast<float>(value)));
  return keys;
}

/// Groups in descending order of the sum of their two largest values, or of their largest.
std::vector<std::size_t> choose_groups(const std::vector<double>& choice, const Attributes& a) {
  const auto groups = static_cast<std::size_t>(a.integer("groups")), size = choice.size() / groups;
  std::vector<double> scores;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::vector<double> members(choice.begin() + static_cast<std::ptrdiff_t>(g * size),
                                      choice.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
    const auto best = largest(keys_of(members), std::min<std::int64_t>(2, static_cast<std::int64_t>(size)));
    scores.push_back(members[best[0]] + (best.size() > 1 && a.text("group_score") == "top2" ? members[best[1]] : 0));
  }
  return largest(keys_of(scores), a.integer("topk_groups"));
}

void reference(const ReferenceCall& call) {
  const Attributes& a = call.attributes;
  const std::int64_t k = a.integer("k");
  for (std::int64_t t = 0; t < call.inputs[0].shape[0]; ++t) {
    const Row row = score_row(call, t);
    std::vector<cermet_u32> keys = keys_of(row.choice);
    if (a.integer("groups") > 1) {
      const std::size_t size = keys.size() / static_cast<std::size_t>(a.integer("groups"));
      std::vector<cermet_u32> kept(keys.size(), 0);  // below every key of a number
      for (const std::size_t g : choose_groups(row.choice, a))
        std::copy_n(keys.begin() + static_cast<std::ptrdiff_t>(g * size), size,
                    kept.begin() + static_cast<std::ptrdiff_t>(g * size));
      keys = std::move(kept);
    }
    const auto ids = largest(keys, k);
    double sum = 0;
    for (const std::size_t id : ids) sum += row.scores[id];
    for (std::size_t j = 0; j < ids.size(); ++j) {
      double weight = row.scores[ids[j]];
      if (a.flag("renormalize")) weight = sum == 0 ? 0 : weight / sum;
      weight *= a.number("scale");
      const std::int64_t index = t * k + static_cast<std::int64_t>(j);
      store(call.outputs[0], index, weight);
      note_magnitude(call, 0, index, std::abs(weight) * (1 + row.spread));
      store(call.outputs[1], index, static_cast<double>(ids[j]));
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, TensorType logits, std::int64_t k, Attributes attributes = {},
                       Fill fill = normal(2), bool bias = false) {
    attributes.set("k", k);
    Case c{std::move(name), {CaseOperand{logits, std::move(fill), 3}}, std::move(attributes)};
    if (bias) c.inputs.push_back(CaseOperand{{DType::f32, {logits.dims[1]}}, normal(0.3)});
    list.push_back(std::move(c));
  };
  const AttributeValue sigmoid("sigmoid"), two(std::int64_t{2}), four(std::int64_t{4}), eight(std::int64_t{8});
  for (DType t : {DType::f32, DType::bf16, DType::f16})
    for (std::int64_t experts : {1, 5, 16, 128})
      add(fmt::format("{}_e{}", name_of(t), experts), {t, {5, experts}}, std::min<std::int64_t>(experts, 4));
  for (DType t : {DType::f32, DType::bf16, DType::f16})  // not powers of two, as models have them
    for (std::int64_t experts : {60, 72, 96, 160, 192, 384})
      add(fmt::format("{}_e{}", name_of(t), experts), {t, {5, experts}}, 6);
  add("all_of_them", {DType::f32, {3, 7}}, 7, {{"renormalize", false}, {"scale", 2.5}});
  add("sigmoid", {DType::f32, {9, 33}}, 6, {{"score", sigmoid}});
  add("sigmoid_far", {DType::f32, {2, 8}}, 8, {{"score", sigmoid}, {"renormalize", false}},
      values({-300, -95, -20, -1, 0, 1, 90, 300}));
  add("softmax_far", {DType::f32, {2, 8}}, 8, {}, values({-300, -95, -20, -1, 0, 1, 30, 300}));
  add("bias", {DType::f32, {9, 32}}, 4, {{"score", sigmoid}}, normal(2), true);
  add("deepseek_v3", {DType::f32, {9, 64}}, 6,
      {{"score", sigmoid}, {"groups", eight}, {"topk_groups", four}, {"scale", 2.5}}, normal(2), true);
  add("deepseek_v2", {DType::bf16, {9, 32}}, 3,
      {{"groups", four}, {"topk_groups", two}, {"group_score", "max"}, {"renormalize", false}});
  add("groups_of_one", {DType::f32, {4, 8}}, 2, {{"groups", eight}, {"topk_groups", four}});
  add("ties", {DType::f32, {6, 40}}, 8, {}, integers(-1, 1));
  add("ties_in_groups", {DType::f32, {6, 16}}, 4, {{"groups", four}, {"topk_groups", two}}, constant(0.25));
  add("nan_row", {DType::f32, {2, 6}}, 3, {}, values({1, NAN, 2, 3, NAN, 4, 1, 2, 3, 4, 5, 6}));
  add("infinite", {DType::f32, {2, 6}}, 3, {}, values({1, INFINITY, 2, -INFINITY, 3, 4, 1, 2, -INFINITY, 4, 5, 6}));
  add("no_score", {DType::f32, {2, 6}}, 3, {{"score", sigmoid}}, constant(-INFINITY));
  add("no_tokens", {DType::f32, {0, 6}}, 3);
  add("wide_ids", {DType::bf16, {9, 32}}, 4, {{"index_dtype", "i64"}});
  add("wide_ids_of_many_experts", {DType::f32, {3, 1500}}, 5,
      {{"index_dtype", "i64"}, {"groups", four}, {"topk_groups", two}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Mixture of experts",
      .summary = "Chooses experts for each token and weighs them",
      .semantics =
          "score = softmax over all experts, or sigmoid, in float32. The k experts with the largest score + bias are "
          "chosen, in descending order; ties go to "
          "the lower id and "
          "NaN counts as largest. Without bias and groups the logits themselves are compared, which rounding cannot "
          "tie. The bias takes part in the choice "
          "only. With groups > 1 the "
          "experts form equal groups of neighbours; only the topk_groups groups with the largest group score (the sum "
          "of the two largest score + bias, or with "
          "group_score = max the "
          "largest) take part. weight = score, divided by the sum of the k scores with renormalize (0 where that sum "
          "is 0), times scale.",
      .inputs = {{"logits", dtypes::real, "[T, E]", "output of the router", Mapping::many_to_many},
                 {"bias", dtypes::real, "[E]", "added for the choice", Mapping::one_to_many, true}},
      .outputs = {{"weights", {DType::f32}, "[T, k]", "weights of the chosen experts"},
                  {"ids", dtypes::index, "[T, k]", "the chosen experts, best first"}},
      .attributes =
          [] {
            auto attributes = gating_attributes();
            attributes.push_back({"index_dtype", std::string("i32"), "element type of ids", {"i32", "i64"}});
            return attributes;
          }(),
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return static_cast<double>(p.input(0).elements().value(p.maximum)) *
                   static_cast<double>(4 + p.attributes.integer("k"));
          },
      .rounding_depth = [](const Problem& p) { return 2.0 * static_cast<double>(p.size(0, 1)) + 16; },
      .cases = cases,
  };
}

}  // namespace cermet::topk_gating_op
