// Regions as text, the way Region::to_string() spells them, read back.
#pragma once

#include <string_view>

#include "op/schema/region.hpp"

namespace cermet {

/// `linear(f32[T, 64], bf16[32, 64], -)`, a region of one node, or several as
/// `{n0 = rms_norm($0: f32[1, 64], $1: f32[64]); n1 = linear(strict n0, $2: bf16[32, 64], -)} anchor n1 -> n1`.
/// Attributes that are not written have their defaults; the region has no target, no constants and no maxima of
/// symbols, which its text does not say. Throws Error(invalid_argument) that quotes the text with the column at fault,
/// or names the node that its operator does not accept.
Region parse_region(std::string_view text);

/// Whether a text begins like a region and not like an operator's name alone.
bool is_region_text(std::string_view text);

}  // namespace cermet
