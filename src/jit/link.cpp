#include "jit/link.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "jit/unit.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::jit {
namespace {

template <class T>
void put(std::vector<std::byte>& bytes, std::int64_t at, const T& value) {
  std::memcpy(bytes.data() + at, &value, sizeof(T));
}

}  // namespace

LinkedImage link_tasks(std::span<const cuda::Program> programs, const Target& target, Report* report,
                       const Options& options) {
  require(!programs.empty(), "link: expected at least one task, found none");
  require(can_link(target),
          "link: expected a device that runs native code, of compute capability 9.0 at most, found one of {}.{}",
          target.compute_capability / 10, target.compute_capability % 10);
  const std::string architecture = target.architecture();
  const cuda::Program* largest = nullptr;
  LinkedImage linked;
  for (const cuda::Program& program : programs) {
    require(is_linkable(program.cluster), "link: expected tasks without clusters, found clusters of {} in {}",
            program.cluster, program.task);
    linked.threads = std::max(linked.threads, program.threads);
    linked.shared_bytes = std::max(linked.shared_bytes, round_up(program.shared_bytes, 16));
    if (!largest || program.shared_bytes > largest->shared_bytes) largest = &program;
  }
  const std::int64_t shared_bytes = linked.shared_bytes + cermet::linked::work_bytes;
  require(shared_bytes <= target.shared_bytes,
          "link: expected at most {} bytes of shared memory on {}, found {} of {} and {} of the dispatcher",
          target.shared_bytes, target.name, linked.shared_bytes, largest->task, cermet::linked::work_bytes);
  const cuda::Toolchain& tools = options.toolchain ? *options.toolchain : toolchain();
  using Form = cuda::CompileRequest::Form;
  std::vector<Unit> units;
  std::vector<std::string> names;
  std::string label;
  for (const cuda::Program& program : programs) {
    LinkedBody body = linked_body(program, linked.threads);
    const auto found = std::find(names.begin(), names.end(), body.name);
    linked.bodies.push_back(static_cast<std::uint32_t>(found - names.begin()));
    if (found != names.end()) continue;
    label += (names.empty() ? "linked " : " + ") + display_name(program.task);
    units.push_back(source_unit(tools, display_name(program.task), std::move(body.source), architecture, Form::lto_ir));
    names.push_back(std::move(body.name));
  }
  units.push_back(source_unit(tools, "dispatcher", dispatcher_source(names, linked.threads, linked.shared_bytes),
                              architecture, Form::lto_ir));
  linked.shared_bytes = shared_bytes;
  linked.image = build_linked(tools, label, units, architecture, report, options);
  return linked;
}

LinkedTable linked_table(std::span<const LinkedInstance> instances) {
  std::vector<bool> is_needed(instances.size());
  std::int64_t needs = 0, blocks = 0;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const LinkedInstance& instance = instances[i];
    require(instance.blocks > 0 && instance.blocks <= instance.items,
            "link: expected 1 to {} blocks for the items of instance {}, found {}", instance.items, i, instance.blocks);
    require(instance.items <= cuda::most_narrow, "link: expected at most {} items of instance {}, found {}",
            cuda::most_narrow, i, instance.items);
    for (const linked::Need& need : instance.needs) {
      require(need.instance < i, "link: expected instance {} to need earlier ones, found instance {}", i,
              need.instance);
      const std::uint32_t available = instances[need.instance].items;
      require(need.items <= available, "link: expected instance {} to need at most {} items of instance {}, found {}",
              i, available, need.instance, need.items);
      is_needed[need.instance] = true;
    }
    needs += static_cast<std::int64_t>(instance.needs.size());
    blocks += instance.blocks;
  }
  require(blocks < std::int64_t{1} << 31, "link: expected fewer than 2^31 thread blocks, found {}", blocks);
  const std::int64_t needs_at = static_cast<std::int64_t>(instances.size() * sizeof(linked::Instance));
  std::int64_t params_at =
      round_up(needs_at + needs * static_cast<std::int64_t>(sizeof(linked::Need)), linked::params_alignment);
  LinkedTable table;
  table.bytes.resize(static_cast<std::size_t>(params_at));
  std::uint32_t first_need = 0;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const LinkedInstance& from = instances[i];
    const linked::Instance written{.body = from.body,
                                   .items = from.items,
                                   .first_block = table.blocks,
                                   .blocks = from.blocks,
                                   .first_need = first_need,
                                   .needs = static_cast<std::uint32_t>(from.needs.size()),
                                   .announces = is_needed[i],
                                   .params = static_cast<std::uint64_t>(params_at)};
    put(table.bytes, static_cast<std::int64_t>(i * sizeof(linked::Instance)), written);
    for (const linked::Need& need : from.needs)
      put(table.bytes, needs_at + first_need++ * static_cast<std::int64_t>(sizeof(linked::Need)), need);
    table.blocks += from.blocks;
    const auto bytes = static_cast<std::int64_t>(from.parameters.size());
    table.bytes.resize(static_cast<std::size_t>(params_at + round_up(bytes, linked::params_alignment)));
    if (bytes > 0) std::memcpy(table.bytes.data() + params_at, from.parameters.data(), from.parameters.size());
    params_at = static_cast<std::int64_t>(table.bytes.size());
  }
  return table;
}

}  // namespace cermet::jit
