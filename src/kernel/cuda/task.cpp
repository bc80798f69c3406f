#include "kernel/cuda/task.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cuda/narrow.hpp"

namespace cermet::cuda {

void TaskQueue::add(std::size_t program, std::int64_t items, std::int64_t blocks,
                    std::span<const std::byte> params) const {
  if (items == 0) return;
  const LoadedProgram& p = programs_[program];
  narrow(items, "launch", "work items");  // blocks count theirs in steps of the grid: sums of two stay below 2^32
  const std::int64_t wanted = round_up(blocks > 0 ? std::min(blocks, items) : items, p.cluster);
  constexpr std::int64_t reserved = 1024;  // of each block
  const std::int64_t half = round_up((target().shared_bytes + reserved) / 2, reserved);
  constexpr std::int64_t always_allowed = 48 << 10;  // more needs a permission, which programs that use more have
  const bool takes_half = takes_half_ && p.alternates && p.shared_bytes > always_allowed;
  const std::int64_t shared = takes_half ? std::max(p.shared_bytes, half) : p.shared_bytes;
  Launch launch;
  launch.fallback = p.fallback;
  launch.program = static_cast<std::uint32_t>(first_ + program);
  launch.items = static_cast<std::uint32_t>(items);
  launch.function = p.loaded.function;
  launch.shape = {static_cast<std::uint32_t>(wanted), static_cast<std::uint32_t>(p.threads),
                  static_cast<std::uint32_t>(shared), static_cast<std::uint32_t>(p.cluster),
                  target().compute_capability >= 90};
  plan_->add_program(launch, params);
}

void TaskQueue::run_function(std::size_t program, const LaunchShape& shape, std::span<const std::byte> parameters,
                             std::span<const std::uint32_t> offsets) const {
  Launch launch;
  launch.fallback = programs_[program].fallback;
  launch.program = static_cast<std::uint32_t>(first_ + program);
  launch.function = programs_[program].loaded.function;
  launch.shape = shape;
  plan_->add_function(launch, parameters, offsets);
}

std::int64_t TaskQueue::resident_blocks(std::size_t program) const {
  return std::int64_t{target().multiprocessors} * std::max(1, programs_[program].loaded.blocks_per_multiprocessor);
}

std::string_view short_name(const Program& program) {
  constexpr std::string_view before = "kernel/cuda/device/", after = ".cuh";
  std::string_view name = program.header;
  if (name.starts_with(before)) name.remove_prefix(before.size());
  if (name.ends_with(after)) name.remove_suffix(after.size());
  return name;
}

std::vector<Program> as_fallbacks(std::vector<Program> programs) {
  for (Program& program : programs) program.fallback = true;
  return programs;
}

std::string device_name(DType dtype) {
  return fmt::format("cermet::DType::{}", dtype == DType::boolean ? "boolean" : name_of(dtype));
}

}  // namespace cermet::cuda
