// What a run takes and gives, in memory of the host and of the device.
#include <algorithm>
#include <cstring>

#include "base/error.hpp"
#include "onnx/compiled_model.hpp"

namespace cermet::onnx {
namespace {

void copy_rows(const TensorView& x, const TensorView& y) {
  const Rows from(x), to(y);
  const auto bytes = static_cast<std::size_t>(from.length()) * size_of(x.dtype);
  for (std::int64_t r = 0; r < from.count(); ++r) std::memcpy(to.row(r), from.row(r), bytes);
}

}  // namespace

CompiledModel::StoredTensor CompiledModel::uploaded(const TensorView& host) {
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
    slots_[i] = copies ? uploaded(x.view) : StoredTensor{x.view, nullptr, !context_->stream()};
    copied = copied || copies;
  }
  if (copied) context_->stream()->synchronize();  // the caller's memory is the caller's again
}

/// What the run's sizes are, by their symbols.
void CompiledModel::note_sizes(const std::vector<TensorView>& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i)
    for (std::size_t a = 0; taking_[i]->dims && a < taking_[i]->dims->size(); ++a) {
      const auto range = options_.dims.find((*taking_[i]->dims)[a].name);
      if (range != options_.dims.end()) sizes_.set(symbol_of(range->first), operands[i].shape[static_cast<int>(a)]);
    }
}

/// Inputs of the graph that follow from the sizes: computed where these changed, into memory that is there.
void CompiledModel::bind_sizes(Step& step) {
  const auto& wanted = step.part.sizes;
  const bool is_first = step.sizes.empty();
  SymbolValues greatest;
  for (const SymbolRange& r : ranges_) greatest.set(r.symbol, r.range.greatest);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    OwnedTensor made = wanted[i].second.value(sizes_);
    const std::int64_t bytes = dense_bytes(made.view.dtype, made.view.shape);
    const bool is_same =
        !is_first && made.view.shape == step.sizes[i].view.shape &&
        std::memcmp(made.view.data, step.size_elements[i].view.data, static_cast<std::size_t>(bytes)) == 0;
    if (is_first) {
      StoredTensor& held = step.sizes.emplace_back();
      if (context_->stream()) {
        auto memory = std::make_shared<DeviceBuffer>(
            context_->device().allocate(std::max<std::int64_t>(wanted[i].second.type.bytes().value(greatest), 1)));
        held = {{memory->data(), made.view.dtype, made.view.shape}, memory, false};
      }
      step.size_elements.emplace_back();
    }
    if (!is_same) {
      StoredTensor& held = step.sizes[i];
      if (context_->stream()) {
        context_->stream()->upload(held.view.data, made.view.data, bytes);
        context_->stream()->synchronize();
        held.view = TensorView(held.view.data, made.view.dtype, made.view.shape);
      } else {
        held = {made.view, nullptr, true};
      }
      step.size_elements[i] = std::move(made);
    }
    step.session->bind(wanted[i].first, step.sizes[i].view);
  }
}

/// A result may be an input or a view of one, whose memory is the caller's.
void CompiledModel::keep_operands_that_are_results(std::size_t operands) {
  const auto is_callers = [&](const TensorView& view) {
    for (std::size_t i = 0; i < operands; ++i) {
      const TensorView& x = slots_[i].view;
      const auto *begin = x.as<const std::byte>(), *at = view.as<const std::byte>();
      if (!slots_[i].owner && at >= begin && at < begin + std::max<std::int64_t>(dense_bytes(x.dtype, x.shape), 1))
        return true;
    }
    return false;
  };
  for (const Operand result : taken_.back()->part.results) {
    const auto slot = static_cast<std::size_t>(result.slot);
    const TensorView from = slots_[slot].view;
    if (slots_[slot].owner || !from.present || !is_callers(from)) continue;
    const std::int64_t bytes = dense_bytes(from.dtype, from.shape);
    if (Stream* stream = context_->stream()) {
      CERMET_ASSERT(from.is_dense());
      auto memory = std::make_shared<DeviceBuffer>(context_->device().allocate(std::max<std::int64_t>(bytes, 1)));
      stream->copy(memory->data(), from.data, bytes);
      stream->synchronize();
      slots_[slot] = {{memory->data(), from.dtype, from.shape}, memory, false};
    } else {
      auto copy = std::make_shared<OwnedTensor>(from.dtype, from.shape);
      copy_rows(from, copy->view);
      slots_[slot] = {copy->view, copy, true};
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
  if (const std::optional<SizeTensor> sizes = size_tensor(slot)) {
    const OwnedTensor made = sizes->value(sizes_);
    return TensorData(made.view.type(),
                      std::span(made.view.as<const std::byte>(),
                                static_cast<std::size_t>(dense_bytes(made.view.dtype, made.view.shape))));
  }
  if (!slot.expression) return {};
  return Importer(*model_, table_, {}, last.part.state).known(result);
}

TensorView CompiledModel::output(std::size_t i) {
  if (!context_->stream()) return host_output(i);
  StoredTensor& held = slots_[static_cast<std::size_t>(taken_.back()->part.results.at(i).slot)];
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
  const StoredTensor& held = slots_[static_cast<std::size_t>(taken_.back()->part.results.at(i).slot)];
  if (held.on_host && held.view.is_dense()) return held.view;
  OwnedTensor& copy = downloaded_.emplace_back(held.view.dtype, held.view.shape);
  if (context_->stream()) {
    CERMET_ASSERT(held.view.is_dense());
    context_->stream()->download(copy.view.data, held.view.data, dense_bytes(held.view.dtype, held.view.shape));
    context_->stream()->synchronize();
    return copy.view;
  }
  copy_rows(held.view, copy.view);
  return copy.view;
}

}  // namespace cermet::onnx
