// Text of dimensions, as Dim::to_string() spells them. Throws Error(invalid_argument) that quotes the text.
#pragma once

#include <string_view>

#include "base/dim.hpp"
#include "op/schema/text_reader.hpp"

namespace cermet {

/// "4096", "T", "8*T-3", "B*T+1", "ceil(H/2)", "floor((H+1)/(W*2))", "min(T,8)", "max(T-1,B)". A symbol is a letter or
/// underscore, then letters, digits and underscores.
Dim parse_dim(std::string_view text);
/// The same where it stands in a longer text.
Dim read_dim(TextReader& reader);

}  // namespace cermet
