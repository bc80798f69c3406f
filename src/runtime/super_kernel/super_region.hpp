// Which launches of a plan become one, and which cannot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.hpp"
#include "device/plan.hpp"
#include "graph/graph.hpp"
#include "graph/super_kernel_options.hpp"
#include "runtime/super_kernel/reason.hpp"

namespace cermet {

/// Launches of a plan that run as one. A super-kernel that breaks has several.
struct SuperRegion {
  std::string_view name;  ///< the graph's
  SuperKernelOptions options;
  std::size_t first_step = 0, last_step = 0;  ///< of the executable
  std::size_t first_launch = 0, end_launch = 0;
  std::uint32_t blocks = 0;  ///< that walk it, at most; 0 on the CPU
  friend bool operator==(const SuperRegion&, const SuperRegion&) = default;
};

/// A launch that is marked and cannot join.
struct SuperBreak {
  std::string_view name;  ///< of the super-kernel, the graph's
  std::size_t step = 0, launch = 0;
  SuperReason reason{};
  std::string found;  ///< figures: "232448 bytes, at most 227328"; may be empty
};

struct SuperFormation {
  std::vector<SuperRegion> regions;
  std::vector<SuperBreak> breaks;
};

/// What a device can link. The CPU takes calls of its own kernels; GPUs take linkable programs.
struct SuperLimits {
  bool calls = false;             ///< of the CPU: host calls join, and nothing else is there
  bool links = true;              ///< tasks can be linked for the device
  std::int64_t shared_bytes = 0;  ///< of a thread block, beside what the scheduler needs
  std::uint32_t blocks = 0;       ///< that run at once
  std::uint32_t most_items = 1 << 24;
};

/// A step of an executable, as far as marks go.
struct SuperStep {
  std::int32_t mark = Node::unmarked;  ///< of Graph::super_kernels()
  bool is_outside = false;             ///< its kernel came from outside
  std::vector<std::string> forms =
      {};           ///< by program of a CUDA kernel: what keeps it from sharing a launch; empty where nothing does
  double loss = 0;  ///< seconds that a launch of these steps was predicted to lose, so that kernels that join were not
                    ///< chosen; 0: they were
};

/// Why a launch cannot join; nothing where it can.
std::optional<SuperBreak> why_apart(const Launch& launch, const SuperStep& step, const SuperLimits& limits);

/// Regions by order: launches are taken in the order of the plan; one that is not marked with the name, or cannot join,
/// ends a region, and the next begins after it.
SuperFormation form_regions(const Plan& plan, const std::vector<SuperStep>& steps,
                            const std::vector<SuperKernel>& super_kernels, const SuperLimits& limits);
/// The same into a formation whose memory is used again: where nothing breaks, nothing is allocated once it is large
/// enough.
void form_regions(SuperFormation& formation, const Plan& plan, const std::vector<SuperStep>& steps,
                  const std::vector<SuperKernel>& super_kernels, std::span<const SuperKernelOptions> options,
                  const SuperLimits& limits);
/// The options of each.
std::vector<SuperKernelOptions> options_of(const std::vector<SuperKernel>& super_kernels);

/// Warns once for every super-kernel that breaks with strict-scope-check=bypass; throws Error with every break of those
/// with abort. `scope_of`: of a step.
void report_breaks(const SuperFormation& formation, const std::vector<SuperKernel>& super_kernels,
                   FunctionRef<std::string_view(std::size_t step)> scope_of);

/// The scope of a break, its reason and what to do, on one line.
std::string text_of(const SuperBreak& found, std::string_view scope);

}  // namespace cermet
