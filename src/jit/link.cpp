#include "jit/link.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "jit/unit.hpp"

namespace cermet::jit {
namespace {

constexpr std::int64_t max_params_bytes = 32764;  ///< of a kernel's parameters, from sm_70 on

DispatcherShape shape_of(std::span<const LinkedTask> tasks) {
  DispatcherShape shape;
  shape.threads = tasks.front().program.threads;
  shape.total_bytes = static_cast<std::int64_t>((tasks.size() + 1) * sizeof(std::uint32_t));
  for (const LinkedTask& task : tasks) {
    require(task.params_bytes > 0, "link: expected parameters of at least one byte, found {} of {}", task.params_bytes, task.program.task);
    require(task.program.threads == shape.threads, "link: expected tasks with {} threads, found {} of {}", shape.threads, task.program.threads,
            task.program.task);
    require(task.program.cluster == tasks.front().program.cluster, "link: expected tasks with clusters of {}, found {} of {}", tasks.front().program.cluster,
            task.program.cluster, task.program.task);
    shape.min_blocks = std::max(shape.min_blocks, task.program.min_blocks);
    shape.params_bytes.push_back(task.params_bytes);
    shape.params_offsets.push_back(round_up(shape.total_bytes, params_alignment));
    shape.total_bytes = shape.params_offsets.back() + task.params_bytes;
  }
  shape.total_bytes = round_up(shape.total_bytes, params_alignment);
  require(shape.total_bytes + 4 <= max_params_bytes, "link: expected at most {} bytes of parameters, found {}", max_params_bytes, shape.total_bytes + 4);
  return shape;
}

}  // namespace

LinkedImage link_tasks(std::span<const LinkedTask> tasks, const std::string& architecture, Report* report, const Options& options) {
  require(!tasks.empty(), "link: expected at least one task, found none");
  require(architecture.starts_with("sm_"), "link: expected a native architecture (sm_CC), found '{}'", architecture);
  const DispatcherShape shape = shape_of(tasks);
  Report unused;
  Report& into = report ? *report : unused;
  into.programs += static_cast<std::int64_t>(tasks.size());
  const cuda::Toolchain& tools = options.toolchain ? *options.toolchain : toolchain();
  using Form = cuda::CompileRequest::Form;

  std::vector<Unit> units;
  LinkedImage linked;
  linked.params_offsets = shape.params_offsets;
  linked.params_bytes = shape.total_bytes;
  linked.threads = shape.threads;
  linked.cluster = tasks.front().program.cluster;
  std::string keys, name;
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const cuda::Program& program = tasks[t].program;
    units.push_back(source_unit(tools, display_name(program.task), linked_task_source(program, linked_task_name(t)), architecture, Form::lto_ir));
    linked.shared_bytes = std::max(linked.shared_bytes, program.shared_bytes);
    name += (t > 0 ? " + " : "linked ") + display_name(program.task);
  }
  units.push_back(source_unit(tools, "dispatcher", dispatcher_source(shape), architecture, Form::lto_ir));
  for (const Unit& unit : units) keys += unit.key + "\n";

  std::vector<std::vector<std::byte>> pieces;
  for (Image& piece : build_units(units, into, options)) pieces.push_back(std::move(piece.bytes));
  const Unit link = link_unit(tools, name, std::move(pieces), keys, architecture);
  linked.image = std::move(build_units(std::span(&link, 1), into, options).front());
  return linked;
}

}  // namespace cermet::jit
