#include "api/callable.hpp"

#include <algorithm>

#include "api/dlpack.hpp"
#include "api/schema.hpp"
#include "base/text.hpp"
#include "op/schema/operator.hpp"

namespace cermet::api {
namespace {

constexpr std::size_t most_bound =
    512;  ///< operators of a callable: shapes that keep changing, outside of ranges, take each other's places

}  // namespace

Callable::Callable(std::shared_ptr<Handle> handle, std::string_view name, std::span<const DLTensor* const> samples,
                   std::span<const cermet_attribute> attributes, const cermet_get_op_options& options)
    : handle_(std::move(handle)), transposed_(operator_named(name)) {
  plain_ = &variants_[0];
  CallRequest& request = plain_->request;
  request.op = &operator_named(name);
  request.attributes = attributes_of(attributes, *request.op);
  request.kernel = options.kernel ? options.kernel : "";
  request.config = options.config ? options.config : "";
  const CallShape checked(request.op->name, samples);  // whose form can be read
  require(samples.size() == 64 || options.constants >> samples.size() == 0,
          "{}: constants: expected bits of {} inputs, found {:#x}", request.op->name, samples.size(),
          options.constants);
  take_dtypes(samples, options);
  const std::uint64_t transposed = transposed_.found_in(samples) & options.constants;
  request.attributes = transposed_.attributes(request.attributes, transposed);
  const std::span<const DLTensor* const> values = transposed_.swapped(samples, transposed);
  std::vector<const DLTensor*> given(samples.begin(), samples.end());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    cermet_weight* const shared = options.weights ? options.weights[i] : nullptr;
    if (!shared && !(options.constants >> i & 1u)) continue;
    take_constant(i, values[i], shared);
    given[i] = nullptr;
  }
  take(given);
}

void Callable::take_dtypes(std::span<const DLTensor* const> samples, const cermet_get_op_options& options) {
  for (std::size_t i = 0; options.dtypes && i < samples.size(); ++i) {
    if (!options.dtypes[i]) continue;
    const auto named = dtype_from_name(options.dtypes[i]);
    require(named.has_value(), "{}: input {}: expected {}, found {}", plain_->request.op->name, i,
            dtypes::all.to_string(), quote(options.dtypes[i]));
    plain_->request.dtypes.resize(i + 1);
    plain_->request.dtypes[i] = named;
  }
}

/// The value of a constant: what operators share, or else the sample.
void Callable::take_constant(std::size_t input, const DLTensor* sample, cermet_weight* shared) {
  weights_.resize(input + 1);
  weights_[input] = shared ? shared->weight : weight_of(input, sample);
  plain_->request.constants.resize(input + 1);
  plain_->request.constants[input] = weights_[input]->type();
  plain_->request.constant_inputs |= std::uint64_t{1} << input;
}

std::shared_ptr<Weight> Callable::weight_of(std::size_t input, const DLTensor* sample) const {
  const OpDefinition& op = *plain_->request.op;
  const std::string_view operand = spec_name(op.inputs, input);
  require(sample != nullptr, "{}: input {} ({}): expected a tensor with the value of the constant, found none", op.name,
          input, operand);
  const TensorType type{element_type(plain_->request, input, *sample),
                        Dims(sample->shape, sample->shape + sample->ndim)};
  for (const Dim& d : type.dims)
    require(d.constant() >= 0, "{}: input {} ({}): expected non-negative dimensions, found {}", op.name, input, operand,
            type.to_string());
  type.bytes();  // throws where they overflow
  const TensorView view = checked_view(*sample, {.op = op.name,
                                                 .role = "input",
                                                 .operand = operand,
                                                 .index = input,
                                                 .type = &type,
                                                 .dense_dims = may_have_any_strides(op, input) ? 0 : 1,
                                                 .device = handle_->memory,
                                                 .or_host = true});
  return std::make_shared<Weight>(handle_, view, sample->device.device_type != kDLCPU);
}

Callable::Taken Callable::take(std::span<const DLTensor* const> inputs) {
  const std::uint64_t transposed = transposed_.found_in(inputs);
  if (transposed != 0) return take_transposed(inputs, transposed);
  return {operator_for(*plain_, inputs), inputs};
}

/// Errors are about the tensors as the caller has them.
Callable::Taken Callable::take_transposed(std::span<const DLTensor* const> inputs, std::uint64_t transposed) {
  Variant& taken = variant(transposed);
  const std::span<const DLTensor* const> swapped = transposed_.swapped(inputs, transposed);
  try {
    return {operator_for(taken, swapped), swapped};
  } catch (const Error& error) {
    if (&taken != plain_) {
      operator_for(*plain_, inputs);
      throw;
    }
    const std::size_t input = transposed_.operands().front().input;
    const DLTensor& given = *inputs[input];
    const std::span sizes(given.shape, static_cast<std::size_t>(given.ndim));
    fail(error.status(), "{}; {} was given transposed, as [{}] with its columns dense", error.what(),
         spec_name(taken.request.op->inputs, input), fmt::join(sizes, ", "));
  }
}

Callable::Variant& Callable::variant(std::uint64_t transposed) {
  std::uint64_t named = 0;  // by an attribute: for the others nothing differs
  for (const TransposedOperand& operand : transposed_.operands())
    if (!operand.attribute.empty()) named |= transposed & std::uint64_t{1} << operand.input;
  const auto [at, is_new] = variants_.try_emplace(named);
  if (is_new) {
    at->second.request = plain_->request;
    at->second.request.attributes = transposed_.attributes(plain_->request.attributes, named);
  }
  return at->second;
}

Operator& Callable::operator_for(Variant& variant, std::span<const DLTensor* const> inputs) {
  const CallShape shape(variant.request.op->name, inputs);
  if (!last_ || last_variant_ != &variant || !last_->key.matches(shape)) {
    Entry* const known = variant.bound.find(shape);
    last_ = known ? known : &bind(variant, shape);
    last_variant_ = &variant;
  }
  last_->value->used = ++calls_;
  return last_->value->op;
}

std::size_t Callable::bound_count() const {
  std::size_t count = 0;
  for (const auto& [transposed, variant] : variants_) count += variant.bound.size();
  return count;
}

Callable::Entry& Callable::bind(Variant& variant, const CallShape& shape) {
  const CallRequest& request = variant.request;
  for (std::size_t i = 0; i < std::min(shape.inputs.size(), weights_.size()); ++i)
    if (weights_[i] && shape.inputs[i])
      fail(Status::invalid_argument, "{}: input {} ({}): expected no tensor for a constant, found one",
           request.op->name, i, spec_name(request.op->inputs, i));
  const std::shared_ptr<const Recipe> recipe =
      handle_->recipes.get(request, shape, {handle_->context.target(), handle_->context.pool().size()});
  auto bound = std::make_unique<Bound>(handle_, *recipe);
  for (std::size_t i = 0; i < weights_.size(); ++i)
    if (weights_[i]) bound->op.set_weight(i, weights_[i]);
  if (variant.bound.size() >= most_bound)
    variant.bound.erase_least([](const std::unique_ptr<Bound>& b) { return b->used; });  // which the last one is not
  return variant.bound.insert(recipe->key, std::move(bound));
}

}  // namespace cermet::api
