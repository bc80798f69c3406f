#include "op/activation.hpp"
#include "op/operands.hpp"
#include "op/products.hpp"
#include "op/schema/operator.hpp"

namespace cermet::dual_linear_op {

namespace in = op::dual_linear;
namespace {

std::vector<TensorType> infer(const Problem& p) {
  expect_min_rank(p, in::x, 1);
  const Dim n = check_weight(p, 0, 1, 3);
  expect_dims(p, in::w_up, p.input(in::w_gate).dims, "those of w_gate");
  expect_dtype(p, in::w_up, p.input(in::w_gate).dtype, "that of w_gate");
  if (p.has(in::bias_up)) expect_dims(p, in::bias_up, {n}, "N of w_up");
  return {{dtype_attribute(p, "out_dtype", p.input(in::x).dtype, dtypes::real), with_last(p.input(in::x).dims, n)}};
}

void reference(const ReferenceCall& call) {
  const TensorView &w_gate = call.inputs[in::w_gate], &w_up = call.inputs[in::w_up];
  const Activation activation = activation_from_name(call.attributes.text("activation"));
  const Rows x(call.inputs[in::x]), gates(w_gate), ups(w_up);
  const std::int64_t columns = w_gate.shape[0], length = w_gate.shape[1];
  for (std::int64_t r = 0; r < x.count(); ++r)
    for (std::int64_t n = 0; n < columns; ++n) {
      const DotProduct gate = dot_product(x.row(r), call.inputs[in::x].dtype, gates.row(n), w_gate.dtype, length);
      const DotProduct up = dot_product(x.row(r), call.inputs[in::x].dtype, ups.row(n), w_up.dtype, length);
      const double gate_bias = call.has(in::bias_gate) ? load(call.inputs[in::bias_gate], n) : 0,
                   up_bias = call.has(in::bias_up) ? load(call.inputs[in::bias_up], n) : 0;
      const double g = gate.sum + gate_bias, u = up.sum + up_bias, activated = activate(activation, g);
      store(call.outputs[0], r * columns + n, activated * u);
      // An error of the gate reaches the result through the activation's slope, which none of them lets exceed 1.2.
      const double magnitude = 1.2 * (gate.magnitude + std::abs(gate_bias)) * std::abs(u) +
                               std::abs(activated) * (up.magnitude + std::abs(up_bias));
      note_magnitude(call, 0, r * columns + n, magnitude);
    }
}

CaseOperand weight(DType t, std::int64_t n, std::int64_t k) { return {{t, {n, k}}, normal(0.2), 0, true}; }

std::vector<Case> cases() {
  constexpr DType real[] = {DType::f32, DType::bf16, DType::f16};
  std::vector<Case> list;
  for (const DType x : real)
    for (const DType w : real)
      for (const std::int64_t m : {1, 17})
        list.push_back({fmt::format("{}_{}_m{}", name_of(x), name_of(w), m),
                        {CaseOperand{{x, {m, 67}}}, weight(w, 41, 67), weight(w, 41, 67)}});
  for (const std::string_view activation : activation_names())
    for (const std::int64_t m : {2, 15})
      list.push_back({fmt::format("{}_{}", activation, m),
                      {CaseOperand{{DType::bf16, {m, 96}}}, weight(DType::bf16, 33, 96), weight(DType::bf16, 33, 96),
                       CaseOperand{{DType::bf16, {33}}, normal(4)}, CaseOperand{{DType::f32, {33}}}},
                      {{"activation", std::string(activation)}, {"out_dtype", "f32"}}});
  list.push_back({"gate_bias",
                  {CaseOperand{{DType::f32, {3, 16}}}, weight(DType::f32, 32, 16), weight(DType::f32, 32, 16),
                   CaseOperand{{DType::f16, {32}}}}});
  list.push_back(
      {"not_constant",
       {CaseOperand{{DType::f32, {5, 33}}}, CaseOperand{{DType::bf16, {9, 33}}}, CaseOperand{{DType::bf16, {9, 33}}}}});
  list.push_back({"to_f16",
                  {CaseOperand{{DType::bf16, {2, 2, 40}}}, weight(DType::bf16, 33, 40), weight(DType::bf16, 33, 40)},
                  {{"out_dtype", "f16"}}});
  list.push_back({"strided",
                  {CaseOperand{{DType::bf16, {17, 33}}, normal(), 5},
                   {{{DType::bf16, {35, 33}}, normal(), 3, true}},
                   {{{DType::bf16, {35, 33}}, normal(), 3, true}}}});
  list.push_back({"extreme_gates",
                  {CaseOperand{{DType::f32, {1, 1}}, constant(1)},
                   {{{DType::f32, {8, 1}}, values({-1e30, -200, -89, -20, 0, 20, 200, 1e30}), 0, true}},
                   weight(DType::f32, 8, 1)}});
  for (const DType x : {DType::f32, DType::bf16})
    list.push_back({fmt::format("tiles_{}", name_of(x)),
                    {CaseOperand{{x, {70, 192}}}, weight(DType::bf16, 136, 192), weight(DType::bf16, 136, 192)}});
  list.push_back(
      {"few_rows",
       {CaseOperand{{DType::bf16, {9, 192}}}, weight(DType::bf16, 136, 192), weight(DType::bf16, 136, 192)}});
  list.push_back(
      {"no_rows", {CaseOperand{{DType::f32, {0, 16}}}, weight(DType::f32, 8, 16), weight(DType::f32, 8, 16)}});
  list.push_back(
      {"no_columns", {CaseOperand{{DType::f32, {2, 16}}}, weight(DType::f32, 0, 16), weight(DType::f32, 0, 16)}});
  list.push_back({"nan_row",
                  {CaseOperand{{DType::bf16, {2, 4}}, values({1, NAN, 3, 4, 5, 6, 7, 8})}, weight(DType::bf16, 8, 4),
                   weight(DType::bf16, 8, 4)}});
  return list;
}

}  // namespace

OpSpec define() {
  return {
      .category = "Linear algebra",
      .summary = "Two products of the same rows, one activated and multiplied with the other",
      .semantics =
          "y[.., n] = activation(sum over k of x[.., k] * w_gate[n, k] + bias_gate[n]) * (sum over k of x[.., k] * "
          "w_up[n, k] + bias_up[n]). Element types may "
          "be mixed freely, but both weights have one type. Sums, activation and product are in float32; one rounding "
          "to out_dtype at the end.",
      .inputs = {{"x", dtypes::real, "[.., K]", "rows", Mapping::many_to_many},
                 {"w_gate", dtypes::real, "[N, K]", "weight whose product is activated", Mapping::many_to_many},
                 {"w_up", dtypes::real, "[N, K]", "weight whose product is multiplied in", Mapping::many_to_many},
                 {"bias_gate", dtypes::real, "[N]", "added before the activation", Mapping::one_to_one, true},
                 {"bias_up", dtypes::real, "[N]", "added to the second product", Mapping::one_to_one, true}},
      .outputs = {{"y", dtypes::real, "[.., N]", "activated gate times up"}},
      .attributes = {{"activation",
                      std::string("silu"),
                      "function of the gate",
                      {activation_names().begin(), activation_names().end()}},
                     {"out_dtype", std::string(), "element type of y; that of x where empty"}},
      .infer = infer,
      .reference = reference,
      .operations =
          [](const Problem& p) {
            return 4.0 * static_cast<double>(max_rows(p, in::x) * p.size(0, -1)) * static_cast<double>(p.size(1, 0));
          },
      .rounding_depth = [](const Problem& p) { return static_cast<double>(p.size(1, 1)) + 16; },
      .cases = cases,
  };
}

}  // namespace cermet::dual_linear_op
