// How a kernel in a shared object is called: include/cermet/cpu_kernel.h says it to its authors, and src/api checks
// that both are the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cermet::foreign {

struct CpuCall {
  std::size_t struct_size;
  void* const* parameters;  ///< address of each parameter of the manifest
  std::size_t parameter_count;
  std::int32_t threads;
  void (*parallel_for)(const CpuCall* call, std::int64_t count, std::int64_t grain,
                       void (*body)(void* state, std::int64_t begin, std::int64_t end), void* state);
  void* runtime;
};
using CpuEntry = std::int32_t (*)(const CpuCall* call);

}  // namespace cermet::foreign
