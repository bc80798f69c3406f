// A collective call as engines see it: checked, with operands that are dense, in pieces.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernel/communicator.hpp"

namespace cermet::comm {

/// What every rank says of a call, so that all know whether they make the same one. Sent between processes as it is.
struct CallHeader {
  std::uint64_t number = 0;  ///< of the call, from 1
  std::uint8_t what = 0;     ///< a Collective, or one of `what_...`
  std::uint8_t reduction = 0, dtype = 0, unused = 0;
  std::int32_t root = 0;
  std::int64_t rows = 0, row_elements = 0;  ///< of an operand
  std::uint64_t counts = 0;                 ///< digest of an uneven exchange's counts; 0 without

  friend bool operator==(const CallHeader&, const CallHeader&) = default;
};
inline constexpr std::uint8_t what_barrier = 100, what_text = 101, what_none = 255;
inline constexpr std::uint8_t no_dtype = 255;  ///< of a call whose operands are wrong

/// "call 17, all_reduce of bf16[4 x 128] by sum".
std::string to_string(const CallHeader& header);

/// One rank's part of a call. The operand has `x_pieces` pieces of `piece` elements, the result `y_pieces` of as many;
/// see op/collective.hpp.
struct DenseCall {
  Collective kind = Collective::all_reduce;
  Reduction reduction = Reduction::sum;
  DType dtype = DType::f32;
  int rank = 0, size = 1, root = 0;
  const std::byte* x = nullptr;
  std::byte* y = nullptr;
  std::int64_t rows = 1, row_elements = 1;  ///< of x
  std::int64_t piece = 0;
  int x_pieces = 1, y_pieces = 1;
  std::optional<PairCounts> counts = {};  ///< of an uneven exchange

  std::int64_t element_bytes() const { return byte_size(dtype); }
  std::int64_t row_bytes() const { return row_elements * element_bytes(); }
  std::int64_t x_bytes() const { return piece * x_pieces * element_bytes(); }
  std::int64_t y_bytes() const { return piece * y_pieces * element_bytes(); }
  /// Whether some rank reads this rank's operand.
  bool gives() const {
    return (kind != Collective::scatter_from && kind != Collective::broadcast_from) || rank == root;
  }
  PieceSource source(int piece_of_y) const { return piece_source(kind, rank, piece_of_y, root); }
};

/// Checks one rank's operands against each other. Throws Error(invalid_argument): "all_reduce: operand y: expected
/// bf16[4, 128], found bf16[4, 64]".
DenseCall describe(const CollectiveCall& call, int rank, int size);
CallHeader header_of(const DenseCall& call);

}  // namespace cermet::comm
