#include "op/operands.hpp"
#include "op/schema/infer.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"

namespace cermet::merge_attention_states_op {
namespace {

using enum op::merge_attention_states::Operand;

std::vector<TensorType> infer(const Problem& p) {
  expect_rank(p, o1, 3);
  expect_dims(p, o2, p.input(o1).dims, "those of o1");
  for (const std::size_t lse : {lse1, lse2})
    expect_dims(p, lse, {dim_of(p, o1, 1), dim_of(p, o1, 0)}, "heads and tokens of o1");
  return {{dtype_attribute(p, "out_dtype", p.input(o1).dtype, dtypes::real), p.input(o1).dims}, p.input(lse1)};
}

void reference(const ReferenceCall& call) {
  const TensorView& o = call.outputs[0];
  const std::int64_t tokens = o.shape[0], heads = o.shape[1], size = o.shape[2];
  for (std::int64_t t = 0; t < tokens; ++t)
    for (std::int64_t head = 0; head < heads; ++head) {
      const auto logarithm = [&](std::size_t lse) {  // +inf is also how a state without keys is marked
        const double given = load(call.inputs[lse], head * tokens + t);
        return given == INFINITY ? -INFINITY : given;
      };
      const double a = logarithm(lse1), b = logarithm(lse2);
      const bool empty = a == -INFINITY && b == -INFINITY;
      const double top = b > a || std::isnan(b) ? b : a;  // NaN where either is
      const double wa = empty ? 0 : std::exp(a - top), wb = empty ? 0 : std::exp(b - top),
                   spread = 1 + (std::isfinite(a - b) ? std::abs(a - b) : 0);
      for (std::int64_t d = 0; d < size; ++d) {
        const std::int64_t i = (t * heads + head) * size + d;
        // A state without weight is skipped, not multiplied: it may hold anything.
        const double x = wa == 0 ? 0 : wa * load(call.inputs[o1], i), y = wb == 0 ? 0 : wb * load(call.inputs[o2], i);
        store(o, i, empty ? 0 : (x + y) / (wa + wb));
        if (!empty) note_magnitude(call, 0, i, (std::abs(x) + std::abs(y)) / (wa + wb) * spread);
      }
      const double lse = empty ? -INFINITY : top + std::log(wa + wb);
      store(call.outputs[1], head * tokens + t, lse);
      note_magnitude(call, 1, head * tokens + t, std::abs(top) + spread);
    }
}

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&](std::string name, DType t, DType t2, Dims dims, Attributes attributes = {},
                       Fill first = normal(3), Fill second = normal(3)) {
    const Dims lse{dims[1], dims[0]};
    list.push_back({std::move(name),
                    {CaseOperand{{t, dims}, normal(), 3}, CaseOperand{{DType::f32, lse}, std::move(first), 1},
                     CaseOperand{{t2, dims}, normal(), 1}, CaseOperand{{DType::f32, lse}, std::move(second)}},
                    std::move(attributes)});
  };
  for (DType t : {DType::f32, DType::bf16, DType::f16}) {
    add(fmt::format("{}", name_of(t)), t, t, {5, 3, 33});
    add(fmt::format("f32_{}_out", name_of(t)), DType::f32, DType::bf16, {2, 4, 64},
        {{"out_dtype", std::string(name_of(t))}});
  }
  add("one_element", DType::f32, DType::f32, {1, 1, 1});
  add("no_tokens", DType::f32, DType::f32, {0, 2, 8});
  add("far_apart", DType::f32, DType::f32, {6, 2, 8}, {}, normal(80), normal(80));
  add("empty_states", DType::f32, DType::f32, {4, 2, 8}, {}, values({-INFINITY, 1, -INFINITY}),
      values({-INFINITY, -INFINITY, 2}));
  add("empty_states_of_plus_infinity", DType::f32, DType::f32, {5, 2, 8}, {},
      values({INFINITY, 1, -INFINITY, INFINITY, INFINITY}), values({INFINITY, INFINITY, 2, -INFINITY, 3}));
  add("empty_state_holds_nan", DType::f32, DType::f32, {4, 2, 8}, {}, values({1}), values({-INFINITY}));
  list.back().inputs[o2]->fill = constant(NAN);
  add("nan_lse", DType::f32, DType::f32, {2, 2, 8}, {}, values({NAN, 1, 2, 3}), values({1, NAN, 2, 3}));
  add("nan_output", DType::f32, DType::f32, {2, 2, 8});
  list.back().inputs[o1]->fill = values({1, 2, NAN, 4, 5, 6, 7});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Attention and cache",
      .summary = "Joins attention over two sets of keys into attention over both",
      .semantics =
          "w1 = exp(lse1 - max), w2 = exp(lse2 - max) with max the larger of the two; o = (w1 o1 + w2 o2) / (w1 + w2); "
          "lse = max + log(w1 + w2), float32, o "
          "rounded once. "
          "lse = -inf, or +inf, as some kernels write it, marks a state without keys: its o is not read into the "
          "result; "
          "two such states give o = 0 and lse = -inf. "
          "States of queries with sinks count the sink twice unless only one of them has it.",
      .inputs = {{"o1", dtypes::real, "[T, Hq, Dv]", "attention over the first keys", Mapping::one_to_one},
                 {"lse1", {DType::f32}, "[Hq, T]", "log of its denominators", Mapping::one_to_many},
                 {"o2", dtypes::real, "[T, Hq, Dv]", "attention over the second keys", Mapping::one_to_one},
                 {"lse2", {DType::f32}, "[Hq, T]", "log of its denominators", Mapping::one_to_many}},
      .outputs = {{"o", dtypes::real, "[T, Hq, Dv]", "attention over both"},
                  {"lse", {DType::f32}, "[Hq, T]", "log of the denominators over both"}},
      .attributes = {{"out_dtype", std::string(), "element type of o; that of o1 where empty"}},
      .infer = infer,
      .reference = reference,
      .operations = [](const Problem& p) { return 4.0 * static_cast<double>(p.input(o1).elements().value(p.maximum)); },
      .rounding_depth = [](const Problem&) { return 16.0; },
      .cases = cases,
      .commutative = true,
  };
}

}  // namespace cermet::merge_attention_states_op
