#include "runtime/weights.hpp"

#include "select/bound_op.hpp"

namespace cermet {
namespace {

/// Packs matrix after matrix, so that no more than one unpacked matrix is held.
void load_packed(const LoadWeight& load, const std::string& name, const TensorType& type, const WeightLayout& layout, std::byte* destination,
                 ThreadPool& pool) {
  const Shape shape = bind(type.dims, {});
  const bool stacked = shape.rank() == 3;
  const Shape matrix = stacked ? Shape{shape[1], shape[2]} : shape;
  const OwnedTensor staging(type.dtype, matrix);
  const std::int64_t step = round_up(layout.bytes({type.dtype, to_dims(matrix)}), AlignedBuffer::alignment);
  for (std::int64_t slice = 0; slice < (stacked ? shape[0] : 1); ++slice) {
    load(name, stacked ? slice : -1, staging.view);
    pack_weight(layout, staging.view, destination + slice * step, pool);
  }
}

}  // namespace

TensorView WeightStore::get(const std::string& name, const TensorType& type, const WeightLayout* layout) {
  const auto key = std::pair(name, fmt::format("{} {}", type.to_string(), layout ? layout->name : "row-major"));
  const Shape shape = bind(type.dims, {});
  auto held = held_.find(key);
  if (held == held_.end()) {
    AlignedBuffer memory(layout ? packed_bytes(*layout, type) : type.bytes().constant());
    if (layout) load_packed(load_, name, type, *layout, memory.data(), *pool_);
    else load_(name, -1, TensorView(memory.data(), type.dtype, shape));
    bytes_ += memory.size();
    held = held_.emplace(key, std::pair(std::move(memory), type)).first;
  }
  return TensorView(held->second.first.data(), type.dtype, shape);
}

}  // namespace cermet
