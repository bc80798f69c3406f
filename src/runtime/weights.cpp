#include "runtime/weights.hpp"

#include "runtime/constants.hpp"
#include "select/bound_op.hpp"

namespace cermet {
namespace {

/// Packs matrix after matrix, so that no more than one unpacked matrix is held.
void load_packed(const LoadWeight& load, const std::string& name, const TensorType& type, const WeightLayout& layout,
                 std::byte* destination, Scratch& scratch, ThreadPool& pool) {
  const Shape shape = bind(type.dims, {});
  const bool stacked = shape.rank() == 3;
  const Shape matrix = stacked ? Shape{shape[1], shape[2]} : shape;
  const Scratch::Tensor staging(scratch, type.dtype, matrix);
  const std::int64_t step = round_up(layout.bytes({type.dtype, to_dims(matrix)}), AlignedBuffer::alignment);
  for (std::int64_t slice = 0; slice < (stacked ? shape[0] : 1); ++slice) {
    load(name, stacked ? slice : -1, staging.view);
    pack_weight(layout, staging.view, destination + slice * step, pool);
  }
}

}  // namespace

WeightStore::~WeightStore() {
  if (!queue_.stream) return;
  try {
    queue_.stream->synchronize();  // staging memory may still be read
  } catch (const Error&) {         // a device that failed reads nothing more
  }
}

WeightStore::StoredWeight WeightStore::load_host(const LoadWeight& load, const std::string& name,
                                                 const TensorType& type, const WeightLayout* layout) {
  StoredWeight stored;
  stored.host = AlignedBuffer(layout ? packed_bytes(*layout, type) : type.bytes().constant());
  if (layout) load_packed(load, name, type, *layout, stored.host.data(), scratch_, *pool_);
  else load(name, -1, TensorView(stored.host.data(), type.dtype, bind(type.dims, {})));
  return stored;
}

/// Pinned memory of at least this size that no upload reads any more.
WeightStore::Staging& WeightStore::next_staging(std::int64_t bytes) {
  Staging& staging = staging_[turn_++ % staging_.size()];
  if (staging.uploaded) queue_.stream->synchronize_event(*staging.uploaded);
  if (staging.memory.size() < bytes) {
    staging.memory = {};
    staging.memory = queue_.device->allocate_host(bytes);
  }
  return staging;
}

WeightStore::StoredWeight WeightStore::load_device(const LoadWeight& load, const std::string& name,
                                                   const TensorType& type, const WeightLayout* layout) {
  StoredWeight stored;
  const std::int64_t total = layout ? packed_bytes(*layout, type) : type.bytes().constant();
  stored.device = queue_.device->allocate(total);
  const Shape shape = bind(type.dims, {});
  const std::int64_t slices = shape.rank() == 3 ? shape[0] : 1;
  const std::int64_t step = total / std::max<std::int64_t>(slices, 1);
  for (std::int64_t slice = 0; slice < slices && total > 0; ++slice) {
    Staging& staging = next_staging(step);
    const Shape matrix = shape.rank() == 3 ? Shape{shape[1], shape[2]} : shape;
    if (layout) {
      const Scratch::Tensor plain(scratch_, type.dtype, matrix);
      load(name, shape.rank() == 3 ? slice : -1, plain.view);
      pack_weight(*layout, plain.view, staging.memory.data(), *pool_);
    } else {
      load(name, shape.rank() == 3 ? slice : -1, TensorView(staging.memory.data(), type.dtype, matrix));
    }
    queue_.stream->upload(stored.device.data() + slice * step, staging.memory.data(), step);
    if (!staging.uploaded) staging.uploaded = queue_.stream->make_event();
    queue_.stream->record(*staging.uploaded);
  }
  return stored;
}

TensorView WeightStore::get(const std::string& name, const TensorType& type, const WeightLayout* layout) {
  return get(name, name, type, layout, load_);
}

TensorView WeightStore::get(const Graph& graph, ValueId constant, const WeightLayout* layout) {
  const Value& value = graph.value(constant);
  return get(constant_key(graph, constant), value.name, value.type, layout,
             constant_loader(graph, constant, load_, scratch_, *pool_));
}

TensorView WeightStore::get(const std::string& key, const std::string& name, const TensorType& type,
                            const WeightLayout* layout, const LoadWeight& load) {
  const auto form = std::pair(key, fmt::format("{} {}", type.to_string(), layout ? layout->name : "row-major"));
  auto stored = weights_.find(form);
  if (stored == weights_.end()) {
    StoredWeight loaded = queue_.device ? load_device(load, name, type, layout) : load_host(load, name, type, layout);
    bytes_ += queue_.device ? loaded.device.size() : loaded.host.size();
    stored = weights_.emplace(form, std::move(loaded)).first;
  }
  return TensorView(stored->second.data(), type.dtype, bind(type.dims, {}));
}

}  // namespace cermet
