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

/// The values of --dim by name: NAME=4, or NAME=1..8.
std::map<std::string, DimRange> dims_of(const std::vector<std::string>& given);
/// The values of --input by name: the text before the first '=', or the longest of `names` that the text begins with,
/// where names have one themselves. Throws Error where a name is given twice.
std::map<std::string, std::string> inputs_of(const std::vector<std::string>& given,
                                             const std::vector<std::string>& names);
/// Integers from 0 to 1, other elements normal. Throws Error naming the input where it is too large to be made up.
OwnedTensor random_tensor(const std::string& input, DType dtype, const Shape& shape, std::mt19937_64& random);
/// The first elements: "4, 5, 10, 11, ..".
std::string first_elements(const TensorView& view);
/// "random inputs: x, y (--seed 1); --input NAME=FILE.npy reads one\n"; nothing where there is none.
std::string random_inputs_text(const std::vector<std::string>& names, std::uint64_t seed);

}  // namespace cermet::cli
