#include "runtime/weights.hpp"

#include <algorithm>

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

WeightStore::StoredWeight WeightStore::allocate(const TensorType& type, const WeightLayout* layout) const {
  const std::int64_t bytes = layout ? packed_bytes(*layout, type) : type.bytes().constant();
  StoredWeight stored;
  if (Device* const device = queue_.device ? queue_.device : host_) stored.device = device->allocate(bytes);
  else stored.host = AlignedBuffer(bytes);
  return stored;
}

void WeightStore::fill_host(const LoadWeight& load, const std::string& name, const TensorType& type,
                            const WeightLayout* layout, std::byte* destination) {
  if (layout) load_packed(load, name, type, *layout, destination, scratch_, *pool_);
  else load(name, -1, TensorView(destination, type.dtype, bind(type.dims, {})));
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

void WeightStore::fill_device(const LoadWeight& load, const std::string& name, const TensorType& type,
                              const WeightLayout* layout, std::byte* destination) {
  const std::int64_t total = layout ? packed_bytes(*layout, type) : type.bytes().constant();
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
    queue_.stream->upload(destination + slice * step, staging.memory.data(), step);
    if (!staging.uploaded) staging.uploaded = queue_.stream->make_event();
    queue_.stream->record(*staging.uploaded);
  }
}

void WeightStore::replace(const std::string& name) {
  ++version_;
  for (auto& [form, stored] : weights_)
    stored.stale = stored.stale || std::ranges::find(stored.from, name) != stored.from.end();
}

void WeightStore::wait() const {
  if (queue_.stream) queue_.stream->synchronize();
}

TensorView WeightStore::get(const std::string& name, const TensorType& type, const WeightLayout* layout) {
  return get(name, name, type, layout, load_, {name});
}

TensorView WeightStore::get(const Graph& graph, ValueId constant, const WeightLayout* layout) {
  const Value& value = graph.value(constant);
  return get(constant_key(graph, constant), value.name, value.type, layout,
             constant_loader(graph, constant, load_, scratch_, *pool_), loaded_names(graph, constant));
}

TensorView WeightStore::get(const std::string& key, const std::string& name, const TensorType& type,
                            const WeightLayout* layout, const LoadWeight& load, std::vector<std::string> from) {
  if (!layout && borrow_ && key == name)
    if (const TensorView borrowed = borrow_(name); borrowed.present) return borrowed;
  const auto form = std::pair(key, fmt::format("{} {}", type.to_string(), layout ? layout->name : "row-major"));
  auto stored = weights_.find(form);
  const auto fill = [&](std::byte* destination) {
    if (queue_.device) fill_device(load, name, type, layout, destination);
    else fill_host(load, name, type, layout, destination);
  };
  if (stored == weights_.end()) {
    StoredWeight made = allocate(type, layout);
    fill(made.data());
    made.from = std::move(from);
    bytes_ += std::max(made.device.size(), made.host.size());
    stored = weights_.emplace(form, std::move(made)).first;
  } else if (stored->second.stale) {
    fill(stored->second.data());
    stored->second.stale = false;
  }
  return TensorView(stored->second.data(), type.dtype, bind(type.dims, {}));
}

}  // namespace cermet
