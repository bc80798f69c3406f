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

constexpr const char* work = "const volatile cermet::linked::Work& work";

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

LinkedBody linked_body(const cuda::Program& program, int width) {
  const std::string team = program.threads == width ? fmt::format("cermet::BlockTeam<{}, 1, false>", width)
                                                    : fmt::format("cermet::PartTeam<{}>", program.threads);
  const std::string task = includes("linked.cuh", program) + fmt::format("using Task = {};\n\n", program.task);
  LinkedBody body;
  body.name = "cermet_task_" + digest(task + team).substr(0, 16);
  body.source = task + fmt::format(R"(extern "C" __device__ void {}({}, char* smem) {{
  cermet::linked::run_body<Task, {}>(work, smem);
}}
)",
                                   body.name, work, team);
  return body;
}

std::string dispatcher_source(std::span<const std::string> names, int width, std::int64_t shared_bytes) {
  std::string declarations, calls;
  for (std::size_t b = 0; b < names.size(); ++b) {
    declarations += fmt::format("extern \"C\" __device__ void {}({}, char* smem);\n", names[b], work);
    calls += fmt::format("      case {}: return {}(work, smem);\n", b, names[b]);
  }
  return fmt::format(R"(#include "kernel/cuda/device/linked.cuh"

{}
extern "C" __global__ void __launch_bounds__({}, 1) {}(const __grid_constant__ cermet::linked::Params params, unsigned) {{
  extern __shared__ __align__(1024) char smem[];
  volatile auto& work = *reinterpret_cast<volatile cermet::linked::Work*>(smem + {});
  cermet::linked::run_instance(params, work, [&](unsigned body) {{
    switch (body) {{
{}    }}
  }});
}}
)",
                     declarations, width, entry_name, shared_bytes, calls);
}

}  // namespace cermet::jit
