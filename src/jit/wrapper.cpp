#include "jit/wrapper.hpp"

namespace cermet::jit {
namespace {

std::string includes(const cuda::Program& program) {
  const std::string headers = fmt::format("#include \"kernel/cuda/device/entry.cuh\"\n#include \"{}\"\n\n", program.header);
  return program.prelude.empty() ? headers : headers + program.prelude + "\n";
}

/// The team of a program that has its blocks to itself.
std::string whole_block(const cuda::Program& program) {
  return program.cluster == 1 ? fmt::format("cermet::BlockTeam<{}>", program.threads)
                              : fmt::format("cermet::BlockTeam<{}, {}>", program.threads, program.cluster);
}

}  // namespace

std::string wrapper_source(const cuda::Program& program) {
  return includes(program) + fmt::format(R"(using Task = {};

extern "C" __global__ void __launch_bounds__({}, {}) {}(const __grid_constant__ Task::Params params, unsigned items) {{
  extern __shared__ __align__(1024) char smem[];
  cermet::run_items<Task, {}>(params, items, smem);
}}
)",
                                         program.task, program.threads, program.min_blocks, entry_name, whole_block(program));
}

std::string linked_task_source(const cuda::Program& program, const std::string& name) {
  return includes(program) + fmt::format(R"(using Task = {};

extern "C" __device__ void {}(const void* params, unsigned item, char* smem) {{
  using Call = cermet::TaskCall<Task, {}>;
  const Task::Params& p = *static_cast<const Task::Params*>(params);
  constexpr {} team;
  Call::Ring ring(p, team, smem);
  Call::fetch(p, item, team, smem, ring);
  Call::compute(p, item, team, smem, ring);
  ring.close(p, team, smem);
}}
)",
                                         program.task, name, whole_block(program), whole_block(program));
}

std::string linked_task_name(std::size_t task) { return fmt::format("cermet_task_{}", task); }

std::string dispatcher_source(const DispatcherShape& shape) {
  std::string members, declarations, calls;
  const std::size_t tasks = shape.params_bytes.size();
  for (std::size_t t = 0; t < tasks; ++t) {
    members += fmt::format("  alignas({}) char params_{}[{}];\n", params_alignment, t, shape.params_bytes[t]);
    declarations += fmt::format("extern \"C\" __device__ void {}(const void* params, unsigned item, char* smem);\n", linked_task_name(t));
    const std::string condition = t + 1 < tasks ? fmt::format("if (item < p.first[{}]) ", t + 1) : "";
    calls += fmt::format("    {}{}{}(p.params_{}, item - p.first[{}], smem);\n", t > 0 ? "else " : "", condition, linked_task_name(t), t, t);
  }
  return fmt::format(R"(struct Params {{
  unsigned first[{}];
{}}};

{}
extern "C" __global__ void __launch_bounds__({}, {}) {}(const __grid_constant__ Params p, unsigned items) {{
  extern __shared__ __align__(1024) char smem[];
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  for (unsigned item = blockIdx.x; item < items; item += gridDim.x) {{
    if (item != blockIdx.x) __syncthreads();  // another task may have used the shared memory
{}  }}
}}
)",
                     tasks + 1, members, declarations, shape.threads, shape.min_blocks, entry_name, calls);
}

}  // namespace cermet::jit
