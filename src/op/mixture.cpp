#include "op/mixture.hpp"

#include "op/activation.hpp"
#include "op/attention.hpp"
#include "op/products.hpp"
#include "op/quantization.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

/// A hidden element of an expert and the absolute terms behind its rounding error.
struct Hidden {
  double value, magnitude;
};

/// How rows become those of a quantized weight: with a scale that is given, else with one from their largest value.
/// Real types only round.
class RowQuantizer {
 public:
  RowQuantizer(const ReferenceCall& call, DType type, std::size_t scale) : format_{type, 448} {
    if (type == DType::i8) format_.limit = call.attributes.text("range") == "127.5" ? 127.5f : 127.0f;
    if (dtypes::real.contains(type)) given_ = 1;
    if (call.has(scale)) given_ = static_cast<float>(load(call.inputs[scale], 0));
  }

  bool scale_is_given() const { return given_.has_value(); }
  QuantizationParams scale_of(std::span<const float> values) const {
    return given_ ? QuantizationParams{*given_, 0} : quantization_params_of(values, format_);
  }
  /// The quantized value of v / scale, as it is after the product's scaling.
  double rounded(double scaled, QuantizationParams scale) const {
    return format::rounded_to(format_.dtype, scaled) * scale.scale;
  }
  double operator()(float value, QuantizationParams scale) const {
    return rounded(given_ ? static_value(value, scale.scale, {}, true) : scaled_value(value, scale), scale);
  }

 private:
  QuantizedFormat format_;
  std::optional<float> given_;
};

/// A token's row as the experts multiply it.
struct ExpertRow {
  const std::byte* data;
  DType dtype;
  std::vector<double> quantized;  ///< what `data` is then
};

ExpertRow expert_row(const ReferenceCall& call, std::int64_t token) {
  const TensorView& x = call.inputs[mixture_x];
  const Rows rows(x);
  if (!call.has(mixture_gate_up_scale)) return {rows.row(token), x.dtype, {}};
  std::vector<float> values;
  for (std::int64_t i = 0; i < rows.length(); ++i)
    values.push_back(static_cast<float>(format::load_element(rows.row(token), x.dtype, i)));
  const RowQuantizer quantizer(call, call.inputs[mixture_gate_up].dtype, mixture_x_scale);
  const QuantizationParams scale = quantizer.scale_of(values);
  ExpertRow row{nullptr, DType::f64, {}};
  for (const float value : values) row.quantized.push_back(quantizer(value, scale));
  row.data = reinterpret_cast<const std::byte*>(row.quantized.data());
  return row;
}

/// Rounds hidden elements to float32 and then to what they are multiplied as. A value whose error reaches over the
/// middle between two values of the type may become either.
void quantize_hidden(const ReferenceCall& call, std::vector<Hidden>& hidden) {
  const double unit = 0x1p-24 * mixture_depth_of(call.inputs[mixture_x].shape.back(), std::ssize(hidden),
                                                 call.inputs[mixture_router].shape[0], call.attributes.integer("k"));
  std::vector<float> values;
  for (const Hidden& element : hidden) values.push_back(static_cast<float>(element.value));
  const RowQuantizer quantizer(call, hidden_type(call.attributes, call.inputs[mixture_down].dtype),
                               mixture_hidden_scale);
  const QuantizationParams scale = quantizer.scale_of(values);
  double largest = 0, error_of_largest = 0;
  for (const Hidden& element : hidden) {
    largest = std::max(largest, std::abs(element.value));
    error_of_largest = std::max(error_of_largest, element.magnitude);
  }
  const double relative = quantizer.scale_is_given() || largest == 0 ? 0 : error_of_largest / largest;  // of the scale
  for (std::size_t f = 0; f < hidden.size(); ++f) {
    const double value = quantizer(values[f], scale);
    double either = 0;
    if (scale.scale > 0) {
      const double scaled = values[f] / static_cast<double>(scale.scale),
                   error = unit * (hidden[f].magnitude / scale.scale + std::abs(scaled) * (1 + relative));
      either = quantizer.rounded(scaled + error, scale) - quantizer.rounded(scaled - error, scale);
    }
    hidden[f] = {value, std::abs(value) * (1 + relative) + either / unit};
  }
}

std::vector<Hidden> hidden_of(const ReferenceCall& call, const ExpertRow& x, std::int64_t expert,
                              Activation activation) {
  const Rows weights(call.inputs[mixture_gate_up]);
  const DType w_type = call.inputs[mixture_gate_up].dtype;
  const std::int64_t features = call.inputs[mixture_gate_up].shape[1] / 2;
  const auto product = [&](std::int64_t row) {
    DotProduct dot = dot_product(x.data, x.dtype, weights.row(row), w_type, weights.length());
    if (!call.has(mixture_gate_up_scale)) return dot;
    const double scale = load(call.inputs[mixture_gate_up_scale], row);
    return DotProduct{dot.sum * scale, dot.magnitude * std::abs(scale)};
  };
  std::vector<Hidden> hidden;
  for (std::int64_t f = 0; f < features; ++f) {
    const DotProduct gate = product(expert * 2 * features + f), up = product(expert * 2 * features + features + f);
    const double activated = activate(activation, gate.sum);
    hidden.push_back(
        {activated * up.sum, 1.2 * gate.magnitude * std::abs(up.sum) + std::abs(activated) * up.magnitude});
  }
  if (hidden_type(call.attributes, call.inputs[mixture_down].dtype) != DType::f32) quantize_hidden(call, hidden);
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
    const DotProduct dot =
        dot_product(x.row(token), call.inputs[mixture_x].dtype, rows.row(e), router.dtype, x.length());
    logits.push_back(dot.sum);
    largest = std::max(largest, dot.magnitude);
    spread = std::max(spread, std::abs(dot.sum));
  }
  Choice choice{std::vector<double>(static_cast<std::size_t>(k)),
                std::vector<std::int32_t>(static_cast<std::size_t>(k)), 1 + 2 * spread + 4 * largest};
  const TensorView inputs[] = {TensorView(logits.data(), DType::f64, {1, experts}),
                               call.has(mixture_bias) ? call.inputs[mixture_bias] : TensorView()};
  const TensorView outputs[] = {TensorView(choice.weights.data(), DType::f64, {1, k}),
                                TensorView(choice.experts.data(), DType::i32, {1, k})};
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
  if (groups < 1 || experts % groups != 0)
    bad_attribute(p, "groups", fmt::format("a divisor of the {} experts", experts));
  if (chosen < 1 || chosen > groups) bad_attribute(p, "topk_groups", fmt::format("1 to {} groups", groups));
  const std::int64_t eligible = experts / groups * chosen;
  if (k < 1 || k > eligible) bad_attribute(p, "k", fmt::format("1 to {} experts", eligible));
}

std::vector<OperandSpec> mixture_operands(std::string_view x_shape) {
  return {{"x", dtypes::real, x_shape, "tokens", Mapping::many_to_many},
          {"router", dtypes::real, "[E, H]", "weight of the router", Mapping::many_to_many},
          {"gate_up", dtypes::real, "[E, 2F, H]",
           "first weights of the experts: F rows for the gate, then F rows that it multiplies", Mapping::many_to_many},
          {"down", dtypes::real, "[E, H, F]", "second weights of the experts", Mapping::many_to_many},
          {"bias", dtypes::real, "[E]", "added to the scores for the choice", Mapping::one_to_many, true},
          {"residual", dtypes::real, x_shape, "added to the result", Mapping::one_to_one, true}};
}

std::vector<OperandSpec> quantized_mixture_operands(std::string_view x_shape) {
  std::vector<OperandSpec> operands = mixture_operands(x_shape);
  operands[mixture_gate_up].dtypes = operands[mixture_down].dtypes = dtypes::real | DTypeSet{DType::i8, DType::f8_e4m3};
  const DTypeSet f32{DType::f32};
  operands.push_back(
      {"gate_up_scale", f32, "[E, 2F]", "of the rows of quantized first weights", Mapping::one_to_many, true});
  operands.push_back(
      {"down_scale", f32, "[E, H]", "of the rows of quantized second weights", Mapping::one_to_many, true});
  operands.push_back({"x_scale", f32, "[]",
                      "static scale of x before quantized first weights; dynamic quantization without it",
                      Mapping::one_to_many, true});
  operands.push_back(
      {"hidden_scale", f32, "[]", "the same of what quantized second weights multiply", Mapping::one_to_many, true});
  return operands;
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
  if (rows % 2 != 0)
    bad_operand(p, mixture_gate_up, "an even number of rows, gates and what they multiply",
                p.input(mixture_gate_up).to_string());
  expect_dims(p, mixture_down, {held, hidden, rows / 2}, "experts, H of x, and half the rows of gate_up");
  if (p.has(mixture_bias)) expect_dims(p, mixture_bias, {experts}, "experts of the router");
  if (p.has(mixture_residual)) expect_dims(p, mixture_residual, p.input(mixture_x).dims, "those of x");
  check_gating(p, experts);
  return {dtype_attribute(p, "out_dtype", p.input(mixture_x).dtype, dtypes::real), p.input(mixture_x).dims};
}

DType hidden_type(const Attributes& attributes, DType down) {
  if (!dtypes::real.contains(down)) return down;
  const AttributeValue* const name = attributes.find("hidden_dtype");
  return name && !std::get<std::string>(*name).empty() ? *dtype_from_name(std::get<std::string>(*name)) : DType::f32;
}

void check_mixture_scales(const Problem& p) {
  dtype_attribute(p, "hidden_dtype", DType::f32, dtypes::real);
  if (is_quantized_weight(p, mixture_down) && !p.attributes.text("hidden_dtype").empty())
    bad_attribute(p, "hidden_dtype", "\"\" beside a quantized down");
  const auto check = [&](std::size_t weight, std::size_t scale, std::size_t input_scale, const Dims& dims) {
    const bool quantized = is_quantized_weight(p, weight);
    for (const std::size_t operand : {scale, input_scale})
      if (p.has(operand) && !quantized)
        bad_operand(p, operand, fmt::format("none, because {} is not quantized", p.input_name(weight)),
                    p.input(operand).to_string());
    if (!quantized) return;
    if (!p.has(scale))
      bad_operand(p, scale, fmt::format("a number for each row of the quantized {}", p.input_name(weight)), "none");
    expect_dims(p, scale, dims, fmt::format("the rows of {}", p.input_name(weight)));
    if (p.has(input_scale)) expect_dims(p, input_scale, {}, "none: one number");
  };
  const Dim held = dim_of(p, mixture_gate_up, 0);
  check(mixture_gate_up, mixture_gate_up_scale, mixture_x_scale, {held, dim_of(p, mixture_gate_up, 1)});
  check(mixture_down, mixture_down_scale, mixture_hidden_scale, {held, dim_of(p, mixture_down, 1)});
}

void reference_mixture(const ReferenceCall& call,
                       const std::function<void(std::int64_t token, std::int64_t expert)>& visit) {
  const TensorView &x = call.inputs[mixture_x], &down = call.inputs[mixture_down];
  const Activation activation = activation_from_name(call.attributes.text("activation"));
  const std::int64_t hidden_size = x.shape.back(), features = down.shape[2], tokens = Rows(x).count();
  const Rows down_rows(down);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const Choice choice = choose(call, t);
    const ExpertRow row = expert_row(call, t);
    std::vector<double> sum(static_cast<std::size_t>(hidden_size)), magnitude(sum.size());
    for (std::size_t j = 0; j < choice.experts.size(); ++j) {
      const std::int64_t expert = choice.experts[j];
      visit(t, expert);
      const std::vector<Hidden> hidden = hidden_of(call, row, expert, activation);
      for (std::size_t h = 0; h < sum.size(); ++h) {
        double value = 0, terms = 0;
        const std::int64_t row_of_down = expert * hidden_size + static_cast<std::int64_t>(h);
        const double scale = call.has(mixture_down_scale) ? load(call.inputs[mixture_down_scale], row_of_down) : 1;
        for (std::int64_t f = 0; f < features; ++f) {
          const double weight = scale * format::load_element(down_rows.row(row_of_down), down.dtype, f);
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
  const auto features = static_cast<double>(p.size(mixture_down, 2)),
             experts = static_cast<double>(p.size(mixture_router, 0));
  return 2 * tokens * hidden * (experts + 3 * features * static_cast<double>(p.attributes.integer("k")));
}

double mixture_bytes(const Problem& p) {
  const std::int64_t pairs = max_rows(p, mixture_x) * p.attributes.integer("k"), experts = p.size(mixture_router, 0);
  const double read =
      static_cast<double>(std::min(pairs, experts)) / static_cast<double>(experts);  // experts that can have tokens
  double bytes = 0;
  for (std::size_t i = 0; i < p.inputs.size(); ++i)
    if (p.has(i))
      bytes += static_cast<double>(p.input(i).bytes().value(p.maximum)) *
               (i == mixture_gate_up || i == mixture_down ? read : 1);
  for (const TensorType& output : p.outputs) bytes += static_cast<double>(output.bytes().value(p.maximum));
  return bytes;
}

double mixture_depth_of(std::int64_t hidden, std::int64_t features, std::int64_t experts, std::int64_t k) {
  return static_cast<double>(hidden + features + 2 * experts + 2 * k) + 32;
}
double mixture_rounding_depth(const Problem& p) {
  return mixture_depth_of(p.size(mixture_x, -1), p.size(mixture_down, 2), p.size(mixture_router, 0),
                          p.attributes.integer("k"));
}

}  // namespace cermet
