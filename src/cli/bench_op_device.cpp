#include "cli/bench_op_device.hpp"

#include <algorithm>

#include "cli/interrupt.hpp"

namespace cermet::cli {
namespace {

constexpr std::int64_t alignment = 256;  // of operands, as the device allocates

/// Operands and results in device memory, in equal sets one after the other. The host draws the values of the first sets; where they are many, the device
/// copies these for the others.
class OperandSets {
 public:
  OperandSets(const Region& region, const Kernel& kernel, const DeviceQueue& queue, ThreadPool& pool, const OperandValues& values)
      : region_(region), kernel_(kernel), queue_(queue), pool_(pool), values_(values) {
    for (std::size_t i = 0; i < region.operands.size(); ++i) inputs_.push_back(region.has(i) ? place(region.operand_type(i), layout_of(i)) : Place{});
    for (std::size_t o = 0; o < region.results.size(); ++o) {
      const auto shared = shared_operand(region, o);
      outputs_.push_back(shared ? inputs_[*shared] : place(region.result_type(o), nullptr));
    }
  }

  std::int64_t set_bytes() const { return std::max(set_bytes_, alignment); }

  void make(std::int64_t sets) {
    constexpr std::int64_t most_drawn = std::int64_t{1} << 30;
    memory_ = queue_.device->allocate(sets * set_bytes());
    const std::int64_t drawn = std::clamp<std::int64_t>(most_drawn / set_bytes(), 1, sets);
    draw(drawn);
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (region_.has(i) && layout_of(i)) pack(i, drawn);
    for (std::int64_t done = drawn; done < sets; done *= 2)
      queue_.stream->copy(memory_.data() + done * set_bytes(), memory_.data(), std::min(done, sets - done) * set_bytes());
    queue_.stream->synchronize();
    views_.resize(static_cast<std::size_t>(sets));
    for (std::int64_t s = 0; s < sets; ++s) {
      Views& views = views_[static_cast<std::size_t>(s)];
      for (std::size_t i = 0; i < inputs_.size(); ++i) views.inputs.push_back(region_.has(i) ? view(s, inputs_[i], region_.operand_type(i)) : TensorView());
      for (std::size_t o = 0; o < outputs_.size(); ++o) views.outputs.push_back(view(s, outputs_[o], region_.result_type(o)));
    }
  }

  std::span<const TensorView> inputs(std::int64_t set) const { return views_[static_cast<std::size_t>(set)].inputs; }
  std::span<const TensorView> outputs(std::int64_t set) const { return views_[static_cast<std::size_t>(set)].outputs; }

 private:
  struct Place {
    std::int64_t offset = 0, bytes = 0;
  };
  struct Views {
    std::vector<TensorView> inputs, outputs;
  };

  const WeightLayout* layout_of(std::size_t i) const { return region_.is_constant(i) ? kernel_.weight_layout(region_, i) : nullptr; }

  Place place(const TensorType& type, const WeightLayout* layout) {
    const Place place{set_bytes_, layout ? packed_bytes(*layout, type) : type.bytes().constant()};
    set_bytes_ += round_up(place.bytes, alignment);
    return place;
  }

  TensorView view(std::int64_t set, const Place& place, const TensorType& type) const {
    return {memory_.data() + set * set_bytes() + place.offset, type.dtype, bind(type.dims, {})};
  }

  /// Operands that kernels read as they are, in the first `sets` sets: made and sent in pieces.
  void draw(std::int64_t sets) {
    constexpr std::int64_t largest_piece = std::int64_t{64} << 20;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!region_.has(i) || layout_of(i)) continue;
      const BenchFill values = bench_fill(region_, i, values_);
      const std::int64_t size = static_cast<std::int64_t>(size_of(region_.operand_type(i).dtype)), count = inputs_[i].bytes / size;
      const std::int64_t piece = std::min(count, largest_piece / size);
      const AlignedBuffer staging(piece * size);
      for (std::int64_t set = 0; set < sets; ++set)
        for (std::int64_t first = 0; first < count; first += piece) {
          const std::int64_t n = std::min(piece, count - first);
          values.write(staging.data(), first, n, set, pool_);
          queue_.stream->upload(memory_.data() + set * set_bytes() + inputs_[i].offset + first * size, staging.data(), n * size);
          queue_.stream->synchronize();
        }
    }
  }

  /// A weight in the layout that the kernel wants, the same in each of the first `sets` sets.
  void pack(std::size_t i, std::int64_t sets) {
    const OwnedTensor weight = make_bench_operand(region_.operand_type(i), bench_fill(region_, i, values_), pool_);
    AlignedBuffer packed(inputs_[i].bytes);
    pack_weight(*layout_of(i), weight.view, packed.data(), pool_);
    for (std::int64_t set = 0; set < sets; ++set) queue_.stream->upload(memory_.data() + set * set_bytes() + inputs_[i].offset, packed.data(), packed.size());
    queue_.stream->synchronize();
  }

  const Region& region_;
  const Kernel& kernel_;
  DeviceQueue queue_;
  ThreadPool& pool_;
  OperandValues values_;
  std::vector<Place> inputs_, outputs_;
  std::int64_t set_bytes_ = 0;
  DeviceBuffer memory_;
  std::vector<Views> views_;
};

}  // namespace

DeviceBench bench_on_device(const Region& region, const Choice& choice, const DeviceQueue& queue, ThreadPool& pool, const DeviceBenchOptions& options) {
  constexpr std::int64_t most_sets = 8192;  // launches of one graph
  OperandSets sets(region, *choice.kernel, queue, pool, options.values);
  DeviceBench result;
  result.copies = options.cold ? std::clamp<std::int64_t>(div_up(4 * queue.device->target()->l2_bytes, sets.set_bytes()) + 1, 1, most_sets) : 1;
  BoundOp op(region, choice, pool, queue);
  sets.make(result.copies);
  ReplayOptions replay;
  replay.seconds = options.seconds;
  replay.between = stop_if_interrupted;
  result.times = time_replays(
      *queue.stream, result.copies, [&](std::int64_t set) { op.run(sets.inputs(set), sets.outputs(set)); }, replay);
  result.fallbacks = op.fallbacks();
  return result;
}

}  // namespace cermet::cli
