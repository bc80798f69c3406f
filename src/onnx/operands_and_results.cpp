// What a run takes and gives, in memory of the host and of the device.
#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "onnx/compiled_model.hpp"

namespace cermet::onnx {

CompiledModel::Held CompiledModel::uploaded(const TensorView& host) {
  const std::int64_t bytes = dense_bytes(host.dtype, host.shape);
  auto memory = std::make_shared<DeviceBuffer>(context_->device().allocate(std::max<std::int64_t>(bytes, 1)));
  context_->stream()->upload(memory->data(), host.data, bytes);
  return {{memory->data(), host.dtype, host.shape}, memory, false};
}

/// begin_import gives inputs the first slots.
void CompiledModel::hold_operands(const std::vector<ModelOperand>& operands) {
  bool copied = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const ModelOperand& x = operands[i];
    const bool copies = context_->stream() && !x.on_device;
    held_[i] = copies ? uploaded(x.view) : Held{x.view, nullptr, !context_->stream()};
    copied = copied || copies;
  }
  if (copied) context_->stream()->synchronize();  // the caller's memory is the caller's again
}

/// A result may be an input, whose memory is the caller's.
void CompiledModel::keep_operands_that_are_results(std::size_t operands) {
  for (const Operand result : taken_.back()->part.results) {
    const auto slot = static_cast<std::size_t>(result.slot);
    if (slot >= operands || held_[slot].owner) continue;
    const TensorView from = held_[slot].view;
    const std::int64_t bytes = dense_bytes(from.dtype, from.shape);
    if (Stream* stream = context_->stream()) {
      auto memory = std::make_shared<DeviceBuffer>(context_->device().allocate(std::max<std::int64_t>(bytes, 1)));
      stream->copy(memory->data(), from.data, bytes);
      stream->synchronize();
      held_[slot] = {{memory->data(), from.dtype, from.shape}, memory, false};
    } else {
      auto copy = std::make_shared<OwnedTensor>(from.dtype, from.shape);
      if (bytes > 0) std::memcpy(copy->view.data, from.data, static_cast<std::size_t>(bytes));
      held_[slot] = {copy->view, copy, true};
    }
  }
}

/// The elements of a result that no launch computes.
std::optional<TensorData> CompiledModel::constant_output(std::size_t i) {
  Step& last = *taken_.back();
  const Operand result = last.part.results.at(i);
  const Slot& slot = last.part.state.slots[static_cast<std::size_t>(result.slot)];
  if (slot.data) return slot.data;
  if (slot.tensor) return slot.tensor->data();
  if (!slot.expression) return {};
  return Importer(*model_, table_, {}, last.part.state).known(result);
}

TensorView CompiledModel::output(std::size_t i) {
  if (!context_->stream()) return host_output(i);
  Held& held = held_[static_cast<std::size_t>(taken_.back()->part.results.at(i).slot)];
  if (held.view.present) {
    CERMET_ASSERT(held.view.is_dense());
  } else {
    const TensorView host = host_output(i);
    held = uploaded(host);
  }
  context_->stream()->synchronize();
  return held.view;
}

TensorView CompiledModel::host_output(std::size_t i) {
  if (const std::optional<TensorData> data = constant_output(i)) {
    OwnedTensor& copy = downloaded_.emplace_back(data->type().dtype, cermet::bind(data->type().dims, {}));
    std::ranges::copy(data->bytes(), copy.view.as<std::byte>());
    return copy.view;
  }
  const Held& held = held_[static_cast<std::size_t>(taken_.back()->part.results.at(i).slot)];
  if (held.on_host && held.view.is_dense()) return held.view;
  OwnedTensor& copy = downloaded_.emplace_back(held.view.dtype, held.view.shape);
  if (context_->stream()) {
    CERMET_ASSERT(held.view.is_dense());
    context_->stream()->download(copy.view.data, held.view.data, dense_bytes(held.view.dtype, held.view.shape));
    context_->stream()->synchronize();
    return copy.view;
  }
  const Rows from(held.view), to(copy.view);
  const auto bytes = static_cast<std::size_t>(from.length()) * size_of(held.view.dtype);
  for (std::int64_t r = 0; r < from.count(); ++r) std::memcpy(to.row(r), from.row(r), bytes);
  return copy.view;
}

}  // namespace cermet::onnx
