#include "io/json_value.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/error.hpp"

namespace cermet {
namespace {

using Library = nlohmann::ordered_json;
using Array = std::vector<JsonValue>;
using Object = std::vector<std::pair<std::string, JsonValue>>;

JsonValue from_library(Library& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_unsigned()) return json.get<std::uint64_t>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return std::move(json.get_ref<std::string&>());
  if (json.is_null()) return nullptr;
  JsonValue value = json.is_array() ? JsonValue::array() : JsonValue::object();
  for (auto field = json.begin(); field != json.end(); ++field) {
    if (json.is_array()) value.push_back(from_library(*field));
    else value.append(field.key(), from_library(*field));
  }
  return value;
}

}  // namespace

/// Integers are signed where they fit, so that equal ones compare equal.
struct JsonValue::Node {
  std::variant<bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value;

  Library to_library() const {
    return std::visit([](const auto& content) { return convert(content); }, value);
  }
  static Library convert(const Array& elements) {
    Library json = Library::array();
    for (const JsonValue& element : elements) json.push_back(element.node_ ? element.node_->to_library() : Library());
    return json;
  }
  static Library convert(const Object& fields) {
    Library json = Library::object();
    auto& object = json.get_ref<Library::object_t&>();
    // The base's emplace_back, because the keys are known to differ and the map's own insertion compares with all
    // before.
    for (const auto& [key, field] : fields)
      object.emplace_back(key, field.node_ ? field.node_->to_library() : Library());
    return json;
  }
  static Library convert(const auto& scalar) { return scalar; }
};

JsonValue::JsonValue(std::nullptr_t) noexcept {}
JsonValue::JsonValue(Node&& node) : node_(std::make_unique<Node>(std::move(node))) {}
JsonValue::JsonValue(Boolean value) : JsonValue(Node{value.value}) {}
JsonValue::JsonValue(Signed value) : JsonValue(Node{value.value}) {}
JsonValue::JsonValue(Unsigned value) : JsonValue(Node{value.value}) {
  if (value.value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    node_->value = static_cast<std::int64_t>(value.value);
}
JsonValue::JsonValue(double value) : JsonValue(Node{value}) {}
JsonValue::JsonValue(const char* text) : JsonValue(std::string(text)) {}
JsonValue::JsonValue(std::string_view text) : JsonValue(std::string(text)) {}
JsonValue::JsonValue(std::string text) : JsonValue(Node{std::move(text)}) {}
JsonValue::JsonValue(std::initializer_list<JsonValue> elements) {
  const auto is_field = [](const JsonValue& e) {
    return e.node_ && std::holds_alternative<Array>(e.node_->value) && e.size() == 2 && e.begin()->is_string();
  };
  if (!std::all_of(elements.begin(), elements.end(), is_field)) {
    *this = JsonValue(Node{Array(elements)});
    return;
  }
  *this = object();
  for (const JsonValue& field : elements) (*this)[field.begin()->text()] = field.begin()[1];
}
JsonValue::JsonValue(const JsonValue& other) : node_(other.node_ ? std::make_unique<Node>(*other.node_) : nullptr) {}
JsonValue::JsonValue(JsonValue&& other) noexcept = default;
JsonValue& JsonValue::operator=(JsonValue other) noexcept {
  node_ = std::move(other.node_);
  return *this;
}
JsonValue::~JsonValue() = default;

JsonValue JsonValue::array() { return JsonValue(Node{Array()}); }
JsonValue JsonValue::object() { return JsonValue(Node{Object()}); }

std::optional<JsonValue> JsonValue::parse(std::string_view text) {
  Library json = Library::parse(text.begin(), text.end(), nullptr, false);
  if (json.is_discarded()) return std::nullopt;
  return from_library(json);
}

template <class T>
const T& JsonValue::as() const {
  const T* content = node_ ? std::get_if<T>(&node_->value) : nullptr;
  CERMET_ASSERT(content);
  return *content;
}

template <class T>
T& JsonValue::made() {
  if (!node_) *this = JsonValue(Node{T()});
  return const_cast<T&>(as<T>());
}

bool JsonValue::is_string() const { return node_ && std::holds_alternative<std::string>(node_->value); }
bool JsonValue::is_object() const { return node_ && std::holds_alternative<Object>(node_->value); }

std::size_t JsonValue::size() const {
  if (!node_) return 0;
  if (const Array* elements = std::get_if<Array>(&node_->value)) return elements->size();
  const Object* fields = std::get_if<Object>(&node_->value);
  return fields ? fields->size() : 0;
}

bool JsonValue::boolean() const { return as<bool>(); }
std::int64_t JsonValue::integer() const { return as<std::int64_t>(); }
double JsonValue::number() const {
  if (node_ && std::holds_alternative<double>(node_->value)) return as<double>();
  if (node_ && std::holds_alternative<std::uint64_t>(node_->value)) return static_cast<double>(as<std::uint64_t>());
  return static_cast<double>(integer());
}
const std::string& JsonValue::text() const { return as<std::string>(); }

const JsonValue* JsonValue::begin() const { return as<Array>().data(); }
JsonValue& JsonValue::back() {
  CERMET_ASSERT(!empty());
  return made<Array>().back();
}
void JsonValue::push_back(JsonValue element) { made<Array>().push_back(std::move(element)); }

const std::vector<std::pair<std::string, JsonValue>>& JsonValue::items() const { return as<Object>(); }

bool JsonValue::contains(std::string_view key) const {
  return is_object() &&
         std::any_of(items().begin(), items().end(), [&](const auto& field) { return field.first == key; });
}

const JsonValue& JsonValue::operator[](std::string_view key) const {
  const auto found =
      std::find_if(items().begin(), items().end(), [&](const auto& field) { return field.first == key; });
  CERMET_ASSERT(found != items().end());
  return found->second;
}

JsonValue& JsonValue::operator[](std::string_view key) {
  Object& fields = made<Object>();
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == key; });
  return found != fields.end() ? found->second : fields.emplace_back(key, nullptr).second;
}

void JsonValue::append(std::string key, JsonValue value) {
  made<Object>().emplace_back(std::move(key), std::move(value));
}

void JsonValue::erase(std::string_view key) {
  std::erase_if(made<Object>(), [&](const auto& field) { return field.first == key; });
}

void JsonValue::update(const JsonValue& other) {
  for (const auto& [key, value] : other.items()) (*this)[key] = value;
}

std::string JsonValue::dump(int indent) const {
  const Library json = node_ ? node_->to_library() : Library();
  return json.dump(indent, ' ', false, Library::error_handler_t::replace);
}

bool operator==(const JsonValue& a, const JsonValue& b) {
  return a.node_ && b.node_ ? a.node_->value == b.node_->value : a.node_ == b.node_;
}

}  // namespace cermet
