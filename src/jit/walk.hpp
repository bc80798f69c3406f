// Tasks of a whole region in one kernel of which every block walks the same list (kernel/cuda/device/walk.cuh): bodies
// compiled alone to LTO-IR and linked under a generated walk.
#pragma once

#include <optional>

#include "jit/jit.hpp"
#include "kernel/cuda/device/walk.hpp"

namespace cermet::jit {

/// Threads of a block that compute, beside the warp that feeds them: those of every task that streams weights in its
/// usual configuration.
inline constexpr int walk_threads = 256;

/// Bytes of weights on their way into an SM beyond which other accesses wait longer and the stream is no faster
/// (docs/notes/super-kernels-cuda.md).
inline constexpr std::int64_t walk_in_flight = 48 << 10;

/// Whether walks are made for a device.
inline bool can_walk(const Target& target) { return target.compute_capability == 90; }

/// How the shared memory of a walk is divided, and its threads.
struct WalkShape {
  std::int64_t stages = 0, pitch = 0;  ///< of the ring of streamed weights: stages, and bytes from one to the next; 0:
                                       ///< tasks have whole blocks, one by one
  int in_flight = 0;                   ///< stages at most whose bytes are on their way; 0: all
  std::int64_t body_bytes = 0;         ///< what tasks use one after the other
  int threads = walk_threads + 32;     ///< of a block
  /// Of all, with a list of so many instances and needs.
  std::int64_t shared_bytes(std::int64_t instances, std::int64_t needs) const;
};

/// Shared memory that a program needs in a walk beside the ring of streamed weights.
std::int64_t walk_bytes(const cuda::Program& program);

/// Why a program cannot be part of a walk; nothing where it can.
std::optional<std::string> declines_walk(const cuda::Program& program);

/// The shape for programs that can all be part of a walk: with as many stages as fit, or without a ring. Throws Error
/// where fewer than two do, or tasks need more shared memory than a block has.
WalkShape walk_shape(std::span<const cuda::Program> programs, const Target& target, std::int64_t instances,
                     std::int64_t needs);

/// Its function is `entry_name`: (walk::Params, uint32), in blocks of shape.threads.
struct WalkImage {
  Image image;
  std::vector<std::uint32_t> bodies;  ///< of each program: equal ones are linked once
};
WalkImage link_walk(std::span<const cuda::Program> programs, const WalkShape& shape, const Target& target,
                    Report* report = nullptr, const Options& options = {});

}  // namespace cermet::jit
