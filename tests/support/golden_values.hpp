// Golden values: tests/op/golden/*.txt, operands and results of every operator that tools/make_golden_values.py
// computed independently of our code. A call, then a line for each of its operands that is given and one for each of
// its results:
//
//   softmax(f32[2, 3]) {log = true}
//     in 1 2 3.0001 -inf 0 nan                  ("constant" instead of "in": kernels may pack the operand beforehand)
//     out f32[2,3] 8 1e-30: ..                  allowed errors: 8 * 2^-24 of a value and 1e-30
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "op/schema/case_data.hpp"
#include "op/schema/reference.hpp"
#include "op/schema/type_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {

/// A result as the oracle has it: floating values are not rounded to the type yet.
struct GoldenResult {
  TensorType type;
  double relative = 0, absolute = 0;  ///< allowed errors before the rounding; both 0: exact, signs of zeros too; below
                                      ///< 2^-126: exact but for them
  std::vector<std::string> elements;
};

struct GoldenCase {
  std::string place;  ///< file, line and call, for messages
  OperatorCall call;
  CaseData data;
  std::vector<GoldenResult> results;
};

inline std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(std::move(word));
  return words;
}

/// Writes an element's text: every element of an operand is a number of its type.
inline void store_text(const TensorView& view, std::int64_t index, const std::string& text) {
  if (view.dtype == DType::i64) store_integer(view, index, std::strtoll(text.c_str(), nullptr, 10));
  else if (view.dtype == DType::u64)
    view.as<std::uint64_t>()[element_offset(view, index)] = std::strtoull(text.c_str(), nullptr, 10);
  else store(view, index, std::strtod(text.c_str(), nullptr));
}

/// Fills the next operand of a case that is given.
inline void add_operand(GoldenCase& golden, const std::vector<std::string>& words) {
  CaseData& data = golden.data;
  while (data.inputs.size() < golden.call.inputs.size() && !golden.call.inputs[data.inputs.size()]) {
    data.owned_inputs.emplace_back();
    data.inputs.emplace_back();
  }
  const std::size_t index = data.inputs.size();
  ASSERT_LT(index, golden.call.inputs.size()) << golden.place;
  const TensorType& type = *golden.call.inputs[index];
  data.owned_inputs.emplace_back(type.dtype, bind(type.dims, {}));
  data.inputs.push_back(data.owned_inputs.back().view);
  ASSERT_EQ(static_cast<std::int64_t>(words.size()) - 1, data.inputs.back().elements())
      << golden.place << ", operand " << index;
  for (std::size_t i = 1; i < words.size(); ++i)
    store_text(data.inputs.back(), static_cast<std::int64_t>(i) - 1, words[i]);
  if (words[0] == "constant") data.problem.constant_inputs |= 1ull << index;
}

inline void add_result(GoldenCase& golden, const std::vector<std::string>& words) {
  golden.results.push_back({parse_tensor_type(words[1]),
                            std::strtod(words[2].c_str(), nullptr),
                            std::strtod(words[3].c_str(), nullptr),
                            {}});
  golden.results.back().elements.assign(words.begin() + 4, words.end());
}

/// Every case of tests/op/golden.
inline std::vector<GoldenCase> golden_cases() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(CERMET_SOURCE_DIR) / "tests/op/golden"))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<GoldenCase> list;
  for (const std::filesystem::path& path : files) {
    std::istringstream text(read_text(path));
    int number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      if (!line.starts_with("  ")) {
        list.push_back({fmt::format("{}:{}: {}", path.filename().string(), number, line), parse_call(line), {}, {}});
        continue;
      }
      const std::vector<std::string> words = words_of(line);
      if (words[0] == "out") add_result(list.back(), words);
      else add_operand(list.back(), words);
    }
  }
  std::erase_if(list, [](GoldenCase& golden) {
    const std::uint64_t constants = golden.data.problem.constant_inputs;
    const OpDefinition* op = find_operator(golden.call.name);
    try {
      if (!op) fail(Status::invalid_argument, "no such operator");
      golden.data.problem = make_problem(*op, golden.call.inputs, golden.call.attributes);
    } catch (const Error& error) {
      ADD_FAILURE() << golden.place << ": " << error.what();
      return true;
    }
    golden.data.problem.constant_inputs = constants;
    golden.data.inputs.resize(golden.data.problem.inputs.size());
    return false;
  });
  return list;
}

/// Whether a number that was found, of type `dtype`, is the value once rounded to that type after an error of at most
/// `tolerance`.
inline bool is_rounding_of(DType dtype, double value, double tolerance, double found) {
  if (std::isnan(value) || std::isnan(found)) return std::isnan(value) && std::isnan(found);
  if (tolerance == 0 && value == 0) return found == 0 && std::signbit(found) == std::signbit(value);
  return found >= format::rounded_to(dtype, value - tolerance) && found <= format::rounded_to(dtype, value + tolerance);
}

/// Compares results with the oracle's. `slack` scales the allowed errors; views of wider types than the result's hold
/// values that are not rounded. Returns "" or a line about the first element that is wrong.
inline std::string compare_with_golden(const GoldenCase& golden, const std::vector<TensorView>& found, double slack) {
  if (found.size() != golden.results.size())
    return fmt::format("expected {} results, found {}", golden.results.size(), found.size());
  for (std::size_t o = 0; o < found.size(); ++o) {
    const GoldenResult& result = golden.results[o];
    if (golden.data.problem.outputs[o] != result.type)
      return fmt::format("result {}: expected {}, found {}", o, result.type.to_string(),
                         golden.data.problem.outputs[o].to_string());
    if (static_cast<std::int64_t>(result.elements.size()) != found[o].elements())
      return fmt::format("result {}: expected {} elements, found {}", o, result.elements.size(), found[o].elements());
    OwnedTensor one(result.type.dtype, {1});
    for (std::int64_t i = 0; i < found[o].elements(); ++i) {
      const std::string& text = result.elements[static_cast<std::size_t>(i)];
      bool agrees = false;
      if (is_floating(result.type.dtype)) {
        const double value = std::strtod(text.c_str(), nullptr);
        const double tolerance =
            std::isfinite(value) ? slack * (result.relative * 0x1p-24 * std::abs(value) + result.absolute) : 0;
        // An exact result is compared after its rounding, even where a reference has not made it.
        const bool exact = result.relative == 0 && result.absolute < 0x1p-126;
        const DType rounded = exact ? result.type.dtype : found[o].dtype;
        agrees = is_rounding_of(rounded, value, tolerance, format::rounded_to(rounded, load(found[o], i)));
      } else {
        store_text(one.view, 0, text);
        agrees =
            std::memcmp(one.view.data, found[o].as<char>() + element_offset(found[o], i) * byte_size(found[o].dtype),
                        size_of(found[o].dtype)) == 0;
      }
      if (!agrees)
        return fmt::format("result {}, element {}: expected {} ({}), found {}", o, i, text,
                           std::strtod(text.c_str(), nullptr), load(found[o], i));
    }
  }
  return "";
}

}  // namespace cermet
