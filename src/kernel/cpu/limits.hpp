// What this machine can do at most: the numbers that kernels are compared with. `cermet limits` prints them, benchmarks
// divide by them.
#pragma once

#include <cstdint>

#include "base/thread_pool.hpp"

namespace cermet::cpu {

/// Rates of all threads of a pool together. A multiplication and an addition count as two operations.
struct Limits {
  double read_bytes_per_second = 0;  ///< streaming through memory that no cache holds
  double f32_flops = 0;              ///< fused multiply-add on float32 in registers
  double bf16_flops = 0;             ///< bf16 dot product instruction; 0 where there is none
  double int8_ops = 0;               ///< int8 dot product instruction; 0 where there is none
  double amx_bf16_flops = 0;         ///< bf16 products of AMX tiles; 0 where there are none
  double amx_int8_ops = 0;           ///< int8 products of AMX tiles; 0 where there are none
};

/// Measures with the active instruction set, `seconds` for each rate. The best of many short runs counts, so that other
/// programs matter little. Takes up to `most_bytes` of memory, an eighth of what is free at most.
Limits measure_limits(ThreadPool& pool, double seconds, std::int64_t most_bytes = std::int64_t{1} << 30);

/// How many times the float32 rate of a thread the bf16 dot products of this machine run at; 0 where it has none.
/// Measured by the first call, in about 0.2 ms; active_isa() must be avx512_bf16 or above then.
double bf16_ratio();
/// The same of bf16 products of AMX tiles, and how many times the rate of int8 dot products those of int8 tiles run at;
/// active_isa() must be amx.
double amx_bf16_ratio();
double amx_int8_ratio();

}  // namespace cermet::cpu
