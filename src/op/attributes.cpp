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

std::string list_text(const Ints& values) {
  std::string text = "[";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text + "]";
}

}  // namespace

std::string to_string(const AttributeValue& value) {
  switch (value.index()) {
    case 0: return std::get<bool>(value) ? "true" : "false";
    case 1: return std::to_string(std::get<std::int64_t>(value));
    case 2: return number_text(std::get<double>(value));
    case 3: return escape(std::get<std::string>(value));
    default: return list_text(std::get<Ints>(value));
  }
}

std::string_view type_name(const AttributeValue& value) {
  static constexpr std::string_view names[] = {"bool", "int", "float", "string", "ints"};
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

}  // namespace cermet
