#include "api/callable.hpp"

#include <algorithm>

#include "api/dlpack.hpp"
#include "api/schema.hpp"
#include "base/text.hpp"
#include "op/operator.hpp"

namespace cermet::api {
namespace {

constexpr std::size_t most_bound = 512;  ///< operators of a callable: shapes that keep changing, outside of ranges, take each other's places

}  // namespace

Callable::Callable(std::shared_ptr<Handle> handle, std::string_view name, std::span<const DLTensor* const> samples,
                   std::span<const cermet_attribute> attributes, const cermet_get_op_options& options)
    : handle_(std::move(handle)) {
  request_.op = &operator_named(name);
  request_.attributes = attributes_of(attributes, *request_.op);
  request_.kernel = options.kernel ? options.kernel : "";
  request_.config = options.config ? options.config : "";
  const CallShape checked(request_.op->name, samples);  // whose form can be read
  require(samples.size() == 64 || options.constants >> samples.size() == 0, "{}: constants: expected bits of {} inputs, found {:#x}", request_.op->name,
          samples.size(), options.constants);
  take_dtypes(samples, options);
  std::vector<const DLTensor*> given(samples.begin(), samples.end());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    cermet_weight* const shared = options.weights ? options.weights[i] : nullptr;
    if (!shared && !(options.constants >> i & 1u)) continue;
    take_constant(i, samples[i], shared);
    given[i] = nullptr;
  }
  operator_for(given);
}

void Callable::take_dtypes(std::span<const DLTensor* const> samples, const cermet_get_op_options& options) {
  for (std::size_t i = 0; options.dtypes && i < samples.size(); ++i) {
    if (!options.dtypes[i]) continue;
    const auto named = dtype_from_name(options.dtypes[i]);
    require(named.has_value(), "{}: input {}: expected {}, found {}", request_.op->name, i, dtypes::all.to_string(), quote(options.dtypes[i]));
    request_.dtypes.resize(i + 1);
    request_.dtypes[i] = named;
  }
}

/// The value of a constant: what operators share, or else the sample.
void Callable::take_constant(std::size_t input, const DLTensor* sample, cermet_weight* shared) {
  weights_.resize(input + 1);
  weights_[input] = shared ? shared->weight : weight_of(input, sample);
  request_.constants.resize(input + 1);
  request_.constants[input] = weights_[input]->type();
  request_.constant_inputs |= std::uint64_t{1} << input;
}

std::shared_ptr<Weight> Callable::weight_of(std::size_t input, const DLTensor* sample) const {
  const OpDefinition& op = *request_.op;
  const std::string_view operand = spec_name(op.inputs, input);
  require(sample != nullptr, "{}: input {} ({}): expected a tensor with the value of the constant, found NULL", op.name, input, operand);
  const TensorType type{element_type(request_, input, *sample), Dims(sample->shape, sample->shape + sample->ndim)};
  for (const Dim& d : type.dims)
    require(d.constant() >= 0, "{}: input {} ({}): expected non-negative dimensions, found {}", op.name, input, operand, type.to_string());
  type.bytes();  // throws where they overflow
  const TensorView view =
      checked_view(*sample, {.op = op.name, .role = "input", .operand = operand, .index = input, .type = &type, .device = handle_->memory, .or_host = true});
  return std::make_shared<Weight>(handle_, view, sample->device.device_type != kDLCPU);
}

Operator& Callable::operator_for(std::span<const DLTensor* const> inputs) {
  const CallShape shape(request_.op->name, inputs);
  if (!last_ || !last_->key.matches(shape)) {
    Entry* const known = bound_.find(shape);
    last_ = known ? known : &bind(shape);
  }
  last_->value->used = ++calls_;
  return last_->value->op;
}

Callable::Entry& Callable::bind(const CallShape& shape) {
  for (std::size_t i = 0; i < std::min(shape.inputs.size(), weights_.size()); ++i)
    if (weights_[i] && shape.inputs[i])
      fail(Status::invalid_argument, "{}: input {} ({}): expected NULL for a constant, found a tensor", request_.op->name, i,
           spec_name(request_.op->inputs, i));
  const std::shared_ptr<const Recipe> recipe = handle_->recipes.get(request_, shape, {handle_->context.target(), handle_->context.pool().size()});
  auto bound = std::make_unique<Bound>(handle_, *recipe);
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (weights_[i]) bound->op.set_weight(i, weights_[i]);
  if (bound_.size() >= most_bound) bound_.erase_least([](const std::unique_ptr<Bound>& b) { return b->used; });  // which the last one is not
  return bound_.insert(recipe->key, std::move(bound));
}

}  // namespace cermet::api
