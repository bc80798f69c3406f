// Options and files of models that run on tensors: sizes, inputs, results.
#pragma once

#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer.hpp"
#include "base/symbol.hpp"

namespace cermet::cli {

/// NAME=VALUE.
std::pair<std::string, std::string> pair_of(const std::string& option, const std::string& text);
/// The values of --dim by name: NAME=4, or NAME=1..8.
std::map<std::string, DimRange> dims_of(const std::vector<std::string>& given);
/// The values of --input by name. Throws Error where a name is given twice.
std::map<std::string, std::string> inputs_of(const std::vector<std::string>& given);
/// Integers from 0 to 1, other elements normal. Throws Error naming the input where it is too large to be made up.
OwnedTensor random_tensor(const std::string& input, DType dtype, const Shape& shape, std::mt19937_64& random);

}  // namespace cermet::cli
