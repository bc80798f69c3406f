#include "op/schema/attributes.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace cermet {
namespace {

template <class T>
const T& get(const Attributes& attributes, std::string_view name) {
  const AttributeValue* value = attributes.find(name);
  CERMET_ASSERT(value != nullptr && std::holds_alternative<T>(*value));
  return std::get<T>(*value);
}

}  // namespace

Attributes::Attributes(std::initializer_list<std::pair<std::string, AttributeValue>> values) {
  for (const auto& [name, value] : values) set(name, value);
}

void Attributes::set(std::string_view name, AttributeValue value) {
  auto at = std::lower_bound(values_.begin(), values_.end(), name,
                             [](const auto& entry, std::string_view key) { return entry.first < key; });
  if (at != values_.end() && at->first == name) at->second = std::move(value);
  else values_.emplace(at, name, std::move(value));
}

const AttributeValue* Attributes::find(std::string_view name) const {
  const auto at = std::lower_bound(values_.begin(), values_.end(), name,
                                   [](const auto& entry, std::string_view key) { return entry.first < key; });
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
