#include "api/op.hpp"

#include <algorithm>
#include <cstring>

#include "api/guard.hpp"
#include "api/schema.hpp"
#include "base/text.hpp"
#include "device/cuda/plugin.hpp"
#include "op/reference.hpp"
#include "select/select.hpp"

namespace cermet::api {
namespace {

std::string_view spec_name(const std::vector<OperandSpec>& specs, std::size_t i) { return specs[std::min(i, specs.size() - 1)].name; }

/// A descriptor's type; nothing for an operand that is not given.
std::optional<TensorType> type_of(const cermet_descriptor& d, std::string_view op, std::size_t i) {
  if (!d.dtype) return std::nullopt;
  const auto dtype = dtype_from_name(d.dtype);
  require(dtype.has_value(), "{}: input {}: expected {}, found {}", op, i, dtypes::any.to_string(), quote(d.dtype));
  require(d.ndim >= 0 && d.ndim <= Shape::max_rank, "{}: input {}: expected 0 to {} dimensions, found {}", op, i, Shape::max_rank, d.ndim);
  require(d.ndim == 0 || d.shape, "{}: input {}: expected a shape, found NULL", op, i);
  return TensorType{*dtype, Dims(d.shape, d.shape + d.ndim)};
}

AttributeValue value_of(const cermet_attribute& a, std::string_view op) {
  switch (a.kind) {
    case CERMET_BOOL: return a.integer != 0;
    case CERMET_INT: return a.integer;
    case CERMET_FLOAT: return a.number;
    case CERMET_STRING: require(a.string, "{}: attribute '{}': expected a string, found NULL", op, a.name); return std::string(a.string);
    case CERMET_INTS:
      require(a.integers || a.integer_count == 0, "{}: attribute '{}': expected integers, found NULL", op, a.name);
      return Ints(a.integers, a.integers + a.integer_count);
  }
  fail(Status::invalid_argument, "{}: attribute '{}': expected a kind of cermet_attribute_kind, found {}", op, a.name, static_cast<int>(a.kind));
}

Attributes attributes_of(std::span<const cermet_attribute> list, std::string_view op) {
  Attributes attributes;
  for (const cermet_attribute& a : list) {
    require(a.name, "{}: attributes: expected a name, found NULL", op);
    require(!attributes.find(a.name), "{}: attribute '{}': expected it once, found it twice", op, a.name);
    attributes.set(a.name, value_of(a, op));
  }
  return attributes;
}

Problem problem_of(std::string_view name, std::span<const cermet_descriptor> inputs, std::span<const cermet_attribute> attributes) {
  const OpDefinition& op = operator_named(name);
  std::vector<std::optional<TensorType>> types;
  for (std::size_t i = 0; i < inputs.size(); ++i) types.push_back(type_of(inputs[i], op.name, i));
  Problem problem = make_problem(op, std::move(types), attributes_of(attributes, op.name));
  for (const auto& type : problem.inputs)
    if (type) type->bytes();  // throws where they overflow
  for (const TensorType& type : problem.outputs) type.bytes();
  for (std::size_t i = 0; i < std::min<std::size_t>(inputs.size(), 64); ++i)
    if (inputs[i].dtype && inputs[i].is_constant) problem.constant_inputs |= std::uint64_t{1} << i;
  return problem;
}

OwnedTensor dense_copy(const TensorView& view) {
  OwnedTensor copy(view.dtype, view.shape);
  if (view.elements() == 0) return copy;
  const int trailing = std::min(view.shape.rank(), 1);
  const Rows from(view, trailing), to(copy.view, trailing);
  const auto bytes = static_cast<std::size_t>(from.length()) * size_of(view.dtype);
  for (std::int64_t r = 0; r < from.count(); ++r) std::memcpy(to.row(r), from.row(r), bytes);
  return copy;
}

}  // namespace

Operator::Operator(std::shared_ptr<Context> context, std::string_view name, std::span<const cermet_descriptor> inputs,
                   std::span<const cermet_attribute> attributes)
    : context_(std::move(context)) {
  Problem made = problem_of(name, inputs, attributes);
  made.target = context_->device->target();
  const Kernel& kernel = select_kernel(made);
  bound_.emplace(std::move(made), kernel, context_->pool, context_->queue);
  const Problem& p = problem();
  dense_dims_ = dense_dims_of(p);
  is_elementwise_ = std::all_of(p.op->inputs.begin(), p.op->inputs.end(), [](const OperandSpec& s) { return s.mapping == Mapping::one_to_one; });
  strides_.resize(p.inputs.size());
  constants_.resize(p.inputs.size());
  device_constants_.resize(p.inputs.size());
  inputs_.resize(p.inputs.size());
  outputs_.resize(p.outputs.size());
  for (const TensorType& type : p.outputs) output_shapes_.push_back(bind(type.dims, {}));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!p.has(i) || !inputs[i].strides) continue;
    const Shape shape = bind(p.input(i).dims, {});
    Shape strides = shape;
    std::copy_n(inputs[i].strides, shape.rank(), &strides[0]);
    const std::string_view fault = stride_fault(shape, strides, dense_dims_, false);
    require(fault.empty(), "{}: input {} ({}): expected {}, found strides {} for {}", p.op->name, i, spec_name(p.op->inputs, i), fault, strides.to_string(),
            p.input(i).to_string());
    strides_[i] = strides;
  }
}

cermet_descriptor Operator::output(std::size_t i) const {
  const Shape& shape = output_shapes_[i];
  return {name_of(problem().outputs[i].dtype).data(), shape.rank(), shape.begin(), nullptr, 0};  // the names are string literals
}

int Operator::alias(std::size_t i) const {
  const auto& aliases = problem().op->aliases;
  return i < aliases.size() ? aliases[i] : -1;
}

Expectation Operator::expect_input(std::size_t i) const {
  const Problem& p = problem();
  return {p.op->name, "input",       spec_name(p.op->inputs, i),  i, &p.input(i), strides_[i] ? &*strides_[i] : nullptr, dense_dims_,
          false,      device_type(), context_->device->computes()};
}

Expectation Operator::expect_output(std::size_t i) const {
  const Problem& p = problem();
  return {p.op->name, "output", spec_name(p.op->outputs, i), i, &p.outputs[i], nullptr, dense_dims_, true, device_type(), context_->device->computes()};
}

void Operator::set_constant(std::size_t input, const DLTensor& tensor) {
  const Problem& p = problem();
  require(input < p.inputs.size() && p.is_constant(input), "{}: input {}: expected an operand that was declared constant, found another", p.op->name, input);
  Expectation expectation = expect_input(input);
  expectation.is_touched = true;
  expectation.device_type = kDLCPU;  // constants come from the host
  OwnedTensor copy = dense_copy(checked_view(tensor, expectation));
  bound_->prepack(input, copy.view);
  inputs_[input] = copy.view;  // where it was packed, the kernel gets the packed bytes in place of this data
  if (context_->queue.device && !kernel().weight_layout(p, input)) {
    DeviceBuffer& memory = device_constants_[input];
    memory = context_->device->allocate(copy.memory.size());
    context_->stream->upload(memory.data(), copy.memory.data(), memory.size());
    context_->stream->synchronize();  // the copy goes
    inputs_[input].data = memory.data();
    return;
  }
  constants_[input] = kernel().weight_layout(p, input) ? OwnedTensor() : std::move(copy);
}

void Operator::take_inputs(std::span<const DLTensor* const> inputs) {
  const Problem& p = problem();
  require(inputs.size() <= p.inputs.size(), "{}: expected at most {} inputs, found {}", p.op->name, p.inputs.size(), inputs.size());
  for (std::size_t i = 0; i < p.inputs.size(); ++i) {
    const DLTensor* tensor = i < inputs.size() ? inputs[i] : nullptr;
    const std::string_view operand = spec_name(p.op->inputs, i);
    if (p.has(i) && p.is_constant(i)) {
      require(!tensor, "{}: input {} ({}): expected NULL for a constant, found a tensor", p.op->name, i, operand);
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
    require(outputs[i], "{}: output {} ({}): expected a tensor, found NULL", p.op->name, i, spec_name(p.op->outputs, i));
    outputs_[i] = checked_view(*outputs[i], expect_output(i));
  }
}

bool Operator::may_coincide(std::size_t output, std::size_t input) const {
  const auto& in_place = problem().op->in_place;
  return alias(output) == static_cast<int>(input) || is_elementwise_ || (output < in_place.size() && in_place[output] == static_cast<int>(input));
}

void Operator::check_sharing(std::size_t output) const {
  const Problem& p = problem();
  const ByteRange range = range_of(outputs_[output]);
  const std::string_view name = spec_name(p.op->outputs, output);
  for (std::size_t other = 0; other < output; ++other)
    require(!range.overlaps(range_of(outputs_[other])), "{}: output {} ({}): expected memory of its own, found that of output {}", p.op->name, output, name,
            other);
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].present || p.is_constant(i)) continue;
    const bool same = coincide(outputs_[output], inputs_[i]);
    if (alias(output) == static_cast<int>(i))
      require(same, "{}: output {} ({}): expected the memory of input {} ({}), found another", p.op->name, output, name, i, spec_name(p.op->inputs, i));
    require(!range.overlaps(range_of(inputs_[i])) || (same && may_coincide(output, i)),
            "{}: output {} ({}): expected memory of its own, found that of input {} ({})", p.op->name, output, name, i, spec_name(p.op->inputs, i));
  }
}

void Operator::run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, void* workspace, std::size_t workspace_size, void* stream) {
  const std::string_view name = problem().op->name;
  require(!stream || context_->queue.device, "{}: stream: expected NULL on the CPU, found a stream", name);
  take_inputs(inputs);
  take_outputs(outputs);
  for (std::size_t i = 0; i < outputs_.size(); ++i) check_sharing(i);
  if (workspace) {
    require(workspace_size >= static_cast<std::size_t>(workspace_bytes()), "{}: workspace: expected at least {} bytes, found {}", name, workspace_bytes(),
            workspace_size);
    const auto address = reinterpret_cast<std::uintptr_t>(workspace);
    require(address % AlignedBuffer::alignment == 0, "{}: workspace: expected an address aligned to {} bytes, found {:#x}", name, AlignedBuffer::alignment,
            address);
  } else {
    require(workspace_size == 0, "{}: workspace: expected size 0 with NULL, found {}", name, workspace_size);
  }
  if (!context_->device->computes()) return;
  if (context_->queue.device) return run_on_device(static_cast<std::byte*>(workspace), stream);
  bound_->run(inputs_, outputs_, static_cast<std::byte*>(workspace));
}

/// On the caller's stream, or on the handle's own and then to the end.
void Operator::run_on_device(std::byte* workspace, void* stream) {
  if (stream != native_stream_) {
    stream_ = stream ? cuda::plugin().wrap_stream(*context_->device, stream) : nullptr;
    native_stream_ = stream;
  }
  bound_->run(inputs_, outputs_, workspace, stream_.get());
  if (!stream) context_->stream->synchronize();
}

}  // namespace cermet::api

using namespace cermet;  // NOLINT(google-build-using-namespace): the C functions below are the face of this namespace

cermet_status cermet_op_create(cermet_handle* handle, const char* name, const cermet_descriptor* inputs, size_t input_count, const cermet_attribute* attributes,
                               size_t attribute_count, cermet_op** op) {
  return api::guarded([&] {
    api::require_pointer(handle, "handle");
    api::require_pointer(name, "name");
    api::require_pointer(op, "op");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    if (attribute_count > 0) api::require_pointer(attributes, "attributes");
    *op = new cermet_op{api::Operator(handle->context, name, {inputs, input_count}, {attributes, attribute_count})};
  });
}

void cermet_op_destroy(cermet_op* op) { delete op; }
size_t cermet_op_output_count(const cermet_op* op) { return op ? op->op.problem().outputs.size() : 0; }
const char* cermet_op_kernel(const cermet_op* op) { return op ? op->op.kernel().name.data() : ""; }  // names are string literals
size_t cermet_op_workspace_size(const cermet_op* op) { return op ? static_cast<size_t>(op->op.workspace_bytes()) : 0; }
int32_t cermet_op_output_alias(const cermet_op* op, size_t index) { return op && index < op->op.problem().outputs.size() ? op->op.alias(index) : -1; }

cermet_status cermet_op_output(const cermet_op* op, size_t index, cermet_descriptor* output) {
  return api::guarded([&] {
    api::require_pointer(op, "op");
    api::require_pointer(output, "output");
    const std::size_t count = op->op.problem().outputs.size();
    require(index < count, "{}: output: expected an index below {}, found {}", op->op.problem().op->name, count, index);
    *output = op->op.output(index);
  });
}

cermet_status cermet_op_set_constant(cermet_op* op, size_t input, const DLTensor* tensor) {
  return api::guarded([&] {
    api::require_pointer(op, "op");
    api::require_pointer(tensor, "tensor");
    op->op.set_constant(input, *tensor);
  });
}

cermet_status cermet_op_run(cermet_op* op, const DLTensor* const* inputs, size_t input_count, DLTensor* const* outputs, size_t output_count, void* workspace,
                            size_t workspace_size, void* stream) {
  return api::guarded([&] {
    api::require_pointer(op, "op");
    if (input_count > 0) api::require_pointer(inputs, "inputs");
    if (output_count > 0) api::require_pointer(outputs, "outputs");
    op->op.run({inputs, input_count}, {outputs, output_count}, workspace, workspace_size, stream);
  });
}
