#include "op/attributes.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

template <class T>
const T& get(const Attributes& attributes, std::string_view name) {
  const AttributeValue* value = attributes.find(name);
  CERMET_ASSERT(value != nullptr && std::holds_alternative<T>(*value));
  return std::get<T>(*value);
}

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
  static constexpr std::string_view names[] = {"bool", "int", "float", "string", "ints", "floats", "strings", "tensor", "graph"};
  static_assert(std::size(names) == std::variant_size_v<AttributeValue>);
  return names[value.index()];
}

Attributes::Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> values) {
  for (const auto& [name, value] : values) set(name, value);
}

void Attributes::set(std::string_view name, AttributeValue value) {
  auto at = std::lower_bound(values_.begin(), values_.end(), name, [](const auto& entry, std::string_view key) { return entry.first < key; });
  if (at != values_.end() && at->first == name) at->second = std::move(value);
  else values_.emplace(at, name, std::move(value));
}

const AttributeValue* Attributes::find(std::string_view name) const {
  const auto at = std::lower_bound(values_.begin(), values_.end(), name, [](const auto& entry, std::string_view key) { return entry.first < key; });
  return at != values_.end() && at->first == name ? &at->second : nullptr;
}

bool Attributes::flag(std::string_view name) const { return get<bool>(*this, name); }
std::int64_t Attributes::integer(std::string_view name) const { return get<std::int64_t>(*this, name); }
double Attributes::number(std::string_view name) const { return get<double>(*this, name); }
const std::string& Attributes::text(std::string_view name) const { return get<std::string>(*this, name); }
const Ints& Attributes::integers(std::string_view name) const { return get<Ints>(*this, name); }
const Floats& Attributes::numbers(std::string_view name) const { return get<Floats>(*this, name); }
const Strings& Attributes::texts(std::string_view name) const { return get<Strings>(*this, name); }
const TensorData& Attributes::tensor(std::string_view name) const { return get<TensorData>(*this, name); }
const Graph& Attributes::graph(std::string_view name) const {
  const Subgraph& subgraph = get<Subgraph>(*this, name);
  CERMET_ASSERT(subgraph.graph != nullptr);
  return *subgraph.graph;
}

}  // namespace cermet
