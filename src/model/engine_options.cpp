#include "model/engine_options.hpp"

#include <fmt/format.h>

#include "base/markdown.hpp"
#include "model/generate.hpp"

namespace cermet {
namespace {

#define ROW(member, option_name, option_values, ...)                                                \
  {.name = #option_name,                                                                            \
   .field = [](void* options) { return option::field_of(static_cast<OPTIONS*>(options)->member); }, \
   .values = option_values,                                                                         \
   __VA_ARGS__},

#define OPTIONS EngineOptions
#define OPTION(type, name, fallback, values, ...) ROW(name, name, values, __VA_ARGS__)
constexpr OptionRow engine_rows[] = {
#include "model/engine_options.inc"
};
#undef OPTION
#undef OPTIONS

#define OPTIONS GenerateOptions
#define OPTION(type, name, fallback, values, ...) ROW(sampling.name, name, values, __VA_ARGS__)
constexpr OptionRow generate_rows[] = {
#include "model/sampling_options.inc"
};
#undef OPTION
#undef OPTIONS
#undef ROW

std::string table_text(const OptionTable& table) {
  std::string text = "| name | command line | values | default | meaning |\n|---|---|---|---|---|\n";
  for (const OptionRow& row : table) {
    const OptionText about = text_of(row, table);
    const std::string flag(row.flag.substr(0, row.flag.find(' ')));
    text += fmt::format("| `{}`{} | {} | {} | {} | {} |\n", row.name,
                        row.use == OptionUse::everywhere    ? ""
                        : row.use == OptionUse::with_handle ? " (of the handle in C)"
                                                            : " (command line and C++)",
                        flag.empty() ? "" : fmt::format("`{}`", flag), about.values, table_cell(about.fallback),
                        table_cell(row.help));
  }
  return text;
}

}  // namespace

const OptionTable& engine_option_table() {
  static const EngineOptions defaults;
  static const OptionTable table{engine_rows, &defaults};
  return table;
}

const OptionTable& generate_option_table() {
  static const GenerateOptions defaults;
  static const OptionTable table{generate_rows, &defaults};
  return table;
}

std::string option_reference_markdown() {
  return "# Options of models and of generation\n\n"
         "Generated from `src/model/engine_options.inc` and `src/model/sampling_options.inc`. In Python they are "
         "keywords of "
         "`cermet.Model` and of its `generate()`; in C `options` of `cermet_model_options` and "
         "`cermet_generate_options` takes them as `name=value;name=value`, flags as 0 or 1; in C++ they are members of "
         "`EngineOptions`, `Sampling` and `GenerateOptions`. Element types have other names as well: int8 and fp8, "
         "float32, bfloat16, float16.\n\n## Models\n\n" +
         table_text(engine_option_table()) + "\n## Generation\n\n" + table_text(generate_option_table());
}

}  // namespace cermet
