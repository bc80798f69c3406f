// Values of 16 tokens in columns, as the tensor cores multiply 8-bit values: [D, 16], the tokens of a column in the
// order in which a thread has their weights.
#pragma once

#include "format/half.hpp"

namespace cermet::format {

inline constexpr int value_column = 16;

/// Place of a token of the 16 in their column: 0 1 8 9 2 3 10 11 4 5 12 13 6 7 14 15 are the tokens in order of places.
CERMET_HOST_DEVICE constexpr int value_place(int token) { return token % 8 / 2 * 4 + token / 8 * 2 + token % 2; }

}  // namespace cermet::format
