// Programs to images: generated sources, the cache on disk, and the missing ones compiled in parallel.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/toolchain.hpp"
#include "jit/cache.hpp"
#include "jit/wrapper.hpp"

namespace cermet::jit {

/// Machine code of one program: the function `entry_name`.
struct Image {
  std::vector<std::byte> bytes;  ///< a cubin, or PTX with its terminating zero
  bool from_cache = false;
  double seconds = 0;  ///< compile time, now or when it was stored
  std::string log;     ///< the assembler's report: registers, spills
};

/// Cost of building; calls add to it.
struct Report {
  std::int64_t programs = 0, unique = 0, from_cache = 0, compiled = 0;
  double seconds = 0;          ///< wall clock
  double compile_seconds = 0;  ///< of all compilations of these calls, one after the other
};

struct Options {
  const cuda::Toolchain* toolchain = nullptr;  ///< null: the plugin's
  DiskCache* cache = nullptr;                  ///< null: the process's
  int threads = 0;                             ///< compilations at a time; 0: one for each core
  /// How long a program is left to another thread or process that compiles it for the same cache (claim.hpp).
  std::chrono::milliseconds patience = std::chrono::seconds(60);
};

/// The plugin's toolchain, opened at the first call. Throws Error(unsupported) where there is no plugin.
const cuda::Toolchain& toolchain();

/// Images of programs, in their order; equal programs are compiled once. `architecture` is a Target's ("sm_90a"):
/// above 9.0, where no kernel was tuned, the image is PTX of compute_90, which the driver compiles. Throws Error with
/// the compiler's log for the first program that does not compile.
std::vector<Image> build(std::span<const cuda::Program> programs, const std::string& architecture,
                         Report* report = nullptr, const Options& options = {});

}  // namespace cermet::jit
