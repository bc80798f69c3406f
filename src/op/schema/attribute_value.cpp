// Text and type names of attribute values.
#include <fmt/format.h>

#include "base/text.hpp"
#include "op/schema/attributes.hpp"

namespace cermet {
namespace {

std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
}

template <class T, class Text>
std::string list_text(std::string_view empty, const std::vector<T>& values, Text text_of) {
  if (values.empty()) return fmt::format("{}[]", empty);
  std::string text = "[";
  for (const T& value : values) text += (text.size() > 1 ? ", " : "") + text_of(value);
  return text + "]";
}

struct Writer {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_text(value); }
  std::string operator()(const std::string& value) const { return escape(value); }
  std::string operator()(const Ints& list) const { return list_text("", list, *this); }
  std::string operator()(const Floats& list) const { return list_text("floats", list, *this); }
  std::string operator()(const Strings& list) const { return list_text("strings", list, *this); }
  std::string operator()(const TensorData& data) const { return data.to_string(); }
  std::string operator()(const Subgraph& graph) const { return fmt::format("graph {}", escape(graph.text)); }
};

}  // namespace

std::string to_string(const AttributeValue& value) { return std::visit(Writer(), value); }

std::string_view type_name(const AttributeValue& value) {
  static constexpr std::string_view names[] = {"bool",   "int",     "float",  "string", "ints",
                                               "floats", "strings", "tensor", "graph"};
  static_assert(std::size(names) == std::variant_size_v<AttributeValue>);
  return names[value.index()];
}

}  // namespace cermet
