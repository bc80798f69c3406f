#include "select/tune/operand_sets.hpp"

#include <algorithm>
#include <cstring>

#include "device/device.hpp"
#include "select/bound_op.hpp"

namespace cermet {
namespace {

constexpr std::int64_t alignment = 256;  // of operands, as a device allocates
constexpr unsigned char unwritten = 0xff;

}  // namespace

OperandSets::OperandSets(const Region& region, const Kernel& kernel, const DeviceQueue& queue, ThreadPool& pool,
                         const OperandValues& values)
    : region_(region), kernel_(kernel), queue_(queue), pool_(pool), values_(values) {
  for (std::size_t i = 0; i < region.operands.size(); ++i)
    inputs_.push_back(region.has(i) ? allocate(region.operand_type(i), layout_of(i)) : Slice{});
  for (std::size_t o = 0; o < region.results.size(); ++o) {
    const auto shared = shared_operand(region, o);
    outputs_.push_back(shared ? inputs_[*shared] : allocate(region.result_type(o), nullptr));
  }
}

std::int64_t OperandSets::set_bytes() const { return std::max(set_bytes_, alignment); }

void OperandSets::make(std::int64_t sets, std::int64_t most_drawn) {
  if (queue_.device) {
    device_memory_ = queue_.device->allocate(sets * set_bytes());
    base_ = device_memory_.data();
  } else {
    host_memory_ = AlignedBuffer(sets * set_bytes());
    base_ = host_memory_.data();
  }
  const std::int64_t drawn = std::clamp<std::int64_t>(most_drawn / set_bytes(), 1, sets);
  draw(drawn);
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (region_.has(i) && layout_of(i)) pack(i, drawn);
  for (std::int64_t done = drawn; done < sets; done *= 2)
    copy(base_ + done * set_bytes(), base_, std::min(done, sets - done) * set_bytes());
  if (queue_.device) queue_.stream->synchronize();
  views_.resize(static_cast<std::size_t>(sets));
  for (std::int64_t s = 0; s < sets; ++s) {
    Views& views = views_[static_cast<std::size_t>(s)];
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      views.inputs.push_back(region_.has(i) ? view(s, inputs_[i], region_.operand_type(i)) : TensorView());
    for (std::size_t o = 0; o < outputs_.size(); ++o)
      views.outputs.push_back(view(s, outputs_[o], region_.result_type(o)));
  }
}

void OperandSets::reset_first() {
  bool shares = false;
  for (std::size_t o = 0; o < outputs_.size(); ++o) {
    if (shared_operand(region_, o)) shares = true;
    else if (queue_.device) queue_.stream->fill(at(0, outputs_[o]), unwritten, outputs_[o].bytes);
    else if (outputs_[o].bytes > 0)
      std::memset(at(0, outputs_[o]), unwritten, static_cast<std::size_t>(outputs_[o].bytes));
  }
  if (shares) draw(1);
}

const WeightLayout* OperandSets::layout_of(std::size_t i) const {
  return region_.is_constant(i) ? kernel_.weight_layout(region_, i) : nullptr;
}

OperandSets::Slice OperandSets::allocate(const TensorType& type, const WeightLayout* layout) {
  const Slice slice{set_bytes_, layout ? packed_bytes(*layout, type) : type.bytes().constant()};
  set_bytes_ += round_up(slice.bytes, alignment);
  return slice;
}

TensorView OperandSets::view(std::int64_t set, const Slice& slice, const TensorType& type) const {
  return {at(set, slice), type.dtype, bind(type.dims, {})};
}

void OperandSets::copy(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (queue_.device) queue_.stream->copy(to, from, bytes);
  else std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

/// Operands that kernels read as they are, in the first `sets` sets: made and, on a device, sent in pieces.
void OperandSets::draw(std::int64_t sets) {
  constexpr std::int64_t largest_piece = std::int64_t{64} << 20;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!region_.has(i) || layout_of(i)) continue;
    const BenchFill values = bench_fill(region_, i, values_);
    const std::int64_t size = byte_size(region_.operand_type(i).dtype), count = inputs_[i].bytes / size;
    if (!queue_.device) {
      for (std::int64_t set = 0; set < sets; ++set) values.write(at(set, inputs_[i]), 0, count, set, pool_);
      continue;
    }
    const std::int64_t piece = std::min(count, largest_piece / size);
    const AlignedBuffer staging(piece * size);
    for (std::int64_t set = 0; set < sets; ++set)
      for (std::int64_t first = 0; first < count; first += piece) {
        const std::int64_t n = std::min(piece, count - first);
        values.write(staging.data(), first, n, set, pool_);
        queue_.stream->upload(at(set, inputs_[i]) + first * size, staging.data(), n * size);
        queue_.stream->synchronize();
      }
  }
}

/// A weight in the layout that the kernel wants, the same in each of the first `sets` sets.
void OperandSets::pack(std::size_t i, std::int64_t sets) {
  const OwnedTensor weight = make_bench_operand(region_.operand_type(i), bench_fill(region_, i, values_), pool_);
  AlignedBuffer packed(inputs_[i].bytes);
  pack_weight(*layout_of(i), weight.view, packed.data(), pool_);
  for (std::int64_t set = 0; set < sets; ++set) {
    if (queue_.device) queue_.stream->upload(at(set, inputs_[i]), packed.data(), packed.size());
    else std::memcpy(at(set, inputs_[i]), packed.data(), static_cast<std::size_t>(packed.size()));
  }
  if (queue_.device) queue_.stream->synchronize();
}

}  // namespace cermet
