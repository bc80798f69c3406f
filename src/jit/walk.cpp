#include "jit/walk.hpp"

#include <algorithm>
#include <map>

#include "base/checked.hpp"
#include "io/digest.hpp"
#include "jit/unit.hpp"
#include "kernel/cuda/device/stream_ring.hpp"

namespace cermet::jit {
namespace {

struct WalkBody {
  std::string name, source;
};

/// Both halves of a task: extern "C" __device__ void NAME(call, state, smem), and NAME_feed, of a task that streams.
WalkBody walk_body(const cuda::Program& program, const WalkShape& shape) {
  const bool streams = shape.stages > 0 && program.streams();
  const std::string team = streams ? fmt::format("cermet::StreamTeam<{}, {}, {}, {}>", shape.threads, shape.stages,
                                                 shape.pitch, shape.in_flight)
                                   : fmt::format("cermet::PartTeam<{}, 0, 2>", program.threads);
  const std::string task = fmt::format(
      "#define CERMET_WALK\n#include \"kernel/cuda/device/walk.cuh\"\n#include \"{}\"\n\n{}\nusing Task = {};\nusing "
      "Team = {};\n\n",
      program.header, program.prelude, program.task, team);
  WalkBody body;
  body.name = "cermet_task_" + digest(task).substr(0, 16);
  body.source =
      task +
      fmt::format(
          R"(extern "C" __device__ __attribute__((always_inline)) void {0}(const cermet::walk::Call& call, cermet::StreamState& state, char* smem) {{
  cermet::walk::compute<Task, Team>(call, state, smem);
}}
)",
          body.name);
  if (streams)
    body.source += fmt::format(
        R"(extern "C" __device__ __attribute__((always_inline)) void {0}_feed(const cermet::walk::Call& call, cermet::StreamState& state, char* smem) {{
  cermet::walk::feed<Task, Team>(call, state, smem);
}}
)",
        body.name);
  return body;
}

struct NamedBody {
  std::string name;
  bool streams = false;
};

std::string walk_source(std::span<const NamedBody> bodies, const WalkShape& shape) {
  std::string declarations, computing, feeding;
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    const std::string& name = bodies[b].name;
    declarations += fmt::format(
        "extern \"C\" __device__ void {}(const cermet::walk::Call& call, cermet::StreamState& state, char* smem);\n",
        name);
    computing += fmt::format("        case {}: return {}(call, state, smem);\n", b, name);
    if (!bodies[b].streams) continue;
    declarations += fmt::format(
        "extern \"C\" __device__ void {}_feed(const cermet::walk::Call& call, cermet::StreamState& state, char* "
        "smem);\n",
        name);
    feeding += fmt::format("        case {}: return {}_feed(call, state, smem);\n", b, name);
  }
  return fmt::format(R"(#define CERMET_WALK
#include "kernel/cuda/device/walk.cuh"

{}
extern "C" __global__ void __launch_bounds__({}, 1) {}(const __grid_constant__ cermet::walk::Params params, unsigned) {{
  extern __shared__ __align__(1024) char smem[];
  using cermet::walk::Call;
  cermet::walk::walk<cermet::walk::Shape<{}, {}, {}, {}>>(
      params, smem,
      [](unsigned body, const Call& call, cermet::StreamState& state, char* smem) __attribute__((always_inline)) {{
      switch (body) {{
{}      }}
      }},
      [](unsigned body, const Call& call, cermet::StreamState& state, char* smem) __attribute__((always_inline)) {{
      switch (body) {{
{}      }}
      }});
}}
)",
                     declarations, shape.threads, entry_name, shape.threads, shape.stages, shape.pitch,
                     shape.body_bytes, computing, feeding);
}

}  // namespace

std::int64_t walk_bytes(const cuda::Program& program) {
  const cuda::Walk walk = program.walk.value_or(cuda::Walk());
  return walk.body_bytes > 0 ? walk.body_bytes : program.shared_bytes - walk.ring_bytes;
}

std::int64_t WalkShape::shared_bytes(std::int64_t instances, std::int64_t needs) const {
  return stream::control_bytes + stages * pitch + body_bytes + walk::most_params +
         instances * static_cast<std::int64_t>(sizeof(walk::Instance)) + 4 * needs;
}

std::optional<std::string> declines_walk(const cuda::Program& program) {
  if (program.foreign) return "code from outside is no task";
  if (program.cluster != 1) return fmt::format("its blocks form clusters of {}", program.cluster);
  if (program.has_whole_block()) return {};
  if (program.alternates && !program.streams()) return "its weights stream through shared memory of its own";
  if (program.divides_warps) return "its warps divide the work of a block in a way of their own";
  if (program.reads_descriptors) return "its copies read descriptors, which must be a launch's own parameters";
  if (program.streams()) {
    const int taken = walk_threads + program.walk->feeding_threads;
    if (program.threads != taken)
      return fmt::format("it streams weights with {} threads; taken: {}", program.threads, taken);
  } else if (program.threads > walk_threads) {
    return fmt::format("{} threads; taken: up to {}", program.threads, walk_threads);
  }
  return {};
}

namespace {

/// Without a ring: threads and shared memory of the widest task.
WalkShape whole_shape(std::span<const cuda::Program> programs, const Target& target, std::int64_t instances,
                      std::int64_t needs) {
  WalkShape shape;
  shape.threads = 0;
  for (const cuda::Program& program : programs) {
    if (const auto reason = declines_walk(program))
      fail(Status::unsupported, "super-kernel: expected tasks that can join, found {}: {}", program.task, *reason);
    shape.threads = std::max(shape.threads, program.threads);
    shape.body_bytes = std::max(shape.body_bytes, round_up(program.shared_bytes, 128));
  }
  if (const std::int64_t bytes = shape.shared_bytes(instances, needs); bytes > target.shared_bytes)
    fail(Status::unsupported,
         "super-kernel: expected at most {} bytes of shared memory on {}, found {} of its tasks, one after the other, "
         "and its list",
         target.shared_bytes, target.name, bytes);
  return shape;
}

}  // namespace

WalkShape walk_shape(std::span<const cuda::Program> programs, const Target& target, std::int64_t instances,
                     std::int64_t needs) {
  WalkShape shape;
  if (std::ranges::any_of(programs, &cuda::Program::has_whole_block))
    return whole_shape(programs, target, instances, needs);
  for (const cuda::Program& program : programs) {
    if (const auto reason = declines_walk(program))
      fail(Status::unsupported, "super-kernel: expected tasks that can join, found {}: {}", program.task, *reason);
    shape.body_bytes = std::max(shape.body_bytes, round_up(walk_bytes(program), 128));
    if (program.streams()) shape.pitch = std::max(shape.pitch, round_up(program.walk->stage_bytes, 1024));
  }
  if (shape.pitch == 0) shape.pitch = 1024;
  shape.in_flight = static_cast<int>(std::max<std::int64_t>(1, walk_in_flight / shape.pitch));
  const std::int64_t room = target.shared_bytes - shape.shared_bytes(instances, needs);
  shape.stages = std::min<std::int64_t>(room / shape.pitch, stream::most_stages);
  if (shape.stages < 2)
    fail(
        Status::unsupported,
        "super-kernel: expected room for two stages of {} bytes in the {} bytes of shared memory of {}, found {} bytes",
        shape.pitch, target.shared_bytes, target.name, std::max<std::int64_t>(room, 0));
  return shape;
}

WalkImage link_walk(std::span<const cuda::Program> programs, const WalkShape& shape, const Target& target,
                    Report* report, const Options& options) {
  require(!programs.empty(), "super-kernel: expected at least one task, found none");
  require(can_walk(target), "super-kernel: expected a device of compute capability 9.0, found one of {}.{}",
          target.compute_capability / 10, target.compute_capability % 10);
  const cuda::Toolchain& tools = options.toolchain ? *options.toolchain : toolchain();
  using Form = cuda::CompileRequest::Form;
  const std::string architecture = target.architecture();
  // By name, so that the same bodies are linked once in whatever order regions have them.
  std::map<std::string, const cuda::Program*> programs_by_name;
  std::map<std::string, std::string> sources;
  std::vector<std::string> names;
  for (const cuda::Program& program : programs) {
    WalkBody body = walk_body(program, shape);
    programs_by_name.emplace(body.name, &program);
    sources.emplace(body.name, std::move(body.source));
    names.push_back(std::move(body.name));
  }
  std::vector<Unit> units;
  std::vector<NamedBody> bodies;
  for (const auto& [name, program] : programs_by_name) {
    units.push_back(
        source_unit(tools, display_name(program->task), std::move(sources[name]), architecture, Form::lto_ir));
    bodies.push_back({name, shape.stages > 0 && program->streams()});
  }
  WalkImage linked;
  for (const std::string& name : names)
    linked.bodies.push_back(
        static_cast<std::uint32_t>(std::ranges::find(bodies, name, &NamedBody::name) - bodies.begin()));
  units.push_back(source_unit(tools, "walk", walk_source(bodies, shape), architecture, Form::lto_ir));
  linked.image =
      build_linked(tools, fmt::format("super-kernel of {} tasks", bodies.size()), units, architecture, report, options);
  return linked;
}

}  // namespace cermet::jit
