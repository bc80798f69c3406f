#include "op/mixture.hpp"

#include "op/activation.hpp"
#include "op/attention.hpp"
#include "op/operator.hpp"
#include "op/products.hpp"

namespace cermet {
namespace {

/// A hidden element of an expert and the absolute terms behind its rounding error.
struct Hidden {
  double value, magnitude;
};

std::vector<Hidden> hidden_of(const ReferenceCall& call, std::int64_t token, std::int64_t expert, Activation activation) {
  const Rows x(call.inputs[mixture_x]), weights(call.inputs[mixture_gate_up]);
  const DType x_type = call.inputs[mixture_x].dtype, w_type = call.inputs[mixture_gate_up].dtype;
  const std::int64_t features = call.inputs[mixture_gate_up].shape[1] / 2;
  std::vector<Hidden> hidden;
  for (std::int64_t f = 0; f < features; ++f) {
    const DotProduct gate = dot_product(x.row(token), x_type, weights.row(expert * 2 * features + f), w_type, x.length());
    const DotProduct up = dot_product(x.row(token), x_type, weights.row(expert * 2 * features + features + f), w_type, x.length());
    const double activated = activate(activation, gate.sum);
    hidden.push_back({activated * up.sum, 1.2 * gate.magnitude * std::abs(up.sum) + std::abs(activated) * up.magnitude});
  }
  return hidden;
}

/// Weights and experts of one token.
struct Choice {
  std::vector<double> weights;
  std::vector<std::int32_t> experts;
  double magnitude;  ///< factor from the error of a logit to that of a weight
};

Choice choose(const ReferenceCall& call, std::int64_t token) {
  const TensorView& router = call.inputs[mixture_router];
  const Rows x(call.inputs[mixture_x]), rows(router);
  const std::int64_t experts = router.shape[0], k = call.attributes.integer("k");
  std::vector<double> logits;
  double largest = 0, spread = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    const DotProduct dot = dot_product(x.row(token), call.inputs[mixture_x].dtype, rows.row(e), router.dtype, x.length());
    logits.push_back(dot.sum);
    largest = std::max(largest, dot.magnitude);
    spread = std::max(spread, std::abs(dot.sum));
  }
  Choice choice{std::vector<double>(static_cast<std::size_t>(k)), std::vector<std::int32_t>(static_cast<std::size_t>(k)), 1 + 2 * spread + 4 * largest};
  const TensorView inputs[] = {TensorView(logits.data(), DType::f64, {1, experts}), call.has(mixture_bias) ? call.inputs[mixture_bias] : TensorView()};
  const TensorView outputs[] = {TensorView(choice.weights.data(), DType::f64, {1, k}), TensorView(choice.experts.data(), DType::i32, {1, k})};
  definition(OpKind::topk_gating).reference({inputs, outputs, call.attributes});
  return choice;
}

}  // namespace

std::vector<AttributeSpec> gating_attributes() {
  return {{"k", std::int64_t{1}, "experts per token"},
          {"score", std::string("softmax"), "how logits become scores", {"softmax", "sigmoid"}},
          {"renormalize", true, "the weights of a token sum to scale"},
          {"groups", std::int64_t{1}, "number of groups that the experts form"},
          {"topk_groups", std::int64_t{1}, "groups that take part"},
          {"group_score", std::string("top2"), "what ranks a group", {"top2", "max"}},
          {"scale", 1.0, "factor of the weights"}};
}

Attributes gating_attributes_of(const Problem& problem) {
  Attributes attributes;
  for (const AttributeSpec& spec : gating_attributes()) attributes.set(spec.name, *problem.attributes.find(spec.name));
  return attributes;
}

void check_gating(const Problem& p, std::int64_t experts) {
  const auto& a = p.attributes;
  const std::int64_t k = a.integer("k"), groups = a.integer("groups"), chosen = a.integer("topk_groups");
  if (groups < 1 || experts % groups != 0) bad_attribute(p, "groups", fmt::format("a divisor of the {} experts", experts));
  if (chosen < 1 || chosen > groups) bad_attribute(p, "topk_groups", fmt::format("1 to {} groups", groups));
  const std::int64_t eligible = experts / groups * chosen;
  if (k < 1 || k > eligible) bad_attribute(p, "k", fmt::format("1 to {} experts", eligible));
}

std::vector<OperandSpec> mixture_operands(std::string_view x_shape) {
  return {{"x", dtypes::real, x_shape, "tokens", Mapping::many_to_many},
          {"router", dtypes::real, "[E, H]", "weight of the router", Mapping::many_to_many},
          {"gate_up", dtypes::real, "[E, 2F, H]", "first weights of the experts: F rows for the gate, then F rows that it multiplies", Mapping::many_to_many},
          {"down", dtypes::real, "[E, H, F]", "second weights of the experts", Mapping::many_to_many},
          {"bias", dtypes::real, "[E]", "added to the scores for the choice", Mapping::one_to_many, true},
          {"residual", dtypes::real, x_shape, "added to the result", Mapping::one_to_one, true}};
}

std::vector<AttributeSpec> mixture_attributes() {
  std::vector<AttributeSpec> attributes = gating_attributes();
  const auto names = activation_names();
  attributes.push_back({"activation", std::string("silu"), "of the gate", {names.begin(), names.end()}});
  attributes.push_back({"out_dtype", std::string(), "element type of y; that of x where empty"});
  return attributes;
}

TensorType infer_mixture(const Problem& p, std::int64_t parts) {
  const std::int64_t hidden = constant_dim(p, mixture_x, -1, 1, std::int64_t{1} << 31);
  expect_rank(p, mixture_router, 2);
  expect_dim(p, mixture_router, 1, hidden, "H of x");
  const std::int64_t experts = constant_dim(p, mixture_router, 0, 1, 1 << 16);
  expect_rank(p, mixture_gate_up, 3);
  const std::int64_t held = experts / parts;
  expect_dim(p, mixture_gate_up, 0, held, parts == 1 ? "experts of the router" : "experts of the router for each rank");
  expect_dim(p, mixture_gate_up, 2, hidden, "H of x");
  const std::int64_t rows = constant_dim(p, mixture_gate_up, 1, 0, std::int64_t{1} << 31);
  if (rows % 2 != 0) bad_operand(p, mixture_gate_up, "an even number of rows, gates and what they multiply", p.input(mixture_gate_up).to_string());
  expect_dims(p, mixture_down, {held, hidden, rows / 2}, "experts, H of x, and half the rows of gate_up");
  if (p.has(mixture_bias)) expect_dims(p, mixture_bias, {experts}, "experts of the router");
  if (p.has(mixture_residual)) expect_dims(p, mixture_residual, p.input(mixture_x).dims, "those of x");
  check_gating(p, experts);
  return {dtype_attribute(p, "out_dtype", p.input(mixture_x).dtype, dtypes::real), p.input(mixture_x).dims};
}

void reference_mixture(const ReferenceCall& call, const std::function<void(std::int64_t token, std::int64_t expert)>& visit) {
  const TensorView &x = call.inputs[mixture_x], &down = call.inputs[mixture_down];
  const Activation activation = activation_from_name(call.attributes.text("activation"));
  const std::int64_t hidden_size = x.shape.back(), features = down.shape[2], tokens = Rows(x).count();
  const Rows down_rows(down);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const Choice choice = choose(call, t);
    std::vector<double> sum(static_cast<std::size_t>(hidden_size)), magnitude(sum.size());
    for (std::size_t j = 0; j < choice.experts.size(); ++j) {
      const std::int64_t expert = choice.experts[j];
      visit(t, expert);
      const std::vector<Hidden> hidden = hidden_of(call, t, expert, activation);
      for (std::size_t h = 0; h < sum.size(); ++h) {
        double value = 0, terms = 0;
        for (std::int64_t f = 0; f < features; ++f) {
          const double weight = format::load_element(down_rows.row(expert * hidden_size + static_cast<std::int64_t>(h)), down.dtype, f);
          const Hidden& element = hidden[static_cast<std::size_t>(f)];
          value += weight * element.value;
          terms += std::abs(weight) * (std::abs(element.value) + element.magnitude);
        }
        sum[h] += choice.weights[j] * value;
        magnitude[h] += std::abs(choice.weights[j]) * (terms + std::abs(value) * choice.magnitude);
      }
    }
    for (std::size_t h = 0; h < sum.size(); ++h) {
      const std::int64_t index = t * hidden_size + static_cast<std::int64_t>(h);
      const double residual = call.has(mixture_residual) ? load(call.inputs[mixture_residual], index) : 0;
      store(call.outputs[0], index, sum[h] + residual);
      note_magnitude(call, 0, index, magnitude[h] + std::abs(residual));
    }
  }
}

double mixture_operations(const Problem& p) {
  const auto tokens = static_cast<double>(max_rows(p, mixture_x)), hidden = static_cast<double>(p.size(mixture_x, -1));
  const auto features = static_cast<double>(p.size(mixture_down, 2)), experts = static_cast<double>(p.size(mixture_router, 0));
  return 2 * tokens * hidden * (experts + 3 * features * static_cast<double>(p.attributes.integer("k")));
}

double mixture_bytes(const Problem& p) {
  const std::int64_t pairs = max_rows(p, mixture_x) * p.attributes.integer("k"), experts = p.size(mixture_router, 0);
  const double read = static_cast<double>(std::min(pairs, experts)) / static_cast<double>(experts);  // experts that can have tokens
  double bytes = 0;
  for (std::size_t i = 0; i < p.inputs.size(); ++i)
    if (p.has(i)) bytes += static_cast<double>(p.input(i).bytes().value(p.maximum)) * (i == mixture_gate_up || i == mixture_down ? read : 1);
  for (const TensorType& output : p.outputs) bytes += static_cast<double>(output.bytes().value(p.maximum));
  return bytes;
}

double mixture_rounding_depth(const Problem& p) {
  return static_cast<double>(p.size(mixture_x, -1) + p.size(mixture_down, 2) + 2 * p.size(mixture_router, 0) + 2 * p.attributes.integer("k")) + 32;
}

}  // namespace cermet
