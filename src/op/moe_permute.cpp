#include "op/attention.hpp"
#include "op/infer.hpp"
#include "op/operator.hpp"
#include "op/reference.hpp"

namespace cermet::moe_permute_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, 0, 2);
  expect_rank(p, 1, 2);
  expect_dim(p, 1, 0, dim_of(p, 0, 0), "tokens of x");
  const std::int64_t k = constant_dim(p, 1, 1, 1, 1 << 16), experts = p.attributes.integer("experts");
  if (experts < 1 || experts > 1 << 16) bad_attribute(p, "experts", "1 to 65536");
  const Dim tokens = dim_of(p, 0, 0);
  return {{p.input(0).dtype, {tokens * k, dim_of(p, 0, 1)}}, {DType::i32, {experts + 1}}, {DType::i32, {tokens, k}}};
}

void reference(const ReferenceCall& call) {
  const TensorView &x = call.inputs[0], &ids = call.inputs[1];
  const std::int64_t experts = call.attributes.integer("experts"), hidden = x.shape[1], k = ids.shape[1];
  std::int64_t next = 0;
  store(call.outputs[1], 0, 0);
  for (std::int64_t pair = 0; pair < ids.elements(); ++pair) check_index("moe_permute", "1 (ids)", load_index(ids, pair), experts);
  for (std::int64_t e = 0; e < experts; ++e) {
    for (std::int64_t pair = 0; pair < ids.elements(); ++pair) {
      if (load_index(ids, pair) != e) continue;
      for (std::int64_t h = 0; h < hidden; ++h) store(call.outputs[0], next * hidden + h, load(x, pair / k * hidden + h));
      store(call.outputs[2], pair, static_cast<double>(next++));
    }
    store(call.outputs[1], e + 1, static_cast<double>(next));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, TensorType x, std::int64_t k, std::int64_t experts, std::optional<Fill> ids = {}) {
    const Dim tokens = x.dims[0];
    list.push_back({std::move(name),
                    {CaseOperand{std::move(x), normal(20), 3}, CaseOperand{{DType::i32, {tokens, k}}, ids ? *ids : integers(0, experts - 1), 1}},
                    {{"experts", experts}}});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16, DType::i8, DType::f8_e4m3, DType::f8_e5m2}) add(std::string(name_of(t)), {t, {13, 33}}, 2, 5);
  add("many_experts", {DType::f32, {4, 7}}, 3, 100);
  add("one_expert", {DType::f32, {9, 1}}, 1, 1);
  add("all_to_last", {DType::bf16, {300, 16}}, 1, 4, constant(3));
  add("same_expert_twice", {DType::f32, {3, 8}}, 2, 3, constant(1));
  add("no_tokens", {DType::f32, {0, 8}}, 2, 3);
  add("no_columns", {DType::f32, {3, 0}}, 2, 3);
  list.push_back({"ids_i64", {CaseOperand{{DType::f32, {6, 8}}}, CaseOperand{{DType::i64, {6, 2}}, integers(0, 2)}}, {{"experts", std::int64_t{3}}}});
  return list;
}

}  // namespace

OpSpec define() {
  constexpr DTypeSet rows = dtypes::real | dtypes::fp8 | DTypeSet{DType::i8};
  return {
      .category = "Mixture of experts",
      .summary = "Sorts a copy of each token for each of its experts by expert",
      .semantics =
          "The pairs (t, j), in the order of t and then j, are sorted stably by ids[t, j]. Pair (t, j) becomes row row_of[t, j], a copy of x[t]; the rows of "
          "expert e are "
          "offsets[e] .. offsets[e + 1]. An id outside [0, experts) is an error. The inverse is moe_unpermute.",
      .inputs = {{"x", rows, "[T, H]", "tokens", Mapping::one_to_many}, {"ids", dtypes::index, "[T, k]", "experts of each token", Mapping::barrier}},
      .outputs = {{"rows", rows, "[T * k, H]", "tokens sorted by expert"},
                  {"offsets", {DType::i32}, "[E + 1]", "where the rows of each expert begin"},
                  {"row_of", {DType::i32}, "[T, k]", "where each pair went"}},
      .attributes = {{"experts", std::int64_t{1}, "number of experts E"}},
      .infer = infer,
      .reference = reference,
      .cases = cases,
  };
}

}  // namespace cermet::moe_permute_op
