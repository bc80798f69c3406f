#include "jit/wrapper.hpp"

namespace cermet::jit {
namespace {

std::string includes(const cuda::Program& program) { return fmt::format("#include \"kernel/cuda/device/entry.cuh\"\n#include \"{}\"\n\n", program.header); }

}  // namespace

std::string wrapper_source(const cuda::Program& program) {
  return includes(program) + fmt::format(R"(using Task = {};

extern "C" __global__ void __launch_bounds__({}, {}) {}(const __grid_constant__ Task::Params params, unsigned items) {{
  extern __shared__ __align__(1024) char smem[];
  cermet::run_items<Task>(params, items, smem);
}}
)",
                                         program.task, program.threads, program.min_blocks, entry_name);
}

std::string linked_task_source(const cuda::Program& program, const std::string& name) {
  return includes(program) + fmt::format(R"(using Task = {};

extern "C" __device__ void {}(const void* params, unsigned item, char* smem) {{
  Task::run(*static_cast<const Task::Params*>(params), item, smem);
}}
)",
                                         program.task, name);
}

}  // namespace cermet::jit
