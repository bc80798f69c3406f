#include "op/schema/dim_text.hpp"

namespace cermet {
namespace {

constexpr std::string_view a_dimension = "a dimension (an integer or a symbol)";

Dim read_sum(TextReader& reader);

/// What follows "floor(", "min(" and their like, up to the closing one.
Dim read_function(TextReader& reader, std::string_view name);

Dim read_part(TextReader& reader) {
  const TextReader::Level level(reader);
  if (reader.take('(')) {
    Dim dim = read_sum(reader);
    reader.need(')');
    return dim;
  }
  const char first = reader.peek();
  if (is_digit(first) || first == '-') return reader.integer(a_dimension);
  const std::string_view name = reader.name(a_dimension);
  return reader.take('(') ? read_function(reader, name) : Dim::symbol(name);
}

Dim read_product(TextReader& reader) {
  Dim dim = read_part(reader);
  while (reader.take('*')) dim = dim * read_part(reader);
  return dim;
}

Dim read_sum(TextReader& reader) {
  Dim dim = read_product(reader);
  for (char sign = reader.peek(); sign == '+' || sign == '-'; sign = reader.peek()) {
    reader.take(sign);
    if (reader.peek() == '-') reader.expected(a_dimension);
    const Dim part = read_product(reader);
    dim = sign == '-' ? dim - part : dim + part;
  }
  return dim;
}

Dim read_function(TextReader& reader, std::string_view name) {
  if (name != "floor" && name != "ceil" && name != "min" && name != "max")
    reader.expected("floor, ceil, min or max before the '('");
  const bool divides = name == "floor" || name == "ceil";
  Dim dim = divides ? read_product(reader) : read_sum(reader);
  if (divides) reader.need('/');
  else reader.need(',');
  do {
    const Dim other = divides ? read_part(reader) : read_sum(reader);
    dim = name == "floor"  ? floor_div(dim, other)
          : name == "ceil" ? ceil_div(dim, other)
          : name == "min"  ? dim_min(dim, other)
                           : dim_max(dim, other);
  } while (!divides && reader.take(','));
  reader.need(')');
  return dim;
}

}  // namespace

Dim read_dim(TextReader& reader) {
  const std::size_t begin = (reader.skip_spaces(), reader.position());
  Dim dim = read_sum(reader);
  if (!dim.is_constant() || dim.constant() >= 0) return dim;
  reader.back_to(begin);
  reader.expected(a_dimension);
}

Dim parse_dim(std::string_view text) {
  TextReader reader("dimension", text);
  Dim dim = read_dim(reader);
  reader.finish();
  return dim;
}

}  // namespace cermet
