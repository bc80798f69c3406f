#include "runtime/super_kernel/reference_page.hpp"

#include <fmt/format.h>

#include "base/markdown.hpp"
#include "graph/super_kernel_options.hpp"
#include "runtime/super_kernel/reason.hpp"

namespace cermet {
std::string super_kernel_reference_markdown() {
  std::string text =
      "# Super-kernels\n\nGenerated from `src/graph/super_kernel_options.cpp` and "
      "`src/runtime/super_kernel/reason.cpp`; "
      "[guide/super-kernels.md](../guide/super-kernels.md) says how they are used.\n\n## "
      "Options\n\n`key=value:key=value`; each key at most once.\n\n"
      "| key | values | default | meaning |\n|---|---|---|---|\n";
  const OptionTable& table = super_kernel_option_table();
  for (const OptionRow& row : table) {
    const OptionText about = text_of(row, table);
    text += fmt::format("| `{}` | {} | {} | {} |\n", row.name, about.values, about.fallback, table_cell(row.help));
  }
  text += "\n## Why a launch cannot join\n\n| reason | what it is | what to do |\n|---|---|---|\n";
  for (const SuperReasonInfo& info : super_reasons())
    text += fmt::format("| {} | {} | {} |\n", info.id, table_cell(info.sentence), table_cell(info.advice));
  return text;
}

}  // namespace cermet
