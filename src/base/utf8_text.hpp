// Text that a user gives, which must be UTF-8: models are not trained on the bytes of other encodings.
#pragma once

#include <string_view>

namespace cermet {

/// Throws Error(invalid_file) that names `name`, the line and the byte where the text is not UTF-8, and how to convert
/// it where the encoding is known.
void require_utf8(std::string_view text, std::string_view name);

/// The text of a file without a byte order mark at its start, which some editors write. Throws as require_utf8, and for
/// a zero byte, which text does not have: the file is UTF-16 without its mark, or of another kind.
std::string_view text_of_file(std::string_view bytes, std::string_view name);

}  // namespace cermet
