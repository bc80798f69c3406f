#include "select/bound_op.hpp"

namespace cermet {
namespace {

/// What a layout packs at a time: a matrix of a stack of rank 3, else all of the weight, which may be that of a
/// convolution.
TensorType unit_of(const TensorType& weight) {
  return weight.rank() != 3 ? weight : TensorType{weight.dtype, {weight.dims[1], weight.dims[2]}};
}

}  // namespace

std::int64_t packed_bytes(const WeightLayout& layout, const TensorType& weight) {
  const std::int64_t matrix = layout.bytes(unit_of(weight));
  return weight.rank() != 3 ? matrix : round_up(matrix, AlignedBuffer::alignment) * weight.dims[0].constant();
}

void pack_weight(const WeightLayout& layout, const TensorView& weight, std::byte* destination, ThreadPool& pool) {
  if (weight.shape.rank() != 3) return layout.pack(weight, destination, pool);
  const std::int64_t step = round_up(layout.bytes(unit_of(weight.type())), AlignedBuffer::alignment);
  for (std::int64_t e = 0; e < weight.shape[0]; ++e) {
    std::byte* matrix = weight.as<std::byte>() + e * weight.strides[0] * byte_size(weight.dtype);
    layout.pack(
        TensorView(matrix, weight.dtype, {weight.shape[1], weight.shape[2]}, {weight.strides[1], weight.strides[2]}),
        destination + e * step, pool);
  }
}

BoundOp::BoundOp(Region region, Choice choice, ThreadPool& pool, const DeviceQueue& queue)
    : region_(std::move(region)), choice_(std::move(choice)), pool_(&pool), queue_(queue) {
  launch_ = bind_kernel(*choice_.kernel, region_, choice_.config);
  workspace_bytes_ = choice_.kernel->workspace(region_, choice_.config, pool.size());
  packed_.resize(region_.operands.size());
  packed_on_device_.resize(region_.operands.size());
  operands_.resize(region_.operands.size());
  if (!choice_.kernel->programs) return;
  CERMET_ASSERT(queue_.programs != nullptr);
  programs_ = queue_.programs->get(choice_.kernel->programs(region_, choice_.config));
}

void BoundOp::prepack(std::size_t operand, const TensorView& weight) {
  const WeightLayout* layout = choice_.kernel->weight_layout(region_, operand);
  if (!layout) return;
  const std::int64_t bytes = packed_bytes(*layout, weight.type());
  AlignedBuffer packed = packed_[operand].size() == bytes ? std::move(packed_[operand]) : AlignedBuffer(bytes);
  pack_weight(*layout, weight, packed.data(), *pool_);
  if (choice_.kernel->programs) {
    packed_on_device_[operand] = queue_.device->allocate(packed.size());
    queue_.stream->upload(packed_on_device_[operand].data(), packed.data(), packed.size());
    queue_.stream->synchronize();
  } else {
    packed_[operand] = std::move(packed);
  }
}

void BoundOp::run(std::span<const TensorView> inputs, std::span<const TensorView> outputs, std::byte* workspace,
                  Stream* stream) {
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    operands_[i] = i < inputs.size() ? inputs[i] : TensorView();
    if (packed_[i].data()) operands_[i].data = packed_[i].data();
    if (packed_on_device_[i].data()) operands_[i].data = packed_on_device_[i].data();
  }
  Stream* const used = stream ? stream : queue_.stream;
  if (!workspace && workspace_bytes_ > 0) workspace = own_workspace(used);
  if (!choice_.kernel->programs) return launch_({operands_, outputs, workspace, pool_});
  plan_.clear();
  const cuda::TaskQueue queue(*queue_.device, plan_, programs_);
  launch_({operands_, outputs, workspace, pool_, &queue});
  plan_.enqueue(*used);
  fallbacks_ += plan_.fallbacks();
}

std::byte* BoundOp::own_workspace(Stream* stream) {
  if (choice_.kernel->programs) {
    if (!device_workspace_.data()) {
      device_workspace_ = queue_.device->allocate(workspace_bytes_);
      stream->fill(device_workspace_.data(), 0,
                   workspace_bytes_);  // once: attention's flags may hold anything, but initcheck reports reads of
                                       // uninitialized memory
    }
    return device_workspace_.data();
  }
  if (!own_workspace_.data()) own_workspace_ = AlignedBuffer(workspace_bytes_);
  return own_workspace_.data();
}

}  // namespace cermet
