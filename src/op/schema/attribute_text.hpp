// Values of attributes and types inside a longer text.
#pragma once

#include "op/schema/attributes.hpp"
#include "op/schema/text_reader.hpp"

namespace cermet {

AttributeValue read_attribute_value(TextReader& reader);
/// `{eps = 1e-06, axis = 1}`; none where no brace comes next.
Attributes read_attributes(TextReader& reader);
TensorType read_tensor_type(TextReader& reader);

}  // namespace cermet
