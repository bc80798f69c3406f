// How long collectives take.
#pragma once

#include "device/device.hpp"
#include "kernel/communicator.hpp"

namespace cermet::comm {

struct CommTiming {
  std::int64_t bytes =
      0;  ///< of the larger of operand and result, which is rounded up to what the ranks can share evenly
  std::int64_t calls = 0;  ///< in the timed stretch
  double seconds = 0;      ///< of one call: a stretch of calls, of the slowest rank
};

/// Times calls of one size in a row for about `seconds`, alike on all ranks, by sum and with root 0. Operands are
/// zeros, in the device's memory where the communicator is on one; there, replays of a captured graph are timed.
CommTiming measure_collective(Communicator& communicator, Device& device, Stream* stream, Collective kind, DType dtype,
                              std::int64_t bytes, double seconds);

/// Bytes that go over the busiest link for each byte of CommTiming::bytes, at least: 2 (R-1) / R for all_reduce, as
/// NCCL's tests count it. A time times it compares operators and numbers of ranks.
double bus_factor(Collective kind, int ranks);

}  // namespace cermet::comm
