#include "op/schema/type_text.hpp"

#include "op/schema/attribute_text.hpp"
#include "op/schema/dim_text.hpp"

namespace cermet {

TensorType read_tensor_type(TextReader& reader) {
  const std::size_t begin = (reader.skip_spaces(), reader.position());
  const auto dtype = dtype_from_name(reader.name("an element type"));
  if (!dtype) {
    reader.back_to(begin);
    reader.expected("an element type (" + dtypes::all.to_string() + ")");
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

TensorType parse_tensor_type(std::string_view text) {
  TextReader reader("type", text);
  TensorType type = read_tensor_type(reader);
  reader.finish();
  return type;
}

OperatorCall parse_call(std::string_view text) {
  TextReader reader("call", text);
  OperatorCall call;
  call.name = reader.name("an operator's name");
  reader.need('(');
  if (!reader.take(')')) {
    do call.inputs.push_back(reader.take('-') ? std::nullopt : std::optional(read_tensor_type(reader)));
    while (reader.take(','));
    reader.need(')');
  }
  call.attributes = read_attributes(reader);
  reader.finish();
  return call;
}

}  // namespace cermet
