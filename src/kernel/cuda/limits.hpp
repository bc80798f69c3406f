// What a GPU can do at most: the numbers that its kernels are held against. `cermet limits --device cuda` prints them,
// benchmarks divide by them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernel/cuda/task.hpp"

namespace cermet::cuda {

/// Seconds of one launch that reads this many bytes, none of them in the L2 cache.
struct ReadTime {
  std::int64_t bytes = 0;
  double seconds = 0;
};

/// Medians over replays of captured graphs. A multiplication and an addition count as two operations; 0 where the
/// device has no such unit.
struct Limits {
  std::int64_t stream_bytes = 0;          ///< what the three streams below went through
  double load_bytes_per_second = 0;       ///< read with 16-byte loads
  double bulk_load_bytes_per_second = 0;  ///< read with bulk asynchronous copies
  double copy_bytes_per_second = 0;       ///< read and written bytes together, the better of both ways
  std::vector<ReadTime> reads;            ///< by size, the better of both ways
  double stream_launch_seconds = 0;       ///< from launch to launch on a stream, of one empty block per SM
  double graph_node_seconds = 0;          ///< the same in a captured graph
  double overlapped_node_seconds = 0;     ///< the same where a launch may start before the previous one has ended
  double f32_operations_per_second = 0;   ///< fused multiply-add
  double f16_operations_per_second =
      0;  ///< products of matrix units with float32 sums, operands already in shared memory or registers
  double bf16_operations_per_second = 0;
  double f8_operations_per_second = 0;
  double i8_operations_per_second = 0;  ///< with 32-bit integer sums

  double read_bytes_per_second() const {
    return load_bytes_per_second > bulk_load_bytes_per_second ? load_bytes_per_second : bulk_load_bytes_per_second;
  }
  /// Peak of products of this operand type; of float32 for every other type.
  double operations_per_second(DType operand) const;
};

/// What measure_limits needs compiled.
std::vector<Program> limit_programs(const Target& target);
/// Measures with those programs, `seconds` for each figure at least. Takes up to 4 GiB of device memory, half of what
/// is free at most.
Limits measure_limits(
    Device& device, Stream& stream, std::span<const LoadedProgram> programs, double seconds, void (*between)() = [] {});

}  // namespace cermet::cuda
