// What the items of decoding attention leave each other of a span that they share: parts of its rows, in a scratch that
// needs no preparation.
#pragma once

#include "kernel/cuda/device/attention/decode_block.cuh"
#include "kernel/cuda/device/ptx/global.cuh"

namespace cermet::attention {

/// A flag says that a part is complete; it has this value then, and is cleared by whoever adds the parts up. Any other
/// content means "not yet".
inline constexpr uint64_t part_is_complete = 0x9e3779b97f4a7c15u;

/// Two flags for each item, then the parts. An item leaves at most two parts: number 0 of the span that its share
/// begins with, number 1 of the span that it ends with. Where all items run together, the one that ends a span waits
/// for the others, and says nothing of its own part. Otherwise nobody waits: everyone looks whether his part was the
/// last, and whoever finds all of them adds them up. Two may find that at once, and write the same bits.
template <int Rows, int ValueSize, class Team>
struct Parts {
  void* scratch;
  int blocks;
  CERMET_DEVICE uint64_t* flag(int block, int number) const {
    return static_cast<uint64_t*>(scratch) + (Team::together ? 0 : number * blocks) + block;
  }
  /// [Rows] maxima (times log2 e), [Rows] sums, [Rows, ValueSize] outputs.
  CERMET_DEVICE float* part(int block, int number) const {
    return reinterpret_cast<float*>(static_cast<char*>(scratch) + decode_flag_bytes(blocks)) +
           (2 * block + number) * int64_t{decode_part_floats(Rows, ValueSize)};
  }
  static CERMET_DEVICE float* output(float* part, int r, int d) { return part + 2 * Rows + r * ValueSize + d; }

  static CERMET_DEVICE void write(float* part, int r, int d, const RowPart& x) {
    *reinterpret_cast<Vector<float, 4>*>(output(part, r, d)) = {x.output[0], x.output[1], x.output[2], x.output[3]};
    if (d == 0) part[r] = x.maximum, part[Rows + r] = x.sum;
  }
  /// After a barrier that follows the writes of all threads.
  CERMET_DEVICE void announce(int block, int number) const {
    if (Team::rank() == 0) ptx::store_release(flag(block, number), part_is_complete);
  }
  /// Waits for the parts of items first .. last, which run at the same time, and clears their flags.
  CERMET_DEVICE void wait(int first, int last) const {
    for (int block = first + static_cast<int>(Team::rank()); block <= last; block += Team::size) {
      while (ptx::load_acquire(flag(block, 0)) != part_is_complete) {
      }
      *flag(block, 0) = 0;
    }
    Team::sync();
  }
  /// Whether the parts of items first .. last are complete: number 0, but for the first. Clears their flags then. This
  /// item has announced its own, and the fence puts that before its look at the others, so that of several items the
  /// last to look finds all.
  CERMET_DEVICE bool take_if_complete(int first, int last, int first_number) const {
    bool missing = false;
    if (Team::warp() == 0) {
      __syncwarp();  // the first lane announced the part
      ptx::fence_sequential();
      for (int block = first + static_cast<int>(lane_index()); block <= last; block += 32)
        missing |= ptx::load_acquire(flag(block, block == first ? first_number : 0)) != part_is_complete;
    }
    if (Team::any(missing)) return false;
    for (int block = first + static_cast<int>(Team::rank()); block <= last; block += Team::size)
      *flag(block, block == first ? first_number : 0) = 0;
    return true;
  }
};

}  // namespace cermet::attention
