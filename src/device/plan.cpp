#include "device/plan.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace cermet {

ByteRange byte_range(const TensorView& view) {
  if (!view.present || view.elements() == 0) return {};
  std::int64_t last = 0;
  for (int axis = 0; axis < view.shape.rank(); ++axis) last += (view.shape[axis] - 1) * view.strides[axis];
  return {view.as<const std::byte>(), (last + 1) * byte_size(view.dtype)};
}

void Plan::clear() {
  launches_.clear();
  ranges_.clear();
  products_.clear();
  offsets_.clear();
  parameters_used_ = 0;
  step_ = 0;
}

Launch& Plan::add(Launch::Kind kind) {
  Launch& launch = launches_.emplace_back();
  launch.kind = kind;
  launch.step = step_;
  return launch;
}

Launch::Span Plan::keep(std::span<const ByteRange> ranges) {
  const Launch::Span span{static_cast<std::uint32_t>(ranges_.size()), static_cast<std::uint32_t>(ranges.size())};
  ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
  return span;
}

Launch& Plan::add(Launch::Kind kind, const Launch& launch, std::span<const std::byte> parameters) {
  Launch& added = launches_.emplace_back(launch);
  added.kind = kind;
  added.step = step_;
  const auto bytes = static_cast<std::int64_t>(parameters.size());
  const std::int64_t needed = parameters_used_ + round_up(bytes, AlignedBuffer::alignment);
  if (needed > parameters_.size()) {
    AlignedBuffer larger(std::max(needed, 2 * parameters_.size()));
    if (parameters_used_ > 0)
      std::memcpy(larger.data(), parameters_.data(), static_cast<std::size_t>(parameters_used_));
    parameters_ = std::move(larger);
  }
  if (bytes > 0) std::memcpy(parameters_.data() + parameters_used_, parameters.data(), parameters.size());
  added.parameters = {static_cast<std::uint32_t>(parameters_used_), static_cast<std::uint32_t>(bytes)};
  parameters_used_ = needed;
  return added;
}

void Plan::add_program(const Launch& launch, std::span<const std::byte> parameters) {
  add(Launch::Kind::program, launch, parameters);
}

void Plan::add_function(const Launch& launch, std::span<const std::byte> parameters,
                        std::span<const std::uint32_t> offsets) {
  CERMET_ASSERT(offsets.size() <= most_parameters);
  add(Launch::Kind::function, launch, parameters).offsets = {static_cast<std::uint32_t>(offsets_.size()),
                                                             static_cast<std::uint32_t>(offsets.size())};
  offsets_.insert(offsets_.end(), offsets.begin(), offsets.end());
}

void Plan::add_fill(void* memory, unsigned char value, std::int64_t bytes) {
  add(Launch::Kind::fill).fill = value;
  const ByteRange written{static_cast<const std::byte*>(memory), bytes};
  complete(launches_.back(), {}, {&written, 1});  // what it does, not only what it touches
  launches_.back().declared = true;
}

void Plan::add_product(const MatrixProduct& product) {
  add(Launch::Kind::product).program = static_cast<std::uint32_t>(products_.size());
  products_.push_back(product);
}

void Plan::publish(const Launch::Published& results) {
  CERMET_ASSERT(!launches_.empty());
  if (!wants_ranges_) launches_.back().published = results;
}

void Plan::declare(std::span<const ByteRange> reads, std::span<const ByteRange> writes) {
  if (!wants_ranges_) return;
  CERMET_ASSERT(!launches_.empty());
  complete(launches_.back(), reads, writes);
  launches_.back().declared = true;
}

void Plan::complete(Launch& launch, std::span<const ByteRange> reads, std::span<const ByteRange> writes) {
  launch.reads = keep(reads);
  launch.writes = keep(writes);
}

void Plan::enqueue(const Launch& launch, Stream& stream) const {
  switch (launch.kind) {
    case Launch::Kind::program: {
      std::uint32_t items = launch.items;
      void* arguments[] = {parameters_.data() + launch.parameters.first, &items};
      return stream.launch(launch.shape, launch.function, arguments);
    }
    case Launch::Kind::function: {
      std::array<void*, most_parameters> arguments{};
      const std::span<const std::uint32_t> starts = offsets(launch);
      for (std::size_t i = 0; i < starts.size(); ++i)
        arguments[i] = parameters_.data() + launch.parameters.first + starts[i];
      return stream.launch(launch.shape, launch.function, arguments.data());
    }
    case Launch::Kind::fill: {
      const ByteRange& written = writes(launch).front();
      return stream.fill(const_cast<std::byte*>(written.begin), launch.fill, written.bytes);
    }
    case Launch::Kind::product: return stream.multiply(products_[launch.program]);
    case Launch::Kind::call: break;
  }
  CERMET_ASSERT(launch.kind != Launch::Kind::call);
}

void Plan::enqueue(Stream& stream) const {
  for (const Launch& launch : launches_) enqueue(launch, stream);
}

std::int64_t Plan::fallbacks() const { return std::ranges::count(launches_, true, &Launch::fallback); }

}  // namespace cermet
