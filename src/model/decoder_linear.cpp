// Linear modules in the graph: what a scheme makes of weight and input.
#include "base/error.hpp"
#include "model/decoder_builder.hpp"

namespace cermet {
namespace {

DType code_type(const LinearScheme& scheme) {
  return scheme.weight == LinearScheme::Weight::fp8 ? DType::f8_e4m3 : DType::i8;
}

bool is_quantized(const LinearScheme& scheme) { return scheme.input != LinearScheme::Input::real; }

/// "X.weight" of every module X.
std::vector<std::vector<std::string>> tensors_of(const Linear& linear, const char* tensor) {
  std::vector<std::vector<std::string>> names = linear.modules;
  for (std::vector<std::string>& slice : names)
    for (std::string& name : slice) name += tensor;
  return names;
}

}  // namespace

/// What the GEMM computes with: weight-only quantization is dequantized before it. All modules of a linear must agree.
LinearScheme DecoderBuilder::scheme_of(const Linear& linear) const {
  const auto effective = [&](const std::string& module) {
    const LinearScheme scheme = quantization_.of(module);
    return is_quantized(scheme) ? scheme : LinearScheme{};
  };
  const std::string& first = linear.modules.front().front();
  const LinearScheme scheme = effective(first);
  for (const std::vector<std::string>& slice : linear.modules)
    for (const std::string& module : slice)
      if (effective(module) != scheme)
        fail(Status::unsupported,
             "{}: expected {}, the scheme of {}, whose input it shares or whose product it is part of; found {}",
             module, name_of(scheme), first, name_of(quantization_.of(module)));
  return scheme;
}

/// Element type of a linear's unquantized input.
DType DecoderBuilder::values_for(const LinearScheme& scheme) const {
  return taps_ || is_quantized(scheme) ? DType::f32 : types_.operands;
}

Dims DecoderBuilder::weight_dims(const Linear& linear) const {
  Dims dims{linear.rows, linear.columns};
  if (linear.of_experts) dims.insert(dims.begin(), static_cast<std::int64_t>(linear.modules.size()));
  return dims;
}

ValueId DecoderBuilder::weight(const Linear& linear) {
  const LinearScheme scheme = scheme_of(linear);
  const bool on_load = is_quantized(scheme) && !quantization_.stored();
  const WeightSource::Form form = on_load ? WeightSource::Form::codes
                                  : quantization_.dense.contains(linear.modules.front().front())
                                      ? WeightSource::Form::rounded
                                      : WeightSource::Form::plain;
  return constant(linear.name + ".weight",
                  {is_quantized(scheme) ? code_type(scheme) : types_.weights, weight_dims(linear)},
                  {tensors_of(linear, ".weight"), form, code_type(quantization_.of(linear.modules.front().front()))});
}

/// Per-row scales of a quantized weight.
ValueId DecoderBuilder::weight_scale(const Linear& linear) {
  Dims dims = weight_dims(linear);
  dims.pop_back();
  WeightSource source{tensors_of(linear, ".weight"), WeightSource::Form::scales, code_type(scheme_of(linear))};
  const char* stored = folds_input_scale(scheme_of(linear)) ? ".deq_scale" : ".weight_scale";
  if (quantization_.stored()) source = {tensors_of(linear, stored), WeightSource::Form::channel_scales};
  return constant(linear.name + ".weight_scale", {DType::f32, dims}, std::move(source));
}

/// ModelSlim's static inputs: the row scales include the input's scale, and the int32 bias holds the float one plus
/// what the input's offset adds.
bool DecoderBuilder::folds_input_scale(const LinearScheme& scheme) const {
  return quantization_.format == Quantization::Format::modelslim && scheme.input == LinearScheme::Input::fixed;
}

ValueId DecoderBuilder::bias(const Linear& linear) {
  if (folds_input_scale(scheme_of(linear)))
    return constant(linear.name + ".quant_bias", {DType::i32, {linear.rows}}, {tensors_of(linear, ".quant_bias")});
  return linear.bias ? constant(linear.name + ".bias", {DType::f32, {linear.rows}}, {tensors_of(linear, ".bias")})
                     : ValueId{};
}

/// The static input scale that all modules of a linear share, and its offset where that is not 0.
DecoderBuilder::FixedInput DecoderBuilder::fixed_input(const Linear& linear) {
  const std::string& module = linear.modules.front().front();
  require(quantization_.stored(), "{}: expected a checkpoint that stores its input's scale, found none", module);
  const auto scalar = [&](const std::string& kind) {
    return constant(linear.name + kind, {DType::f32, {}}, {{{module + kind}}, WeightSource::Form::scalar});
  };
  return {scalar(".input_scale"), quantization_.input_offsets.contains(module) ? scalar(".input_offset") : ValueId{}};
}

/// A statically quantized input as a GEMM operand.
Operand DecoderBuilder::fixed_operand(ValueId codes, const FixedInput& input, const Linear& next) const {
  return {codes, folds_input_scale(scheme_of(next)) ? ValueId{} : input.scale};
}

Attributes DecoderBuilder::code_attributes(const LinearScheme& scheme) const {
  Attributes attributes{{"out_dtype", std::string(name_of(code_type(scheme)))}};
  if (scheme.input == LinearScheme::Input::dynamic && scheme.weight == LinearScheme::Weight::int8 &&
      quantization_.range != 127)
    attributes.set("range", std::string("127.5"));
  return attributes;
}

/// Adds what is pending to the residual stream and normalizes it.
ValueId DecoderBuilder::normalize(ValueId& hidden, ValueId delta, const std::string& name, DType out) {
  if (delta) hidden = graph().apply(OpKind::add, {delta, hidden});
  return graph().apply(OpKind::rms_norm, {hidden, vector(name, config_.hidden_size)},
                       {{"eps", config_.rms_norm_eps}, {"out_dtype", std::string(name_of(out))}});
}

/// The same as the left operand of a linear.
Operand DecoderBuilder::normalize_for(const Linear& next, ValueId& hidden, ValueId delta, const std::string& name,
                                      const char* tap_name) {
  const ValueId y = normalize(hidden, delta, name, values_for(scheme_of(next)));
  tap(tap_name, y);
  const Operand operand = operand_for(next, y);  // quantized before it is gathered
  return {whole(operand.x), has_row_scales(operand) ? whole(operand.scale) : operand.scale};
}

/// Unquantized values as the left operand of a linear.
Operand DecoderBuilder::operand_for(const Linear& next, ValueId x) {
  const LinearScheme scheme = scheme_of(next);
  if (!is_quantized(scheme)) return {x, {}};
  const Attributes attributes = code_attributes(scheme);
  if (scheme.input == LinearScheme::Input::fixed) {
    const FixedInput fixed = fixed_input(next);
    return fixed_operand(graph().apply(OpKind::quantize, {x, fixed.scale, fixed.offset}, attributes), fixed, next);
  }
  const std::vector<ValueId> quantized = graph().apply_all(OpKind::dynamic_quant, {x}, attributes);
  return {quantized[0], quantized[1]};
}

/// y = x W^T (+ bias).
ValueId DecoderBuilder::project(const Linear& linear, const Operand& x, DType out) {
  const Attributes rounded{{"out_dtype", std::string(name_of(out))}};
  const ValueId w = weight(linear), b = bias(linear);
  if (!is_quantized(scheme_of(linear))) return graph().apply(OpKind::linear, {x.x, w, b}, rounded, linear.name);
  return graph().apply(OpKind::scaled_mm, {x.x, w, x.scale, weight_scale(linear), b}, rounded, linear.name);
}

void DecoderBuilder::refuse_folded_experts(const Linear& linear) const {
  if (folds_input_scale(scheme_of(linear)))
    fail(Status::unsupported, "{}: expected FLOAT, W8A8_DYNAMIC or W8A16 for experts, found W8A8",
         linear.modules.front().front());
}

/// Each row times its expert's weight.
ValueId DecoderBuilder::grouped(const Linear& linear, const Operand& x, ValueId offsets) {
  const ValueId w = weight(linear);
  refuse_folded_experts(linear);
  if (!is_quantized(scheme_of(linear)))
    return graph().apply(OpKind::grouped_linear, {x.x, w, offsets}, {{"out_dtype", "f32"}});
  return graph().apply(OpKind::grouped_linear, {x.x, w, offsets, {}, x.scale, weight_scale(linear)},
                       {{"out_dtype", "f32"}});
}

/// One unquantized linear for each module of a stack.
std::vector<ValueId> DecoderBuilder::project_apart(const Linear& stack, std::span<const std::int64_t> rows, ValueId x) {
  std::vector<ValueId> results;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string& module = stack.modules.front().at(i);
    results.push_back(project({module, {{module}}, rows[i], stack.columns, stack.bias}, {x, {}}));
  }
  return results;
}

/// silu(gate) * up as the operand of `down`.
Operand DecoderBuilder::gated(const Linear& gate_up, const Linear& down, const Operand& y, const char* tap_name) {
  if (is_quantized(scheme_of(gate_up))) return activated(down, project(gate_up, y), tap_name);
  const std::int64_t rows[] = {gate_up.rows / 2, gate_up.rows / 2};
  const std::vector<ValueId> both = project_apart(gate_up, rows, y.x);
  const ValueId a = as_type(graph().apply(OpKind::mul, {graph().apply(OpKind::silu, {both[0]}), both[1]}),
                            values_for(scheme_of(down)));
  tap(tap_name, a);
  return operand_for(down, a);
}

/// The same of rows that hold gate and up side by side.
Operand DecoderBuilder::activated(const Linear& down, ValueId both, const char* tap_name) {
  const ValueId a =
      graph().apply(OpKind::silu_and_mul, {both}, {{"out_dtype", std::string(name_of(values_for(scheme_of(down))))}});
  tap(tap_name, a);
  return operand_for(down, a);
}

ValueId DecoderBuilder::as_type(ValueId x, DType type) {
  return graph().type(x).dtype == type ? x
                                       : graph().apply(OpKind::cast, {x}, {{"out_dtype", std::string(name_of(type))}});
}

}  // namespace cermet
