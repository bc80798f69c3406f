// Linear modules in the graph: what a scheme makes of weight and input. The operator that produces an input quantizes
// it.
#include "base/error.hpp"
#include "model/decoder_builder.hpp"

namespace cermet {
namespace {

DType code_type(const LinearScheme& scheme) { return scheme.weight == LinearScheme::Weight::fp8 ? DType::f8_e4m3 : DType::i8; }

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
        fail(Status::unsupported, "{}: expected {}, the scheme of {}, whose input it shares or whose product it is part of; found {}", module, name_of(scheme),
             first, name_of(quantization_.of(module)));
  return scheme;
}

/// Element type of a linear's unquantized input.
DType DecoderBuilder::values_for(const LinearScheme& scheme) const { return taps_ || is_quantized(scheme) ? DType::f32 : types_.operands; }

Dims DecoderBuilder::weight_dims(const Linear& linear) const {
  Dims dims{linear.rows, linear.columns};
  if (linear.modules.size() > 1) dims.insert(dims.begin(), static_cast<std::int64_t>(linear.modules.size()));
  return dims;
}

ValueId DecoderBuilder::weight(const Linear& linear) {
  const LinearScheme scheme = scheme_of(linear);
  const bool on_load = is_quantized(scheme) && !quantization_.stored();
  return constant(linear.name + ".weight", {is_quantized(scheme) ? code_type(scheme) : types_.weights, weight_dims(linear)},
                  {tensors_of(linear, ".weight"), on_load ? WeightSource::Form::codes : WeightSource::Form::plain, code_type(scheme)});
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
  if (folds_input_scale(scheme_of(linear))) return constant(linear.name + ".quant_bias", {DType::i32, {linear.rows}}, {tensors_of(linear, ".quant_bias")});
  return linear.bias ? constant(linear.name + ".bias", {DType::f32, {linear.rows}}, {tensors_of(linear, ".bias")}) : ValueId{};
}

/// The static input scale that all modules of a linear share, and its offset where that is not 0.
DecoderBuilder::FixedInput DecoderBuilder::fixed_input(const Linear& linear) {
  const std::string& module = linear.modules.front().front();
  require(quantization_.stored(), "{}: expected a checkpoint that stores its input's scale, found none", module);
  const auto scalar = [&](const std::string& kind) { return constant(linear.name + kind, {DType::f32, {}}, {{{module + kind}}, WeightSource::Form::scalar}); };
  return {scalar(".input_scale"), quantization_.input_offsets.contains(module) ? scalar(".input_offset") : ValueId{}};
}

/// A statically quantized input as a GEMM operand.
Operand DecoderBuilder::fixed_operand(ValueId codes, const FixedInput& input, const Linear& next) const {
  return {codes, folds_input_scale(scheme_of(next)) ? ValueId{} : input.scale};
}

Attributes DecoderBuilder::code_attributes(const LinearScheme& scheme) const {
  Attributes attributes{{"out_dtype", std::string(name_of(code_type(scheme)))}};
  if (scheme.input == LinearScheme::Input::dynamic && scheme.weight == LinearScheme::Weight::int8 && quantization_.range != 127)
    attributes.set("range", std::string("127.5"));
  return attributes;
}

/// Adds what is pending to the residual stream and normalises it.
ValueId DecoderBuilder::normalize(ValueId& hidden, ValueId delta, const std::string& name, DType out) {
  const ValueId w = vector(name, config_.hidden_size);
  const Attributes attributes{{"eps", config_.rms_norm_eps}, {"out_dtype", std::string(name_of(out))}};
  if (!delta) return graph().apply(OpKind::rms_norm, {hidden, w}, attributes);
  const std::vector<ValueId> results = graph().apply_all(OpKind::add_rms_norm, {delta, hidden, w}, attributes);
  hidden = results[1];
  return results[0];
}

/// The same as the left operand of a linear: the normalisation writes quantized values directly.
Operand DecoderBuilder::normalize_for(const Linear& next, ValueId& hidden, ValueId delta, const std::string& name, const char* tap_name) {
  const LinearScheme scheme = scheme_of(next);
  if (taps_ || !is_quantized(scheme)) {
    const ValueId y = normalize(hidden, delta, name, values_for(scheme));
    tap(tap_name, y);
    return operand_for(next, y);
  }
  const ValueId w = vector(name, config_.hidden_size);
  const bool is_fixed = scheme.input == LinearScheme::Input::fixed;
  const FixedInput fixed = is_fixed ? fixed_input(next) : FixedInput{};
  Attributes attributes = code_attributes(scheme);
  attributes.set("eps", config_.rms_norm_eps);
  std::vector<ValueId> operands{hidden, w, {}, fixed.scale, fixed.offset};
  if (delta) operands.insert(operands.begin(), delta);
  const std::vector<ValueId> results = graph().apply_all(delta ? OpKind::add_rms_norm_quant : OpKind::rms_norm_quant, operands, attributes);
  if (delta) hidden = results[1];
  return is_fixed ? fixed_operand(results[0], fixed, next) : Operand{results[0], results.back()};
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

/// y = x W^T (+ bias) in float32.
ValueId DecoderBuilder::project(const Linear& linear, const Operand& x) {
  const ValueId w = weight(linear), b = bias(linear);
  if (!is_quantized(scheme_of(linear))) return graph().apply(OpKind::linear, {x.x, w, b}, {{"out_dtype", "f32"}}, linear.name);
  return graph().apply(OpKind::scaled_mm, {x.x, w, x.scale, weight_scale(linear), b}, {{"out_dtype", "f32"}}, linear.name);
}

/// Each row times its expert's weight.
ValueId DecoderBuilder::grouped(const Linear& linear, const Operand& x, ValueId offsets) {
  const ValueId w = weight(linear);
  if (folds_input_scale(scheme_of(linear)))
    fail(Status::unsupported, "{}: expected FLOAT, W8A8_DYNAMIC or W8A16 for experts, found W8A8", linear.modules.front().front());
  if (!is_quantized(scheme_of(linear))) return graph().apply(OpKind::grouped_linear, {x.x, w, offsets}, {{"out_dtype", "f32"}});
  return graph().apply(OpKind::grouped_linear, {x.x, w, offsets, {}, x.scale, weight_scale(linear)}, {{"out_dtype", "f32"}});
}

/// silu(gate) * up as the operand of `down`.
Operand DecoderBuilder::gated(const Linear& gate_up, const Linear& down, const Operand& y, const char* tap_name) {
  const LinearScheme scheme = scheme_of(gate_up), next = scheme_of(down);
  if (is_quantized(scheme)) return activated(down, project(gate_up, y), tap_name);
  // Unquantized weights: both GEMMs in one pass.
  std::vector<ValueId> operands{y.x, {}, {}, {}, {}};
  for (std::size_t i = 0; i < 2; ++i) {
    const std::string& module = gate_up.modules.front().at(i);
    const Linear half{module, {{module}}, gate_up.rows / 2, gate_up.columns, gate_up.bias};
    operands[1 + i] = weight(half);
    operands[3 + i] = bias(half);
  }
  const ValueId a = graph().apply(OpKind::dual_linear, operands, {{"activation", "silu"}, {"out_dtype", std::string(name_of(values_for(next)))}});
  tap(tap_name, a);
  return operand_for(down, a);
}

/// The same of rows that hold gate and up side by side.
Operand DecoderBuilder::activated(const Linear& down, ValueId both, const char* tap_name) {
  const LinearScheme next = scheme_of(down);
  if (taps_ || !is_quantized(next)) {
    const ValueId a = graph().apply(OpKind::silu_and_mul, {both}, {{"out_dtype", std::string(name_of(values_for(next)))}});
    tap(tap_name, a);
    return operand_for(down, a);
  }
  if (next.input == LinearScheme::Input::fixed) {
    const FixedInput fixed = fixed_input(down);
    return fixed_operand(graph().apply(OpKind::silu_and_mul_quant, {both, {}, fixed.scale, fixed.offset}, code_attributes(next)), fixed, down);
  }
  const std::vector<ValueId> results = graph().apply_all(OpKind::silu_and_mul_quant, {both}, code_attributes(next));
  return {results[0], results[1]};
}

}  // namespace cermet
