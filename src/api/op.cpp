#include "api/op.hpp"

#include <algorithm>

#include "api/guard.hpp"
#include "device/cuda/plugin.hpp"
#include "op/operator.hpp"
#include "op/reference.hpp"
#include "select/select.hpp"

namespace cermet::api {
namespace {

/// Values of the first range for which kernels are selected separately: one row, and few enough rows to be bound by reading weights.
constexpr std::int64_t few_rows[] = {1, 32};

}  // namespace

Operator::Operator(std::shared_ptr<Handle> handle, std::string_view name, std::span<const cermet_descriptor> inputs,
                   std::span<const cermet_attribute> attributes, std::span<const cermet_range> ranges)
    : handle_(std::move(handle)), ranges_(ranges_of(ranges, name)) {
  Problem made = problem_of(name, inputs, attributes, ranges_);
  made.target = handle_->context.target();
  for (const std::int64_t most : few_rows)
    if (!ranges_.empty() && most < ranges_.front().maximum) add_variant(made, most);
  add_variant(made, ranges_.empty() ? 0 : ranges_.front().maximum);
  const Problem& p = problem();
  dense_dims_ = dense_dims_of(p);
  is_elementwise_ =
      std::all_of(definition(p).inputs.begin(), definition(p).inputs.end(), [](const OperandSpec& s) { return s.mapping == Mapping::one_to_one; });
  weights_.resize(p.inputs.size());
  inputs_.resize(p.inputs.size());
  outputs_.resize(p.outputs.size());
  for (const TensorType& type : p.outputs) output_shapes_.push_back(cermet::bind(type.dims, p.maximum));
  take_strides(inputs);
}

void Operator::add_variant(const Problem& problem, std::int64_t most) {
  Problem made = problem;
  if (!ranges_.empty()) made.maximum.set(ranges_.front().symbol, most);
  Choice choice = select_kernel(made, {.threads = handle_->context.pool().size()});
  const std::size_t inputs = made.inputs.size();
  variants_.push_back({most, BoundOp(std::move(made), std::move(choice), handle_->context.pool(), handle_->context.queue()), std::vector<TensorView>(inputs)});
  workspace_bytes_ = std::max(workspace_bytes_, variants_.back().bound.workspace_bytes());
}

void Operator::take_strides(std::span<const cermet_descriptor> inputs) {
  const Problem& p = problem();
  strides_.resize(p.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!p.has(i) || !inputs[i].strides) continue;
    const Shape shape = cermet::bind(p.input(i).dims, p.maximum);
    Shape strides = shape;
    std::copy_n(inputs[i].strides, shape.rank(), &strides[0]);
    const std::string_view fault = stride_fault(shape, strides, dense_dims_, false);
    require(fault.empty(), "{}: input {} ({}): expected {}, found strides {} for {}", p.op->name, i, spec_name(definition(p).inputs, i), fault,
            strides.to_string(), p.input(i).to_string());
    strides_[i] = strides;
  }
}

cermet_descriptor Operator::output(std::size_t i) const {
  const Shape& shape = output_shapes_[i];
  return {name_of(problem().outputs[i].dtype).data(), shape.rank(), shape.begin(), nullptr, 0};  // the names are string literals
}

int Operator::alias(std::size_t i) const {
  const auto& aliases = definition(problem()).aliases;
  return i < aliases.size() ? aliases[i] : -1;
}

Expectation Operator::expect_input(std::size_t i) const {
  const Problem& p = problem();
  return {.op = p.op->name,
          .role = "input",
          .operand = spec_name(definition(p).inputs, i),
          .index = i,
          .type = &p.input(i),
          .symbols = &symbols_,
          .strides = strides_[i] ? &*strides_[i] : nullptr,
          .dense_dims = dense_dims_,
          .device = handle_->memory,
          .is_touched = handle_->context.computes()};
}

Expectation Operator::expect_output(std::size_t i) const {
  const Problem& p = problem();
  return {.op = p.op->name,
          .role = "output",
          .operand = spec_name(definition(p).outputs, i),
          .index = i,
          .type = &p.outputs[i],
          .symbols = &symbols_,
          .dense_dims = dense_dims_,
          .is_output = true,
          .device = handle_->memory,
          .is_touched = handle_->context.computes()};
}

void Operator::require_constant(std::size_t input) const {
  const Problem& p = problem();
  require(input < p.inputs.size() && p.is_constant(input), "{}: input {}: expected an operand that was declared constant, found another", p.op->name, input);
}

void Operator::set_constant(std::size_t input, const DLTensor& tensor) {
  require_constant(input);
  Expectation expectation = expect_input(input);
  expectation.is_touched = true;
  expectation.or_host = true;
  const TensorView view = checked_view(tensor, expectation);
  for (Variant& v : variants_) v.constants[input] = {};
  weights_[input].reset();  // so that its memory is there for the new one
  auto weight = std::make_shared<Weight>(handle_, view, tensor.device.device_type != kDLCPU);
  set_weight(input, weight);
  weight->detach();
}

void Operator::set_weight(std::size_t input, std::shared_ptr<Weight> weight) {
  require_constant(input);
  const Problem& p = problem();
  const std::string_view operand = spec_name(definition(p).inputs, input);
  require(&weight->handle() == handle_.get(), "{}: input {} ({}): expected a weight of the operator's handle, found one of another", p.op->name, input,
          operand);
  require(weight->type() == p.input(input), "{}: input {} ({}): expected a weight of type {}, found {}", p.op->name, input, operand, p.input(input).to_string(),
          weight->type().to_string());
  std::vector<TensorView> forms;
  for (const Variant& v : variants_) forms.push_back(weight->form(v.bound.kernel().weight_layout(v.bound.problem(), input)));
  for (std::size_t v = 0; v < variants_.size(); ++v) variants_[v].constants[input] = forms[v];
  weights_[input] = std::move(weight);
}

/// What the operands' shapes say about the ranges. Every operand is checked against it later, so that it names the one that does not agree.
SymbolValues Operator::symbols_of(std::span<const DLTensor* const> inputs) const {
  const Problem& p = problem();
  SymbolValues values;
  for (const Range& range : ranges_) {
    const DLTensor* tensor = range.input < inputs.size() ? inputs[range.input] : nullptr;
    const TensorType& type = p.input(range.input);
    const std::string_view operand = spec_name(definition(p).inputs, range.input);
    require(tensor, "{}: input {} ({}): expected a tensor, found NULL", p.op->name, range.input, operand);
    require(tensor->ndim == type.rank() && tensor->shape, "{}: input {} ({}): expected {}, found {} dimensions", p.op->name, range.input, operand,
            type.to_string(), tensor->ndim);
    const std::int64_t value = tensor->shape[range.axis];
    require(value >= 0 && value <= range.maximum, "{}: input {} ({}): expected {} of {} from 0 to {}, found {}", p.op->name, range.input, operand, range.letter,
            type.to_string(), range.maximum, value);
    values.set(range.symbol, value);
  }
  for (std::size_t i = 0; i < p.outputs.size() && !ranges_.empty(); ++i)
    for (const Dim& d : p.outputs[i].dims)
      if (d.value(values) < 0)
        fail(Status::invalid_argument, "{}: output {} ({}): expected operands that give {} no negative dimension, found {}", p.op->name, i,
             spec_name(definition(p).outputs, i), p.outputs[i].to_string(), d.value(values));
  return values;
}

Shape Operator::output_shape(std::size_t i, std::span<const DLTensor* const> inputs) const {
  return cermet::bind(problem().outputs[i].dims, symbols_of(inputs));
}

void Operator::take_inputs(std::span<const DLTensor* const> inputs) {
  const Problem& p = problem();
  require(inputs.size() <= p.inputs.size(), "{}: expected at most {} inputs, found {}", p.op->name, p.inputs.size(), inputs.size());
  if (!ranges_.empty()) symbols_ = symbols_of(inputs);
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    const DLTensor* tensor = i < inputs.size() ? inputs[i] : nullptr;
    const std::string_view operand = spec_name(definition(p).inputs, i);
    if (p.has(i) && p.is_constant(i)) {
      require(!tensor, "{}: input {} ({}): expected NULL for a constant, found a tensor", p.op->name, i, operand);
      inputs_[i] = variant().constants[i];
      require(inputs_[i].present, "{}: input {} ({}): expected the constant to be set before the first run, found none", p.op->name, i, operand);
      continue;
    }
    if (!p.has(i)) require(!tensor, "{}: input {} ({}): expected NULL as at creation, found a tensor", p.op->name, i, operand);
    else require(tensor, "{}: input {} ({}): expected a tensor, found NULL", p.op->name, i, operand);
    inputs_[i] = tensor ? checked_view(*tensor, expect_input(i)) : TensorView();
  }
}

void Operator::take_outputs(std::span<DLTensor* const> outputs) {
  const Problem& p = problem();
  require(outputs.size() == p.outputs.size(), "{}: expected {} outputs, found {}", p.op->name, p.outputs.size(), outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    require(outputs[i], "{}: output {} ({}): expected a tensor, found NULL", p.op->name, i, spec_name(definition(p).outputs, i));
    outputs_[i] = checked_view(*outputs[i], expect_output(i));
  }
}

bool Operator::may_coincide(std::size_t output, std::size_t input) const {
  const auto& in_place = definition(problem()).in_place;
  return alias(output) == static_cast<int>(input) || is_elementwise_ || (output < in_place.size() && in_place[output] == static_cast<int>(input));
}

void Operator::check_sharing(std::size_t output) const {
  const Problem& p = problem();
  const ByteRange range = range_of(outputs_[output]);
  const std::string_view name = spec_name(definition(p).outputs, output);
  for (std::size_t other = 0; other < output; ++other)
    require(!range.overlaps(range_of(outputs_[other])), "{}: output {} ({}): expected memory of its own, found that of output {}", p.op->name, output, name,
            other);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].present || p.is_constant(i)) continue;
    const bool same = coincide(outputs_[output], inputs_[i]);
    if (alias(output) == static_cast<int>(i))
      require(same, "{}: output {} ({}): expected the memory of input {} ({}), found another", p.op->name, output, name, i, spec_name(definition(p).inputs, i));
    require(!range.overlaps(range_of(inputs_[i])) || (same && may_coincide(output, i)),
            "{}: output {} ({}): expected memory of its own, found that of input {} ({})", p.op->name, output, name, i, spec_name(definition(p).inputs, i));
  }
}

void Operator::check_workspace(const void* workspace, std::size_t size) const {
  const std::string_view name = problem().op->name;
  if (!workspace) return require(size == 0, "{}: workspace: expected size 0 with NULL, found {}", name, size);
  require(size >= static_cast<std::size_t>(workspace_bytes_), "{}: workspace: expected at least {} bytes, found {}", name, workspace_bytes_, size);
  const auto address = reinterpret_cast<std::uintptr_t>(workspace);
  require(address % AlignedBuffer::alignment == 0, "{}: workspace: expected an address aligned to {} bytes, found {:#x}", name, AlignedBuffer::alignment,
          address);
}

/// The one for the fewest rows that still takes this run's.
Operator::Variant& Operator::variant() {
  const std::int64_t rows = ranges_.empty() ? 0 : symbols_[ranges_.front().symbol];
  return *std::find_if(variants_.begin(), variants_.end() - 1, [&](const Variant& v) { return rows <= v.most; });
}

/// The caller's stream, or the handle's own; null on the CPU.
Stream* Operator::stream_for(void* stream) {
  if (stream != native_stream_) {
    stream_ = stream ? cuda::plugin().wrap_stream(handle_->context.device(), stream) : nullptr;
    native_stream_ = stream;
  }
  return stream ? stream_.get() : handle_->context.stream();
}

std::byte* Operator::own_workspace(Stream* stream) {
  if (workspace_bytes_ == 0) return nullptr;
  if (!stream) {
    if (!host_workspace_.data()) host_workspace_ = AlignedBuffer(workspace_bytes_);
    return host_workspace_.data();
  }
  if (!device_workspace_.data()) {
    device_workspace_ = handle_->context.device().allocate(workspace_bytes_);
    stream->fill(device_workspace_.data(), 0,
                 workspace_bytes_);  // once: attention's flags may hold anything, but initcheck reports reads of uninitialized memory
  }
  return device_workspace_.data();
}

void Operator::run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, void* workspace, std::size_t workspace_size, void* stream) {
  require(!stream || handle_->context.stream(), "{}: stream: expected NULL on {}, found a stream", problem().op->name, handle_->context.device_spec());
  take_inputs(inputs);
  take_outputs(outputs);
  for (std::size_t i = 0; i < outputs_.size(); ++i) check_sharing(i);
  check_workspace(workspace, workspace_size);
  if (!handle_->context.computes()) return;
  const bool has_work = std::any_of(outputs_.begin(), outputs_.end(), [](const TensorView& view) { return view.elements() > 0; });
  if (!has_work && !ranges_.empty()) return;
  Stream* const used = handle_->context.stream() ? stream_for(stream) : nullptr;
  std::byte* const scratch = workspace ? static_cast<std::byte*>(workspace) : own_workspace(used);
  variant().bound.run(inputs_, outputs_, scratch, used);
  if (used && !stream) used->synchronize();
}

}  // namespace cermet::api
