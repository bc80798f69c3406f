// Options of a super-kernel: "key=value:key=value", one row each in super_kernel_options.cpp, from which messages,
// --help and the reference page come.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/option.hpp"

namespace cermet {

/// What happens where nodes of a super-kernel cannot join it.
enum class StrictScopeCheck : std::uint8_t {
  bypass,  ///< one warning; those nodes are launched by themselves, and the super-kernel goes on after them
  abort,   ///< an error that names every such node and its reason
};

struct SuperKernelOptions {
  bool stream_fusion = true;  ///< branches that do not depend on each other run side by side
  StrictScopeCheck strict_scope_check = StrictScopeCheck::bypass;
  bool prefetch = true;         ///< weights of later tasks are brought nearer while earlier ones wait
  bool early_start = true;      ///< a task asks for its weights and keys before it waits
  std::int64_t width = 0;       ///< thread blocks, or threads of a CPU; 0: as many as run at once
  bool debug_sync_all = false;  ///< all items of a task end before the next task begins
  bool profile = false;         ///< every item notes when it began and ended

  /// Throws Error naming the option: one that is not known or given twice, or a value that it does not take. Options
  /// that are not given keep their defaults.
  static SuperKernelOptions parse(std::string_view text);
  friend bool operator==(const SuperKernelOptions&, const SuperKernelOptions&) = default;
};

/// The options that differ from their defaults, in the order of the table.
std::string to_string(const SuperKernelOptions& options);

/// The rows, about a SuperKernelOptions.
const OptionTable& super_kernel_option_table();

}  // namespace cermet
