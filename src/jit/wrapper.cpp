#include "jit/wrapper.hpp"

#include "io/digest.hpp"

namespace cermet::jit {
namespace {

std::string includes(const char* entry, const cuda::Program& program) {
  const std::string headers =
      fmt::format("#include \"kernel/cuda/device/{}\"\n#include \"{}\"\n\n", entry, program.header);
  return program.prelude.empty() ? headers : headers + program.prelude + "\n";
}

/// The team of a program that has its blocks to itself.
std::string whole_block(const cuda::Program& program) {
  return program.cluster == 1 ? fmt::format("cermet::BlockTeam<{}>", program.threads)
                              : fmt::format("cermet::BlockTeam<{}, {}>", program.threads, program.cluster);
}

/// Blocks that must fit on an SM: as many as are asked for, or as its threads allow, which are 1024 at least.
std::string resident_blocks(const cuda::Program& program) {
  if (program.threads * program.min_blocks <= 1024 && program.min_blocks <= 16)
    return std::to_string(program.min_blocks);
  return fmt::format("cermet::resident_blocks({}, {})", program.threads, program.min_blocks);
}

/// What caps a thread's registers.
std::string bounds(const cuda::Program& program) {
  if (program.registers > 0) return fmt::format("__maxnreg__({})", program.registers);
  return fmt::format("__launch_bounds__({}, {})", program.threads, resident_blocks(program));
}

}  // namespace

std::string wrapper_source(const cuda::Program& program) {
  return includes("entry.cuh", program) + fmt::format(R"(using Task = {};

extern "C" __global__ void {} {}(const __grid_constant__ Task::Params params, unsigned items) {{
  extern __shared__ __align__(1024) char smem[];
  cermet::run_items<Task, {}>(params, items, smem);
}}
)",
                                                      program.task, bounds(program), entry_name, whole_block(program));
}

}  // namespace cermet::jit
