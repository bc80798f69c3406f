#include "graph/super_kernel_options.hpp"

#include <fmt/format.h>

namespace cermet {
namespace {

template <auto member>
constexpr OptionRow option_row(std::string_view name, OptionValues values, std::string_view help) {
  return {.name = name,
          .field = [](void* options) { return option::field_of(static_cast<SuperKernelOptions*>(options)->*member); },
          .values = values,
          .help = help};
}

constexpr OptionRow rows[] = {
    option_row<&SuperKernelOptions::stream_fusion>(
        "stream-fusion", {}, "1: branches that do not depend on each other run side by side; 0: one after the other"),
    option_row<&SuperKernelOptions::strict_scope_check>(
        "strict-scope-check", option::any_of({"bypass", "abort"}),
        "nodes that cannot join: bypass warns once and launches them by themselves; abort refuses the graph and names "
        "every node with its reason"),
    option_row<&SuperKernelOptions::prefetch>(
        "prefetch", {},
        "1: weights of later tasks are brought into a cache, or a GPU's shared memory, "
        "while earlier ones wait; 0: on a GPU they flow when a thread block has ended "
        "what is before"),
    option_row<&SuperKernelOptions::early_start>(
        "early-start", {},
        "1: a task asks for weights and keys before it waits for the tasks whose "
        "results it reads; 0: behind that wait"),
    option_row<&SuperKernelOptions::width>("width", option::range(0, 1 << 20),
                                           "thread blocks, or threads of a CPU; 0: as many as run at once"),
    option_row<&SuperKernelOptions::debug_sync_all>(
        "debug-sync-all", {}, "1: a task begins when all before it have ended, to find a missing dependency"),
    option_row<&SuperKernelOptions::profile>(
        "profile", {}, "1: every item notes when it began and ended, for `cermet bench model --trace`"),
};

}  // namespace

SuperKernelOptions SuperKernelOptions::parse(std::string_view text) {
  SuperKernelOptions options;
  const OptionTable& table = super_kernel_option_table();
  set_options(table, &options, text);
  for (const OptionRow& row : table) check_range(row, &options, table.called(row));
  return options;
}

std::string to_string(const SuperKernelOptions& options) {
  std::string text;
  const OptionTable& table = super_kernel_option_table();
  for (const OptionRow& row : table)
    if (const std::string value = option_text(row, &options); value != option_text(row, table.defaults))
      text += fmt::format("{}{}={}", text.empty() ? "" : ":", row.name, value);
  return text;
}

const OptionTable& super_kernel_option_table() {
  static const SuperKernelOptions defaults;
  static const OptionTable table{.rows = rows, .defaults = &defaults, .subject = "super-kernel ", .separator = ':'};
  return table;
}

}  // namespace cermet
