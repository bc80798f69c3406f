#include "cli/bench_op_device.hpp"

#include <algorithm>

#include "cli/interrupt.hpp"

namespace cermet::cli {
namespace {

constexpr std::int64_t alignment = 256;  // of operands, as the device allocates

/// Operands and results in device memory, in equal sets one after the other. Values are generated once on the host; the
/// device repeats them and copies the sets.
class OperandSets {
 public:
  OperandSets(const Problem& problem, const Kernel& kernel, const DeviceQueue& queue, ThreadPool& pool, const OperandValues& values)
      : problem_(problem), kernel_(kernel), queue_(queue), pool_(pool), values_(values) {
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) inputs_.push_back(problem.has(i) ? place(problem.input(i), layout_of(i)) : Place{});
    for (std::size_t o = 0; o < problem.outputs.size(); ++o)
      outputs_.push_back(shared_input(o) ? inputs_[*shared_input(o)] : place(problem.outputs[o], nullptr));
  }

  std::int64_t set_bytes() const { return std::max(set_bytes_, alignment); }

  void make(std::int64_t sets) {
    memory_ = queue_.device->allocate(sets * set_bytes());
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      if (problem_.has(i)) fill(i);
    for (std::int64_t done = 1; done < sets; done *= 2)
      queue_.stream->copy(memory_.data() + done * set_bytes(), memory_.data(), std::min(done, sets - done) * set_bytes());
    queue_.stream->synchronize();
    views_.resize(static_cast<std::size_t>(sets));
    for (std::int64_t s = 0; s < sets; ++s) {
      Views& views = views_[static_cast<std::size_t>(s)];
      for (std::size_t i = 0; i < inputs_.size(); ++i) views.inputs.push_back(problem_.has(i) ? view(s, inputs_[i], problem_.input(i)) : TensorView());
      for (std::size_t o = 0; o < outputs_.size(); ++o) views.outputs.push_back(view(s, outputs_[o], problem_.outputs[o]));
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

  const WeightLayout* layout_of(std::size_t i) const { return problem_.is_constant(i) ? kernel_.weight_layout(problem_, i) : nullptr; }

  std::optional<std::size_t> shared_input(std::size_t output) const {
    const auto& aliases = problem_.op->aliases;
    if (output >= aliases.size() || aliases[output] < 0) return std::nullopt;
    return static_cast<std::size_t>(aliases[output]);
  }

  Place place(const TensorType& type, const WeightLayout* layout) {
    const Place place{set_bytes_, layout ? packed_bytes(*layout, type) : type.bytes().constant()};
    set_bytes_ += round_up(place.bytes, alignment);
    return place;
  }

  TensorView view(std::int64_t set, const Place& place, const TensorType& type) const {
    return {memory_.data() + set * set_bytes() + place.offset, type.dtype, bind(type.dims, {})};
  }

  /// Operand i of the first set.
  void fill(std::size_t i) {
    std::byte* to = memory_.data() + inputs_[i].offset;
    if (const WeightLayout* layout = layout_of(i)) {
      const OwnedTensor weight = make_bench_operand(problem_, i, values_);
      AlignedBuffer packed(inputs_[i].bytes);
      pack_weight(*layout, weight.view, packed.data(), pool_);
      queue_.stream->upload(to, packed.data(), packed.size());
      return queue_.stream->synchronize();
    }
    const OwnedTensor pattern = make_bench_pattern(problem_, i, values_);
    queue_.stream->upload(to, pattern.memory.data(), pattern.memory.size());
    for (std::int64_t done = pattern.memory.size(); done < inputs_[i].bytes; done *= 2)
      queue_.stream->copy(to + done, to, std::min(done, inputs_[i].bytes - done));
    queue_.stream->synchronize();
  }

  const Problem& problem_;
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

DeviceBench bench_on_device(const Problem& problem, const Kernel& kernel, const DeviceQueue& queue, ThreadPool& pool, const DeviceBenchOptions& options) {
  constexpr std::int64_t most_sets = 8192;  // launches of one graph
  OperandSets sets(problem, kernel, queue, pool, options.values);
  DeviceBench result;
  result.copies = options.cold ? std::clamp<std::int64_t>(div_up(4 * queue.device->target()->l2_bytes, sets.set_bytes()) + 1, 1, most_sets) : 1;
  BoundOp op(problem, kernel, pool, queue);
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
