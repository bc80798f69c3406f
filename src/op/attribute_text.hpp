// Values of attributes and types inside a longer text.
#pragma once

#include "op/attributes.hpp"
#include "op/text_reader.hpp"

namespace cermet {

AttributeValue read_attribute_value(TextReader& reader);
TensorType read_tensor_type(TextReader& reader);

}  // namespace cermet
