// The normalization forms of Unicode 9, from utf8proc's of a later version.
#pragma once

#include <cstdint>
#include <string>

namespace cermet {

enum class NormalForm : std::uint8_t { c, d, kc, kd };

/// Brings valid UTF-8 into the form, in time linear in its length but for runs of combining marks, which are sorted.
void normalize(std::string& text, NormalForm form);

}  // namespace cermet
