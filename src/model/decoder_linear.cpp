// Linear modules in the graph: what a scheme makes of weight and input.
#include "model/decoder_builder.hpp"

#include "base/error.hpp"

namespace cermet {
namespace {

DType quantized_type(const LinearScheme& scheme) {
  return scheme.weight == LinearScheme::Weight::fp8 ? DType::f8_e4m3 : DType::i8;
}

bool is_quantized(const LinearScheme& scheme) { return scheme.input != LinearScheme::Input::real; }

/// "X.weight" of every module X.
std::vector<std::vector<std::string>> tensors_of(const LinearStack& stack, const char* tensor) {
  std::vector<std::vector<std::string>> names = stack.modules;
  for (std::vector<std::string>& slice : names)
    for (std::string& name : slice) name += tensor;
  return names;
}

}  // namespace

LinearStack::LinearStack(std::string stack_name, std::span<const Linear> linears)
    : name(std::move(stack_name)), modules(1), columns(linears.front().columns), bias(linears.front().bias) {
  for (const Linear& linear : linears) {
    modules.front().push_back(linear.name);
    rows += linear.rows;
  }
}

ValueId LinearBuilder::constant(const std::string& name, TensorType type, WeightSource source) {
  if (const ValueId known = graph().find(name)) return known;
  out_.sources.emplace(name, std::move(source));
  return graph().add_constant(name, std::move(type));
}

void LinearBuilder::tap(const char* name, ValueId value) {
  if (taps) graph().add_output(name, value);
}

ValueId as_type(Graph& graph, ValueId x, DType type) {
  return graph.type(x).dtype == type ? x : graph.apply(OpKind::cast, {x}, {{"out_dtype", std::string(name_of(type))}});
}

/// What the GEMM computes with: weight-only quantization is dequantized before it. All modules of a linear must agree.
LinearScheme LinearBuilder::scheme_of(const LinearStack& stack) const {
  const auto effective = [&](const std::string& module) {
    const LinearScheme scheme = quantization_.of(module);
    return is_quantized(scheme) ? scheme : LinearScheme{};
  };
  const std::string& first = stack.modules.front().front();
  const LinearScheme scheme = effective(first);
  for (const std::vector<std::string>& slice : stack.modules)
    for (const std::string& module : slice)
      if (effective(module) != scheme)
        fail(Status::unsupported,
             "{}: expected {}, the scheme of {}, whose input it shares or whose product it is part of; found {}",
             module, name_of(scheme), first, name_of(quantization_.of(module)));
  return scheme;
}

/// Element type of the unquantized input.
DType LinearBuilder::input_type(const LinearStack& stack) const {
  return taps || is_quantized(scheme_of(stack)) ? DType::f32 : types.operands;
}

Dims LinearBuilder::weight_dims(const LinearStack& stack) const {
  Dims dims{stack.rows, stack.columns};
  if (stack.of_experts) dims.insert(dims.begin(), static_cast<std::int64_t>(stack.modules.size()));
  return dims;
}

ValueId LinearBuilder::weight(const LinearStack& stack) {
  const LinearScheme scheme = scheme_of(stack);
  const bool on_load = is_quantized(scheme) && !quantization_.stored();
  const WeightSource::Form form = on_load ? WeightSource::Form::quantized
                                  : quantization_.dense.contains(stack.modules.front().front())
                                      ? WeightSource::Form::rounded
                                      : WeightSource::Form::plain;
  return constant(
      stack.name + ".weight", {is_quantized(scheme) ? quantized_type(scheme) : types.weights, weight_dims(stack)},
      {tensors_of(stack, ".weight"), form, quantized_type(quantization_.of(stack.modules.front().front()))});
}

/// Per-row scales of a quantized weight.
ValueId LinearBuilder::weight_scale(const LinearStack& stack) {
  Dims dims = weight_dims(stack);
  dims.pop_back();
  WeightSource source{tensors_of(stack, ".weight"), WeightSource::Form::scales, quantized_type(scheme_of(stack))};
  const char* stored = folds_input_scale(scheme_of(stack)) ? ".deq_scale" : ".weight_scale";
  if (quantization_.stored()) source = {tensors_of(stack, stored), WeightSource::Form::channel_scales};
  return constant(stack.name + ".weight_scale", {DType::f32, dims}, std::move(source));
}

/// ModelSlim's static inputs: the row scales include the input's scale, and the int32 bias holds the float one plus
/// what the input's offset adds.
bool LinearBuilder::folds_input_scale(const LinearScheme& scheme) const {
  return quantization_.format == Quantization::Format::modelslim && scheme.input == LinearScheme::Input::fixed;
}

ValueId LinearBuilder::bias(const LinearStack& stack) {
  if (folds_input_scale(scheme_of(stack)))
    return constant(stack.name + ".quant_bias", {DType::i32, {stack.rows}}, {tensors_of(stack, ".quant_bias")});
  return stack.bias ? constant(stack.name + ".bias", {DType::f32, {stack.rows}}, {tensors_of(stack, ".bias")})
                    : ValueId{};
}

/// The static input scale that all modules of a linear share, and its offset where that is not 0.
LinearBuilder::FixedInput LinearBuilder::fixed_input(const LinearStack& stack) {
  const std::string& module = stack.modules.front().front();
  require(quantization_.stored(), "{}: expected a checkpoint that stores its input's scale, found none", module);
  const auto scalar = [&](const std::string& kind) {
    return constant(stack.name + kind, {DType::f32, {}}, {{{module + kind}}, WeightSource::Form::scalar});
  };
  return {scalar(".input_scale"), quantization_.input_offsets.contains(module) ? scalar(".input_offset") : ValueId{}};
}

Attributes LinearBuilder::quantized_attributes(const LinearScheme& scheme) const {
  Attributes attributes{{"out_dtype", std::string(name_of(quantized_type(scheme)))}};
  if (scheme.input == LinearScheme::Input::dynamic && scheme.weight == LinearScheme::Weight::int8 &&
      quantization_.range != 127)
    attributes.set("range", std::string("127.5"));
  return attributes;
}

/// A float32 constant of the graph.
ValueId LinearBuilder::scalar(std::string_view name, double value) {
  return graph().add_constant(name, TensorData::of<float>({DType::f32, {}}, {static_cast<float>(value)}));
}

ValueId LinearBuilder::normalize(const Norm& norm, ValueId x, std::optional<DType> out) {
  const std::string name = norm.name + ".weight";
  // Widened to float32: it is small, and every kernel computes in float32.
  const ValueId w = constant(name, {DType::f32, {norm.size}}, {.slices = {{name}}});
  Attributes attributes{{"eps", norm.eps}};
  if (norm.weight_offset != 0) attributes.set("weight_offset", norm.weight_offset);
  if (out) attributes.set("out_dtype", std::string(name_of(*out)));
  return graph().apply(OpKind::rms_norm, {x, w}, attributes);
}

/// Unquantized values as the left operand of a linear.
Operand LinearBuilder::operand_for(const LinearStack& next, ValueId x) {
  const LinearScheme scheme = scheme_of(next);
  if (!is_quantized(scheme)) return {x, {}};
  const Attributes attributes = quantized_attributes(scheme);
  if (scheme.input == LinearScheme::Input::fixed) {
    const FixedInput fixed = fixed_input(next);
    return {graph().apply(OpKind::quantize, {x, fixed.scale, fixed.offset}, attributes),
            folds_input_scale(scheme) ? ValueId{} : fixed.scale};
  }
  const std::vector<ValueId> quantized = graph().apply_all(OpKind::dynamic_quant, {x}, attributes);
  return {quantized[0], quantized[1]};
}

/// y = x W^T (+ bias).
ValueId LinearBuilder::project(const LinearStack& stack, const Operand& x, DType out) {
  const Attributes rounded{{"out_dtype", std::string(name_of(out))}};
  const ValueId w = weight(stack), b = bias(stack);
  if (!is_quantized(scheme_of(stack))) return graph().apply(OpKind::linear, {x.x, w, b}, rounded, stack.name);
  return graph().apply(OpKind::scaled_mm, {x.x, w, x.scale, weight_scale(stack), b}, rounded, stack.name);
}

void LinearBuilder::refuse_folded_experts(const LinearStack& stack) const {
  if (folds_input_scale(scheme_of(stack)))
    fail(Status::unsupported, "{}: expected FLOAT, W8A8_DYNAMIC or W8A16 for experts, found W8A8",
         stack.modules.front().front());
}

/// Each row times its expert's weight.
ValueId LinearBuilder::grouped(const LinearStack& stack, const Operand& x, ValueId offsets) {
  const ValueId w = weight(stack);
  refuse_folded_experts(stack);
  if (!is_quantized(scheme_of(stack)))
    return graph().apply(OpKind::grouped_linear, {x.x, w, offsets}, {{"out_dtype", "f32"}});
  return graph().apply(OpKind::grouped_linear, {x.x, w, offsets, {}, x.scale, weight_scale(stack)},
                       {{"out_dtype", "f32"}});
}

}  // namespace cermet
