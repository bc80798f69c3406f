#include "op/type_text.hpp"

#include <algorithm>
#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Walks the text of one type or call; `what` names it in messages.
class Reader {
 public:
  Reader(std::string_view what, std::string_view text) : what_(what), text_(text) {}

  [[noreturn]] void expected(std::string_view wanted) const {
    fail(Status::invalid_argument, "{} {}: expected {} at column {}, found {}", what_, quote(text_), wanted, at_ + 1,
         at_ < text_.size() ? quote(text_.substr(at_), 20) : "the end");
  }
  void skip_spaces() { at_ = std::min(text_.find_first_not_of(" \t\n", at_), text_.size()); }
  /// Takes a character if it comes next, after spaces.
  bool take(char c) {
    skip_spaces();
    const bool found = at_ < text_.size() && text_[at_] == c;
    at_ += found ? 1 : 0;
    return found;
  }
  void need(char c) {
    if (!take(c)) expected(fmt::format("'{}'", c));
  }
  char peek() {
    skip_spaces();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void finish() {
    skip_spaces();
    if (at_ < text_.size()) expected("nothing more");
  }

  std::string_view name(std::string_view wanted) {
    const char first = peek();
    if (!is_letter(first)) expected(wanted);
    return run([](char c) { return is_letter(c) || is_digit(c); });
  }
  std::int64_t integer(std::string_view wanted) {
    skip_spaces();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error == std::errc::result_out_of_range) expected(fmt::format("{} below 2^63", wanted));
    if (error != std::errc()) expected(wanted);
    at_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  /// A string in quotes, as escape() writes it.
  std::string quoted() {
    std::size_t size = 0;
    const auto text = unescape(text_.substr(at_), size);
    if (!text) expected("a string in quotes with its closing one, in which a backslash comes before one of \" \\\\ n t r xHH");
    at_ += size;
    return *text;
  }
  template <class Accepts>
  std::string_view run(Accepts accepts) {
    const std::size_t begin = at_;
    while (at_ < text_.size() && accepts(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  void back_to(std::size_t at) { at_ = at; }
  std::size_t position() const { return at_; }

 private:
  std::string_view what_, text_;
  std::size_t at_ = 0;
};

Dim read_dim(Reader& reader) {
  const std::string_view wanted = "a dimension (an integer or a symbol)";
  std::int64_t factor = 1;
  if (is_digit(reader.peek())) {
    factor = reader.integer(wanted);
    if (!reader.take('*')) return factor;
  }
  Dim dim = Dim::symbol(reader.name(factor == 1 ? wanted : "a symbol")) * factor;
  const char sign = reader.peek();
  if (sign != '+' && sign != '-') return dim;
  reader.take(sign);
  if (!is_digit(reader.peek())) reader.expected("digits");
  const std::int64_t offset = reader.integer("an offset");
  return dim + (sign == '-' ? -offset : offset);
}

TensorType read_type(Reader& reader) {
  const std::size_t begin = (reader.skip_spaces(), reader.position());
  const auto dtype = dtype_from_name(reader.name("an element type"));
  if (!dtype) {
    reader.back_to(begin);
    reader.expected("an element type (" + dtypes::any.to_string() + ")");
  }
  TensorType type{*dtype, {}};
  reader.need('[');
  if (reader.take(']')) return type;
  do {
    if (type.rank() == Shape::max_rank) reader.expected(fmt::format("at most {} dimensions", Shape::max_rank));
    type.dims.push_back(read_dim(reader));
  } while (reader.take(','));
  reader.need(']');
  return type;
}

/// A number; it is a floating one where it has a point, an exponent or no digits (inf, nan).
AttributeValue read_number(Reader& reader) {
  const std::size_t begin = reader.position();
  const std::string_view word = reader.run([](char c) { return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.'; });
  const char *first = word.data(), *last = word.data() + word.size();
  std::int64_t whole = 0;
  if (const auto [end, error] = std::from_chars(first, last, whole); error == std::errc() && end == last && !word.empty()) return whole;
  double number = 0;
  if (const auto [end, error] = std::from_chars(first, last, number); error == std::errc() && end == last && !word.empty()) return number;
  reader.back_to(begin);
  reader.expected("true, false, a number, a quoted string or a list of integers");
}

AttributeValue read_value(Reader& reader) {
  if (reader.peek() == '"') return reader.quoted();
  if (reader.take('[')) {
    Ints list;
    if (reader.take(']')) return list;
    do list.push_back(reader.integer("an integer"));
    while (reader.take(','));
    reader.need(']');
    return list;
  }
  reader.skip_spaces();
  const std::size_t begin = reader.position();
  const std::string_view word = reader.run(is_letter);
  if (word == "true" || word == "false") return word == "true";
  reader.back_to(begin);
  return read_number(reader);
}

}  // namespace

Dim parse_dim(std::string_view text) {
  Reader reader("dimension", text);
  const Dim dim = read_dim(reader);
  reader.finish();
  return dim;
}

TensorType parse_tensor_type(std::string_view text) {
  Reader reader("type", text);
  TensorType type = read_type(reader);
  reader.finish();
  return type;
}

AttributeValue parse_attribute_value(std::string_view text) {
  Reader reader("attribute value", text);
  AttributeValue value = read_value(reader);
  reader.finish();
  return value;
}

OperatorCall parse_call(std::string_view text) {
  Reader reader("call", text);
  OperatorCall call;
  call.name = reader.name("an operator's name");
  reader.need('(');
  if (!reader.take(')')) {
    do call.inputs.push_back(reader.take('-') ? std::nullopt : std::optional(read_type(reader)));
    while (reader.take(','));
    reader.need(')');
  }
  if (reader.take('{') && !reader.take('}')) {
    do {
      const std::string_view name = reader.name("an attribute's name");
      reader.need('=');
      call.attributes.set(name, read_value(reader));
    } while (reader.take(','));
    reader.need('}');
  }
  reader.finish();
  return call;
}

}  // namespace cermet
