#include "op/attention.hpp"
#include "op/expert_groups.hpp"
#include "op/operands.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::moe_permute_op {
namespace {

using enum op::moe_permute::Operand;
enum Result : std::size_t { rows, offsets, row_of, row_scales };

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, x, 2);
  expect_rank(p, ids, 2);
  expect_dim(p, ids, 0, dim_of(p, x, 0), "tokens of x");
  const std::int64_t k = constant_dim(p, ids, 1, 1, 1 << 16), experts = p.attributes.integer("experts");
  const ExpertGroups groups(p.attributes);
  if (experts < 1 || experts > 1 << 16) bad_attribute(p, "experts", "1 to 65536");
  if (groups.first < 0 || groups.first > 1 << 16) bad_attribute(p, "first", "0 to 65536");
  if (groups.first > 0 && !groups.rest) bad_attribute(p, "first", "0 without rest");
  const Dim tokens = dim_of(p, x, 0);
  std::vector<TensorType> results{
      {p.input(x).dtype, {tokens * k, dim_of(p, x, 1)}}, {DType::i32, {experts + 1}}, {DType::i32, {tokens, k}}};
  if (!p.has(scales)) return results;
  expect_dims(p, scales, {tokens}, "tokens of x");
  results.push_back({DType::f32, {tokens * k}});
  return results;
}

void reference(const ReferenceCall& call) {
  const TensorView &from = call.inputs[x], &list = call.inputs[ids];
  const ExpertGroups groups(call.attributes);
  const std::int64_t hidden = from.shape[1], k = list.shape[1];
  std::int64_t next = 0;
  store(call.outputs[offsets], 0, 0);
  for (std::int64_t pair = 0; pair < list.elements(); ++pair) groups.of(load_index(list, pair));
  for (std::int64_t e = 0; e < groups.groups; ++e) {
    for (std::int64_t pair = 0; pair < list.elements(); ++pair) {
      if (groups.of(load_index(list, pair)) != e) continue;
      for (std::int64_t h = 0; h < hidden; ++h)
        store(call.outputs[rows], next * hidden + h, load(from, pair / k * hidden + h));
      if (call.has(scales)) store(call.outputs[row_scales], next, load(call.inputs[scales], pair / k));
      store(call.outputs[row_of], pair, static_cast<double>(next++));
    }
    store(call.outputs[offsets], e + 1, static_cast<double>(next));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, TensorType tokens, std::int64_t k, std::int64_t experts,
                       std::optional<Fill> chosen = {}) {
    const Dim count = tokens.dims[0];
    list.push_back({std::move(name),
                    {CaseOperand{std::move(tokens), normal(20), 3},
                     CaseOperand{{DType::i32, {count, k}}, chosen ? *chosen : integers(0, experts - 1), 1}},
                    {{"experts", experts}}});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::f8_e4m3, DType::f8_e5m2})
    add(std::string(name_of(t)), {t, {13, 33}}, 2, 5);
  add("many_experts", {DType::f32, {4, 7}}, 3, 100);
  add("one_expert", {DType::f32, {9, 1}}, 1, 1);
  add("all_to_last", {DType::bf16, {300, 16}}, 1, 4, constant(3));
  add("same_expert_twice", {DType::f32, {3, 8}}, 2, 3, constant(1));
  add("no_tokens", {DType::f32, {0, 8}}, 2, 3);
  add("no_columns", {DType::f32, {3, 0}}, 2, 3);
  const auto add_scaled = [&](const std::string& name, TensorType tokens, std::int64_t k, std::int64_t experts) {
    const Dim count = tokens.dims[0];
    add(name, std::move(tokens), k, experts);
    list.back().inputs.push_back(CaseOperand{{DType::f32, {count}}, uniform(0.001, 0.02)});
  };
  add_scaled("scales", {DType::i8, {13, 48}}, 2, 5);
  add_scaled("scales_of_many_choices", {DType::f8_e4m3, {5, 33}}, 11, 30);
  add_scaled("scales_of_many_pairs", {DType::i8, {700, 16}}, 8, 40);
  add_scaled("scales_of_no_tokens", {DType::i8, {0, 16}}, 2, 3);
  const auto add_rest = [&](const std::string& name, std::int64_t tokens, std::int64_t first, std::int64_t groups,
                            Fill chosen) {
    add(name, {DType::bf16, {tokens, 24}}, 3, groups, std::move(chosen));
    list.back().attributes.set("first", first);
    list.back().attributes.set("rest", true);
  };
  add_rest("rest", 17, 0, 5, integers(0, 11));
  add_rest("rest_of_a_later_rank", 17, 8, 5, integers(-3, 15));
  add_rest("rest_alone", 5, 6, 1, integers(0, 11));
  add_rest("rest_of_many_pairs", 1500, 8, 5, integers(0, 15));
  list.push_back({"ids_i64",
                  {CaseOperand{{DType::f32, {6, 8}}}, CaseOperand{{DType::i64, {6, 2}}, integers(0, 2)}},
                  {{"experts", std::int64_t{3}}}});
  return list;
}

}  // namespace

OpSpec define() {
  constexpr DTypeSet values = dtypes::real | dtypes::fp8 | DTypeSet{DType::i8};
  return {
      .category = "Mixture of experts",
      .summary = "Sorts a copy of each token for each of its experts by expert",
      .semantics =
          "The pairs (t, j), in the order of t and then j, are sorted stably by ids[t, j]. Pair (t, j) becomes row "
          "row_of[t, j], a copy of x[t]; the rows of "
          "expert e are "
          "offsets[e] .. offsets[e + 1]. An id outside [0, experts) is an error. Each row has the scale of its token. "
          "With rest, group e is expert first + e, "
          "and the last of the E groups has "
          "all pairs of other ids: experts that others have, for which grouped_linear gives 0. The inverse is "
          "moe_unpermute.",
      .inputs = {{"x", values, "[T, H]", "tokens", Mapping::one_to_many},
                 {"ids", dtypes::index, "[T, k]", "experts of each token", Mapping::barrier},
                 {"scales", {DType::f32}, "[T]", "scale of each quantized token", Mapping::one_to_many, true}},
      .outputs = {{"rows", values, "[T * k, H]", "tokens sorted by expert"},
                  {"offsets", {DType::i32}, "[E + 1]", "where the rows of each expert begin"},
                  {"row_of", {DType::i32}, "[T, k]", "where each pair went"},
                  {"row_scales", {DType::f32}, "[T * k]", "with scales: those of the rows"}},
      .attributes = {{"experts", std::int64_t{1}, "number of experts E; with rest one more than those"},
                     {"first", std::int64_t{0}, "with rest: the first expert"},
                     {"rest", false, "whether the last group has all other ids"}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  };
}

}  // namespace cermet::moe_permute_op

namespace cermet {

std::int64_t ExpertGroups::of(std::int64_t id) const {
  if (rest) return id >= first && id - first < experts() ? id - first : experts();
  check_index("moe_permute", "1 (ids)", id, groups);
  return id;
}

}  // namespace cermet
