// Runs of a compiled graph: the caller's tensors are checked and bound, results written or copied where the caller
// wants them.
#include "api/session.hpp"

#include <algorithm>
#include <cstring>

#include "api/caller_tensor.hpp"
#include "api/managed_copy.hpp"
#include "api/overlap.hpp"

namespace cermet::api {

TensorType GraphSession::Port::seen() const {
  TensorType made = type;
  for (std::size_t i = 0; i < order.size(); ++i) made.dims[static_cast<std::size_t>(order[i])] = type.dims[i];
  return made;
}

TensorView GraphSession::Port::seen(const TensorView& memory) const {
  TensorView made = memory;
  for (int i = 0; i < std::ssize(order); ++i) {
    const auto to = static_cast<int>(order[static_cast<std::size_t>(i)]);
    made.shape[to] = memory.shape[i];
    made.strides[to] = memory.strides[i];
  }
  return made;
}

const DLTensor* GraphSession::Port::in_memory(const DLTensor* tensor) {
  if (order.empty() || !tensor || tensor->ndim != std::ssize(order) || !tensor->shape) return tensor;
  Shape given;
  for (int i = 0; i < tensor->ndim; ++i) given.push_back(tensor->shape[i]);
  const Shape dense = dense_strides(given);
  stored = *tensor;
  stored_shape = stored_strides = given;
  for (int i = 0; i < std::ssize(order); ++i) {
    const auto from = static_cast<int>(order[static_cast<std::size_t>(i)]);
    stored_shape[i] = given[from];
    stored_strides[i] = tensor->strides ? tensor->strides[from] : dense[from];
  }
  stored.shape = &stored_shape[0];
  stored.strides = &stored_strides[0];
  return &stored;
}

const GraphSession::Port& GraphSession::output(std::size_t index) const {
  require(index < outputs_.size(), "output: expected an index below {}, found {}", outputs_.size(), index);
  return outputs_[index];
}

Expectation GraphSession::expect(const Port& port, std::size_t index, bool is_output) const {
  return {.op = name_,
          .role = is_output ? "output" : "input",
          .operand = port.name,
          .index = index,
          .type = &port.type,
          .symbols = &symbols_,
          .dense_dims = port.is_updated || (is_output && port.alias < 0) ? port.type.rank() : 1,
          .is_output = is_output,
          .device = handle_->memory,
          .or_host = !port.is_state && port.alias < 0,
          .is_touched = context_.computes()};
}

/// Works out what tensors must be, where a shape is not that of the last run.
void GraphSession::take_sizes(std::span<const DLTensor* const> given) {
  require(given.size() == inputs_.size(), "{}: expected {} inputs, found {}", name_, inputs_.size(), given.size());
  stored_.resize(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) stored_[i] = inputs_[i].in_memory(given[i]);
  const std::span<const DLTensor* const> inputs = stored_;
  bool known = is_sized_;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Port& port = inputs_[i];
    const DLTensor* const tensor = inputs[i];
    if (!tensor)
      fail(Status::invalid_argument, "{}: input {} ({}): expected a tensor, found none", name_, i, port.name);
    if (tensor->ndim != port.type.rank() || (tensor->ndim > 0 && !tensor->shape))
      fail(Status::invalid_argument, "{}: input {} ({}): expected {}, found {} dimensions", name_, i, port.name,
           port.type.to_string(), tensor->ndim);
    known = known && shapes_[i].shape && std::equal(shapes_[i].shape->begin(), shapes_[i].shape->end(), tensor->shape);
    if (known) continue;
    is_sized_ = false;
    shapes_[i].shape.emplace();
    for (int axis = 0; axis < tensor->ndim; ++axis) shapes_[i].shape->push_back(tensor->shape[axis]);
  }
  if (known) return;
  symbols_ = symbols_of_shapes(shapes_, symbols_used_);
  for (const Symbol& symbol : symbols_used_)
    if (const DimRange range{range_of(ranges_, symbol).least, maximum_[symbol]};
        symbols_[symbol] < range.least || symbols_[symbol] > range.greatest)
      fail(Status::invalid_argument, "{}: expected {} from {} to {}, found {}", name_, symbol.name(), range.least,
           range.greatest, symbols_[symbol]);
  for (std::vector<Port>* ports : {&inputs_, &outputs_})
    for (Port& port : *ports) port.plain = PlainTensor(port.type.dtype, cermet::bind(port.type.dims, symbols_));
  is_sized_ = true;
}

void GraphSession::take_input(std::size_t i, const DLTensor& tensor) {
  Port& port = inputs_[i];
  TensorView view = port.plain.view;
  if (port.plain.matches(tensor, handle_->memory))
    view.data = static_cast<std::byte*>(tensor.data) + tensor.byte_offset;
  else view = checked_view(tensor, expect(port, i, false));
  port.on_host = context_.stream() && tensor.device.device_type == kDLCPU;
  if (port.on_host) view = copied(port, view);
  const bool is_bound = has_run_ && coincide(view, port.view);
  if (!is_bound) {
    session_->bind(port.name, view);
    has_moved_ = true;
  }
  port.view = view;
  port.range = range_of(view);
}

/// A run that is not done reading an input must not write it.
void GraphSession::check_updated() const {
  for (const Port& state : inputs_) {
    if (!state.is_updated) continue;
    for (const Port& other : inputs_)
      if (&other != &state && state.range.overlaps(other.range) && share_memory(state.view, other.view))
        fail(Status::invalid_argument,
             "{}: input {} ({}): expected memory of its own, which is updated, found that of '{}'", name_,
             &state - inputs_.data(), state.name, other.name);
  }
}

/// The device's memory for an input that is in the host's.
TensorView GraphSession::copied(Port& port, const TensorView& host) {
  port.host = host;
  const std::int64_t bytes = dense_bytes(host.dtype, host.shape);
  if (port.copy.size() < bytes) {
    if (last_stream_) last_stream_->synchronize();  // an earlier run may still read what is freed
    port.copy = {};
    port.copy = context_.device().allocate(bytes);
  }
  return TensorView(port.copy.data(), host.dtype, host.shape);
}

void GraphSession::copy_inputs(Stream* stream) {
  for (const Port& port : inputs_)
    if (port.on_host)
      copy_rows(port.host, port.copy.data(),
                [&](std::byte* to, const std::byte* from, std::int64_t bytes) { stream->upload(to, from, bytes); });
}

void GraphSession::take_output(std::size_t i, const DLTensor* tensor) {
  Port& port = outputs_[i];
  port.view = {};
  port.range = {};
  port.on_host = tensor && context_.stream() && tensor->device.device_type == kDLCPU;
  if (!tensor) return;
  TensorView view = port.plain.view;
  if (port.plain.matches(*tensor, handle_->memory))
    view.data = static_cast<std::byte*>(tensor->data) + tensor->byte_offset;
  else view = checked_view(*tensor, expect(port, i, true));
  const auto refuse = [&](std::string_view expected, std::string_view found) {
    fail(Status::invalid_argument, "{}: output {} ({}): expected {}, found {}", name_, i, port.name, expected, found);
  };
  if (port.alias >= 0 && !coincide(view, inputs_[static_cast<std::size_t>(port.alias)].view))
    refuse(fmt::format("the memory of input '{}', which it shares, or none",
                       inputs_[static_cast<std::size_t>(port.alias)].name),
           "another");
  const ByteRange range = range_of(view);
  for (std::size_t o = 0; o < i && port.alias < 0; ++o)
    if (outputs_[o].view.present && range.overlaps(outputs_[o].range) && share_memory(view, outputs_[o].view))
      refuse("memory of its own", fmt::format("that of output {}", o));
  for (const Port& state : inputs_)
    if (port.alias < 0 && state.is_state && range.overlaps(state.range) && share_memory(view, state.view))
      refuse("memory of its own", fmt::format("that of input '{}', which {}", state.name,
                                              state.is_updated ? "is updated" : "is a result too"));
  port.view = view;
  port.range = range;
}

void GraphSession::run(std::span<const DLTensor* const> inputs, std::span<DLTensor* const> outputs, void* stream) {
  require(!stream || context_.stream(), "{}: stream: expected none on {}, found one", name_, context_.device_spec());
  require(outputs.empty() || outputs.size() == outputs_.size(), "{}: expected {} outputs or none, found {}", name_,
          outputs_.size(), outputs.size());
  take_sizes(inputs);
  for (std::size_t o = 0; o < outputs_.size(); ++o) outputs_[o].view = {};
  // Everything is checked before anything is bound for good: a rejected call leaves only memory bound that the next
  // call replaces.
  for (std::size_t i = 0; i < inputs.size(); ++i) take_input(i, *stored_[i]);
  if (has_moved_) check_updated();
  for (std::size_t o = 0; o < outputs_.size(); ++o)
    take_output(o, outputs.empty() ? nullptr : outputs_[o].in_memory(outputs[o]));
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    Port& port = outputs_[o];
    const bool is_apart =
        std::ranges::none_of(inputs_, [&](const Port& input) { return port.range.overlaps(input.range); });
    const bool wanted = port.view.present && !port.on_host && port.alias < 0 && is_apart;
    port.is_direct = session_->bind_result(port.name, wanted ? port.view.as<std::byte>() : nullptr) && wanted;
  }
  has_run_ = has_moved_ = false;
  last_stream_ = context_.computes() ? memory_.stream(context_, stream) : nullptr;
  if (context_.computes()) copy_inputs(last_stream_);
  session_->run(last_stream_);
  has_run_ = true;
  if (!context_.computes()) return;
  copy_results(last_stream_);
  if (!last_stream_ || (stream && std::ranges::none_of(outputs_, &Port::on_host))) return;
  last_stream_->synchronize();
  session_->executable().check_waits();
}

/// Results that kernels could not write where the caller wants them.
void GraphSession::copy_results(Stream* stream) {
  for (const Port& port : outputs_) {
    if (!port.view.present || port.is_direct || port.alias >= 0) continue;
    copy_rows(session_->output(port.name), port.view.as<std::byte>(),
              [&](std::byte* to, const std::byte* from, std::int64_t bytes) {
                if (port.on_host) stream->download(to, from, bytes);
                else if (stream) stream->copy(to, from, bytes);
                else std::memmove(to, from, static_cast<std::size_t>(bytes));
              });
  }
}

Shape GraphSession::output_shape(std::size_t index, std::span<const DLTensor* const> inputs) {
  const Port& port = output(index);
  take_sizes(inputs);
  return port.seen(port.plain.view).shape;
}

TensorView GraphSession::result_view(std::size_t index) {
  const Port& port = output(index);
  if (!context_.computes())
    fail(Status::unsupported, "output '{}': expected a device that computes, found {}", port.name,
         context_.description());
  require(has_run_, "output '{}': expected a run that succeeded, found none", port.name);
  return port.view.present ? port.view : session_->output(port.name);
}

DLTensor GraphSession::result(std::size_t index) {
  const TensorView stored = result_view(index);
  Port& port = outputs_[index];
  const TensorView view = port.seen(stored);
  port.shape.assign(view.shape.begin(), view.shape.end());
  port.shape.insert(port.shape.end(), view.strides.begin(), view.strides.end());
  std::int64_t* const strides = view.is_dense() ? nullptr : port.shape.data() + view.shape.rank();
  const DLDevice place = port.view.present && port.on_host ? DLDevice{kDLCPU, 0} : handle_->memory;
  return {view.data, place, view.shape.rank(), dl_type_of(view.dtype), port.shape.data(), strides, 0};
}

DLManagedTensor* GraphSession::result_copy(std::size_t index) {
  const TensorView view = result_view(index);
  auto copy = std::make_unique<ManagedCopy>(view.dtype, view.shape);
  copy_rows(view, copy->data(), [&](std::byte* to, const std::byte* from, std::int64_t bytes) {
    if (last_stream_ && !outputs_[index].on_host) last_stream_->download(to, from, bytes);
    else std::memcpy(to, from, static_cast<std::size_t>(bytes));
  });
  if (last_stream_) last_stream_->synchronize();
  session_->executable().check_waits();
  return ManagedCopy::release(std::move(copy), [&](const TensorView& made) { return outputs_[index].seen(made); });
}

}  // namespace cermet::api
