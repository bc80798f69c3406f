#include "op/schema/attribute_text.hpp"

#include "op/schema/type_text.hpp"

namespace cermet {
namespace {

/// A number; it is a floating one where it has a point, an exponent or no digits (inf, nan).
AttributeValue read_number(TextReader& reader, std::string_view wanted) {
  const std::size_t begin = reader.position();
  const std::string_view word =
      reader.run([](char c) { return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.'; });
  const char *first = word.data(), *last = word.data() + word.size();
  std::int64_t whole = 0;
  if (const auto [end, error] = std::from_chars(first, last, whole);
      error == std::errc() && end == last && !word.empty())
    return whole;
  double number = 0;
  if (const auto [end, error] = std::from_chars(first, last, number);
      error == std::errc() && end == last && !word.empty())
    return number;
  reader.back_to(begin);
  reader.expected(wanted);
}

Strings read_strings(TextReader& reader) {
  Strings list;
  do {
    if (reader.peek() != '"') reader.expected("a string in quotes");
    list.push_back(reader.quoted());
  } while (reader.take(','));
  return list;
}

/// Integers, or floating numbers where one of them is.
AttributeValue read_numbers(TextReader& reader) {
  Ints integers;
  Floats numbers;
  do {
    reader.skip_spaces();
    const AttributeValue value = read_number(reader, "a number");
    if (const auto* integer = std::get_if<std::int64_t>(&value))
      integers.push_back(*integer), numbers.push_back(static_cast<double>(*integer));
    else numbers.push_back(std::get<double>(value));
  } while (reader.take(','));
  if (integers.size() == numbers.size()) return integers;
  return numbers;
}

AttributeValue read_list(TextReader& reader) {
  if (reader.take(']')) return Ints{};
  AttributeValue list = reader.peek() == '"' ? AttributeValue(read_strings(reader)) : read_numbers(reader);
  reader.need(']');
  return list;
}

unsigned read_digit(TextReader& reader) {
  const std::string_view digit = reader.rest().substr(0, 1);
  unsigned value = 16;
  if (!digit.empty()) std::from_chars(digit.data(), digit.data() + 1, value, 16);
  if (value == 16) reader.expected("two hexadecimal digits for each byte");
  reader.back_to(reader.position() + 1);
  return value;
}

TensorData read_tensor(TextReader& reader) {
  TensorType type = read_tensor_type(reader);
  reader.skip_spaces();
  if (!reader.rest().starts_with("0x")) reader.expected("bytes such as 0x0000803f");
  reader.back_to(reader.position() + 2);
  std::vector<std::byte> bytes;
  const auto more = [&] {
    return !reader.rest().empty() && (is_letter(reader.rest()[0]) || is_digit(reader.rest()[0]));
  };
  while (more()) {
    const unsigned high = read_digit(reader);
    bytes.push_back(static_cast<std::byte>(high << 4u | read_digit(reader)));
  }
  return {std::move(type), bytes};
}

}  // namespace

AttributeValue read_attribute_value(TextReader& reader) {
  if (reader.peek() == '"') return reader.quoted();
  if (reader.take('[')) return read_list(reader);
  reader.skip_spaces();
  const std::size_t begin = reader.position();
  const std::string_view word = reader.run(is_letter);
  if (word == "true" || word == "false") return word == "true";
  if (word == "tensor") return read_tensor(reader);
  if (word == "graph" && reader.peek() == '"') return Subgraph{reader.quoted(), nullptr};
  if ((word == "floats" || word == "strings") && reader.take('[')) {
    reader.need(']');
    return word == "floats" ? AttributeValue(Floats{}) : AttributeValue(Strings{});
  }
  reader.back_to(begin);
  return read_number(reader, "true, false, a number, a quoted string, a list, a tensor or a graph");
}

Attributes read_attributes(TextReader& reader) {
  Attributes attributes;
  if (!reader.take('{') || reader.take('}')) return attributes;
  do {
    const std::string_view name = reader.name("an attribute's name");
    reader.need('=');
    attributes.set(name, read_attribute_value(reader));
  } while (reader.take(','));
  reader.need('}');
  return attributes;
}

AttributeValue parse_attribute_value(std::string_view text) {
  TextReader reader("attribute value", text);
  AttributeValue value = read_attribute_value(reader);
  reader.finish();
  return value;
}

}  // namespace cermet
