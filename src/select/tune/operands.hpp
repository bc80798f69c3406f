// Operands for measuring an operator: random values, and legal ones where values are indices.
#pragma once

#include <optional>
#include <string_view>

#include "base/buffer.hpp"
#include "base/thread_pool.hpp"
#include "op/schema/region.hpp"

namespace cermet {

/// How a paged cache lies in memory: pages in the order of the tokens, or anywhere; with `uneven`, anywhere and
/// sequences of different lengths, from few tokens to all that their pages hold.
enum class Paging : std::uint8_t { contiguous, scattered, uneven };
/// Throws Error for another word.
Paging parse_paging(std::string_view text);

struct OperandValues {
  std::uint64_t seed = 0;
  Paging paging = Paging::scattered;
  std::int64_t period = 0;  ///< elements after which values are repeated, alike in all sets; 0: never
};

/// Values of operand i of a problem with constant dimensions. Indices are legal ones; every other element is drawn on
/// its own from a table of 65,536 values with the distribution of the operator's cases, because values that repeat cost
/// a GPU less power and raise its clock. The same seed, operand and set give the same bytes, whatever the number of
/// threads.
class BenchFill {
 public:
  BenchFill(const Problem& problem, std::size_t i, const OperandValues& values);
  /// Writes `count` elements from element `first` on, for set number `set` of the operands.
  void write(std::byte* to, std::int64_t first, std::int64_t count, std::int64_t set, ThreadPool& pool) const;

 private:
  static constexpr std::int64_t table_values = 1 << 16;
  template <class Word>
  void write_as(std::byte* to, std::int64_t first, std::int64_t count, std::int64_t set, ThreadPool& pool) const;

  std::uint64_t key_;
  std::int64_t period_;
  OwnedTensor table_;  ///< values to draw from, or those of all elements in order, repeated where they are fewer
  bool drawn_ = false;
};

/// The same of a region's operand: what the first node that reads it needs.
BenchFill bench_fill(const Region& region, std::size_t operand, OperandValues values);
/// The operand whose memory is a result's, too; nothing where the result has its own.
std::optional<std::size_t> shared_operand(const Region& region, std::size_t result);

/// Memory for an operand of this type with constant dimensions, filled.
OwnedTensor make_bench_operand(const TensorType& type, const BenchFill& values, ThreadPool& pool, std::int64_t set = 0);

/// cost_of with the lengths that such operands have.
Cost bench_cost(const Region& region, const OperandValues& values);

}  // namespace cermet
