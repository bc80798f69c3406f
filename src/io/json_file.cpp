#include "io/json_file.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.hpp"
#include "io/git_lfs.hpp"
#include "io/json_numbers.hpp"
#include "io/posix_file.hpp"

namespace cermet {
namespace {

constexpr std::uint32_t still_open = std::numeric_limits<std::uint32_t>::max();

/// A piece of JsonStorage::text.
struct TextRange {
  std::uint32_t begin, size;
};

/// A value. Containers precede their content, which ends before node `end`.
struct Node {
  TextRange key{0, 0};
  union {
    std::int64_t integer = 0;
    double number;
    bool boolean;
    TextRange string;
    std::size_t count;  ///< of children of an array or object
  };
  std::uint32_t end = still_open;
  JsonKind kind = JsonKind::null;
};

}  // namespace

struct JsonStorage {
  std::string name;
  std::string text;  ///< keys and strings, unescaped, one after the other
  std::vector<Node> nodes;

  std::string_view view(TextRange range) const { return std::string_view(text).substr(range.begin, range.size); }
  std::string_view key(std::uint32_t index) const { return view(nodes[index].key); }
  std::string path(std::uint32_t index) const;
};

namespace {

bool is_plain_name(std::string_view key) {
  return !key.empty() &&
         std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; });
}

}  // namespace

// Found by descending from the root: values keep no parent, since only errors ask.
std::string JsonStorage::path(std::uint32_t index) const {
  std::string path;
  for (std::uint32_t container = 0; container != index;) {
    std::uint32_t child = container + 1;
    std::size_t position = 0;
    for (; nodes[child].end <= index; child = nodes[child].end) ++position;
    if (nodes[container].kind == JsonKind::array) {
      path += fmt::format("[{}]", position);
    } else if (is_plain_name(key(child))) {
      path += fmt::format("{}{}", path.empty() ? "" : ".", key(child));
    } else {
      path += fmt::format("[{}]", quote(key(child)));
    }
    container = child;
  }
  return path;
}

namespace {

/// Builds a JsonStorage from the parser's events.
class Builder {
 public:
  Builder(JsonStorage& storage, std::string_view source, const JsonLimits& limits, bool marked)
      : storage_(storage), source_(source), limits_(limits), marked_(marked) {}

  bool null() { return add(JsonKind::null), true; }
  bool boolean(bool value) { return add(JsonKind::boolean).boolean = value, true; }
  bool number_integer(std::int64_t value) { return add(JsonKind::integer).integer = value, true; }
  bool number_unsigned(std::uint64_t value) {
    if (value <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return number_integer(static_cast<std::int64_t>(value));
    return number_float(static_cast<double>(value), "");
  }
  bool number_float(double value, const std::string&) { return add(JsonKind::number).number = value, true; }
  bool string(const std::string& value) {
    if (const std::optional<double> number = marked_ ? marked_number(value) : std::nullopt)
      return number_float(*number, "");
    const TextRange range = store(value);
    return add(JsonKind::string).string = range, true;
  }
  bool binary(const nlohmann::json::binary_t&) { return false; }  // JSON text has none
  bool start_object(std::size_t) { return open(JsonKind::object); }
  bool start_array(std::size_t) { return open(JsonKind::array); }
  bool key(const std::string& value) { return pending_key_ = store(value), true; }
  bool end_array() { return close(), true; }
  bool end_object() {
    const std::uint32_t object = open_.back();
    return close(), refuse_duplicates(object), true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::json::exception& error) {
    // The parser's text reads "[json.exception.parse_error.101] parse error at line 1, column 2: what is wrong".
    std::string_view what = error.what();
    if (const std::size_t at = what.find(": "); at != std::string_view::npos) what.remove_prefix(at + 2);
    const std::string_view before = source_.substr(0, position == 0 ? 0 : position - 1);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t column = before.size() - (before.rfind('\n') + 1) + 1;  // npos + 1 = 0: no line break before
    const std::string message = quote(what, 160);
    fail(Status::invalid_file, "{}: line {}, column {}: expected JSON, found a {}", storage_.name, line, column,
         message.substr(1, message.size() - 2));
  }

 private:
  Node& add(JsonKind kind) {
    if (storage_.nodes.size() >= limits_.max_values) {
      fail(Status::invalid_file, "{}: expected at most {} JSON values, found more", storage_.name, limits_.max_values);
    }
    if (!open_.empty()) ++storage_.nodes[open_.back()].count;
    Node& node = storage_.nodes.emplace_back();
    node.kind = kind;
    node.key = std::exchange(pending_key_, TextRange{0, 0});
    node.end = static_cast<std::uint32_t>(storage_.nodes.size());
    return node;
  }
  bool open(JsonKind kind) {
    if (open_.size() >= static_cast<std::size_t>(limits_.max_depth)) {
      fail(Status::invalid_file, "{}: expected JSON nested at most {} deep, found deeper", storage_.name,
           limits_.max_depth);
    }
    Node& node = add(kind);
    node.count = 0;
    node.end = still_open;
    open_.push_back(static_cast<std::uint32_t>(storage_.nodes.size() - 1));
    return true;
  }
  void close() {
    storage_.nodes[open_.back()].end = static_cast<std::uint32_t>(storage_.nodes.size());
    open_.pop_back();
  }
  TextRange store(std::string_view value) {
    const TextRange range{static_cast<std::uint32_t>(storage_.text.size()), static_cast<std::uint32_t>(value.size())};
    storage_.text += value;
    return range;
  }
  void refuse_duplicates(std::uint32_t object);

  JsonStorage& storage_;
  std::string_view source_;
  JsonLimits limits_;
  bool marked_;  ///< whether the source has numbers of mark_python_numbers()
  std::vector<std::uint32_t> open_;
  TextRange pending_key_{0, 0};
  std::vector<std::string_view> keys_;
};

void Builder::refuse_duplicates(std::uint32_t object) {
  keys_.clear();
  for (std::uint32_t i = object + 1; i < storage_.nodes[object].end; i = storage_.nodes[i].end)
    keys_.push_back(storage_.key(i));
  std::sort(keys_.begin(), keys_.end());
  const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
  if (twice == keys_.end()) return;
  const std::string where = storage_.path(object);
  fail(Status::invalid_file, "{}: {}{}expected each key once, found {} twice", storage_.name, where,
       where.empty() ? "" : ": ", quote(*twice));
}

std::string_view name_of(JsonKind kind) {
  static constexpr std::string_view names[] = {"null",     "a boolean", "an integer", "a number",
                                               "a string", "an array",  "an object"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace

JsonKind Json::kind() const { return storage_->nodes[index_].kind; }

std::string_view Json::key() const { return storage_->key(index_); }

std::size_t Json::size() const {
  return is(JsonKind::array) || is(JsonKind::object) ? storage_->nodes[index_].count : 0;
}

Json Json::at(std::string_view key) const {
  for (Json field : as_object()) {
    if (field.key() == key) return field;
  }
  const std::string parent = path();
  fail(Status::invalid_file, "{}: {}{}{}: expected a value, found nothing", storage_->name, parent,
       parent.empty() ? "" : ".", key);
}

std::optional<Json> Json::find(std::string_view key) const {
  for (Json field : as_object()) {
    if (field.key() == key) return field.is(JsonKind::null) ? std::nullopt : std::optional<Json>(field);
  }
  return std::nullopt;
}

Json Json::at(std::size_t index) const {
  std::size_t i = 0;
  for (Json element : as_array()) {
    if (i++ == index) return element;
  }
  unexpected(fmt::format("an array of at least {}", index + 1));
}

std::string_view Json::as_string() const {
  if (!is(JsonKind::string)) unexpected(name_of(JsonKind::string));
  return storage_->view(storage_->nodes[index_].string);
}

bool Json::as_bool() const {
  if (!is(JsonKind::boolean)) unexpected("true or false");
  return storage_->nodes[index_].boolean;
}

std::int64_t Json::as_integer(std::int64_t min, std::int64_t max) const {
  if (const Node& node = storage_->nodes[index_];
      node.kind == JsonKind::integer && node.integer >= min && node.integer <= max)
    return node.integer;
  using Limits = std::numeric_limits<std::int64_t>;
  if (min == Limits::min() && max == Limits::max()) unexpected("an integer");
  if (max == Limits::max()) unexpected(fmt::format("an integer of at least {}", min));
  unexpected(fmt::format("an integer from {} to {}", min, max));
}

double Json::as_number() const {
  const Node& node = storage_->nodes[index_];
  if (node.kind == JsonKind::integer) return static_cast<double>(node.integer);
  if (node.kind != JsonKind::number || !std::isfinite(node.number))
    unexpected(node.kind == JsonKind::number ? "a finite number" : "a number");
  return node.number;
}

Json Json::as_array() const {
  if (!is(JsonKind::array)) unexpected(name_of(JsonKind::array));
  return *this;
}

Json Json::as_object() const {
  if (!is(JsonKind::object)) unexpected(name_of(JsonKind::object));
  return *this;
}

std::string Json::path() const { return storage_->path(index_); }

std::string Json::describe() const {
  const Node& node = storage_->nodes[index_];
  switch (node.kind) {
    case JsonKind::null: return "null";
    case JsonKind::boolean: return node.boolean ? "true" : "false";
    case JsonKind::integer: return fmt::format("{}", node.integer);
    case JsonKind::number:
      return std::isfinite(node.number) ? fmt::format("{}", node.number) : std::string(python_name(node.number));
    case JsonKind::string: return quote(as_string());
    case JsonKind::array: return fmt::format("an array of {}", node.count);
    case JsonKind::object: return "an object";
  }
  return "";
}

void Json::unexpected(std::string_view expected, Status status) const {
  refuse(fmt::format("expected {}, found {}", expected, describe()), status);
}

void Json::refuse(std::string_view message, Status status) const {
  const std::string where = path();
  fail(status, "{}: {}{}{}", storage_->name, where, where.empty() ? "" : ": ", message);
}

Json::Iterator& Json::Iterator::operator++() {
  index_ = storage_->nodes[index_].end;
  return *this;
}

Json::Iterator Json::begin() const { return Iterator(storage_, index_ + 1); }
Json::Iterator Json::end() const { return Iterator(storage_, storage_->nodes[index_].end); }

JsonDocument::JsonDocument(std::unique_ptr<const JsonStorage> storage) : storage_(std::move(storage)) {}
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;
JsonDocument::~JsonDocument() = default;

const std::string& JsonDocument::name() const { return storage_->name; }

JsonDocument JsonDocument::parse(std::string_view text, std::string name, const JsonLimits& limits) {
  const std::size_t max_bytes = std::min<std::size_t>(limits.max_bytes, std::numeric_limits<std::uint32_t>::max());
  auto storage = std::make_unique<JsonStorage>();
  storage->name = std::move(name);
  if (text.size() > max_bytes)
    fail(Status::invalid_file, "{}: expected at most {} bytes, found {}", storage->name, max_bytes, text.size());
  if (text.starts_with("\xEF\xBB\xBF"))
    fail(Status::invalid_file, "{}: expected JSON, found a byte order mark", storage->name);
  // The parser takes a zero byte for the end of the text.
  if (text.find('\0') != std::string_view::npos)
    fail(Status::invalid_file, "{}: expected JSON, found a zero byte", storage->name);
  const std::optional<std::string> marked = mark_python_numbers(text);
  if (marked) text = *marked;
  Builder builder(*storage, text, limits, marked.has_value());
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return JsonDocument(std::move(storage));
}

JsonDocument JsonDocument::read(const std::filesystem::path& file, const JsonLimits& limits) {
  const std::string text = read_file(file, static_cast<std::int64_t>(limits.max_bytes));
  refuse_lfs_pointer(file, text);
  return parse(text, file.string(), limits);
}

}  // namespace cermet
