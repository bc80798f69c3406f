#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::expert_load_op {
namespace {

std::vector<TensorType> infer(const Problem& p) {
  const std::int64_t experts = p.attributes.integer("experts");
  if (experts < 1 || experts > 1 << 16) bad_attribute(p, "experts", "1 to 65536");
  return {{DType::i32, {experts}}};
}

void reference(const ReferenceCall& call) {
  const std::int64_t experts = call.attributes.integer("experts");
  for (std::int64_t e = 0; e < experts; ++e) {
    std::int64_t count = 0;
    for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
      const std::int64_t id = load_index(call.inputs[0], i);
      if (id >= 0) check_index("expert_load", "0 (ids)", id, experts);
      if (id == e) ++count;
    }
    store(call.outputs[0], e, static_cast<double>(count));
  }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  for (DType t : {DType::i32, DType::i64})
    list.push_back(
        {std::string(name_of(t)), {CaseOperand{{t, {50, 4}}, integers(0, 15), 1}}, {{"experts", std::int64_t{16}}}});
  list.push_back({"one_expert", {CaseOperand{{DType::i32, {7}}, constant(0)}}, {{"experts", std::int64_t{1}}}});
  list.push_back(
      {"idle_experts", {CaseOperand{{DType::i32, {5, 2}}, integers(3, 4)}}, {{"experts", std::int64_t{100}}}});
  for (DType t : {DType::i32, DType::i64})
    list.push_back({fmt::format("padding_{}", name_of(t)),
                    {CaseOperand{{t, {40, 2}}, integers(-3, 7), 1}},
                    {{"experts", std::int64_t{8}}}});
  list.push_back({"no_tokens", {CaseOperand{{DType::i32, {0, 2}}}}, {{"experts", std::int64_t{3}}}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Mixture of experts",
      .summary = "Tokens that each expert gets, for balance",
      .semantics =
          "counts[e] = number of elements of ids that equal e. Negative ids are padding, or experts that others have; "
          "an "
          "id from experts on is an error.",
      .inputs = {{"ids", dtypes::index, "[..]", "experts of the tokens, as topk_gating gives them",
                  Mapping::many_to_many}},
      .outputs = {{"counts", {DType::i32}, "[E]", "tokens per expert"}},
      .attributes = {{"experts", std::int64_t{1}, "number of experts E"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return static_cast<double>(p.input(0).elements().value(p.maximum)); },
      .cases = cases,
  };
}

}  // namespace cermet::expert_load_op
