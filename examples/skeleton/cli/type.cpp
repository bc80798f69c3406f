// Skeleton of a verb: cermet type TYPE... Copy to src/cli/NAME.cpp, call its namespace NAME_verb and add the row
// X(NAME) to src/cli/verbs.inc: it then parses, has --help and --json, and turns an Error into one line and exit
// code 2.
#include "base/error.hpp"
#include "cli/verb.hpp"
#include "op/schema/type_text.hpp"

namespace cermet::cli::type_verb {
namespace {

struct Options {
  std::vector<std::string> types;
};

/// Results go to the console, as text or as one JSON value whose keys are stable. User errors throw Error: what was
/// expected, what was found.
void describe(Console& console, const Options& options) {
  Json list = Json::array();
  Table table;
  for (const std::string& text : options.types) {
    const TensorType type = parse_tensor_type(text);
    require(type.is_constant(), "type {}: expected constant dimensions, found a symbol", type.to_string());
    const std::int64_t elements = type.elements().constant(), bytes = type.bytes().constant();
    list.push_back({{"type", type.to_string()}, {"elements", elements}, {"bytes", bytes}});
    table.row({type.to_string(), fmt::format("{} elements", elements), bytes_text(static_cast<double>(bytes))});
  }
  if (console.json()) console.write_json(list);
  else console.write(table.to_string());
}

}  // namespace

Verb verb() {
  return {"type", "elements and bytes of tensor types", "  cermet type 'bf16[2048, 8192]' 'f32[]'",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<Options>();
            parser.option("types", options->types, "types such as 'bf16[2048, 8192]'").required();
            return [options](Console& console) { describe(console, *options); };
          }};
}

}  // namespace cermet::cli::type_verb
