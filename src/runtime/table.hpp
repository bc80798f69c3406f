// Columns of text for reports of a run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cermet {

using TableRow = std::vector<std::string>;

/// Columns padded to their widest cell; the first `left` columns flush left, the others right.
std::string table_text(const std::vector<TableRow>& rows, std::size_t left);

/// 1234567 as "1.23 M".
std::string scaled_text(double value);

}  // namespace cermet
