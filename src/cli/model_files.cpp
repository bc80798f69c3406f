#include "cli/model_files.hpp"

#include <charconv>

#include "base/error.hpp"
#include "base/text.hpp"
#include "format/element.hpp"

namespace cermet::cli {
namespace {

constexpr std::int64_t most_random = std::int64_t{4} << 30;  ///< bytes of an input that is made up

std::int64_t number_of(const std::string& option, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size() && value >= 0,
          "{}: expected a size from 0, or LEAST..MOST, found '{}'", option, text);
  return value;
}

}  // namespace

namespace {

/// NAME=VALUE, cut at `at`.
std::pair<std::string, std::string> pair_of(const std::string& option, const std::string& text, std::size_t at) {
  require(at != std::string::npos && at > 0 && at + 1 < text.size(), "{}: expected NAME=VALUE, found {}", option,
          quote(text));
  return {text.substr(0, at), text.substr(at + 1)};
}

/// Where the name ends: after the longest of `names` that the text begins with, at the first '=' where it begins with
/// none.
std::size_t end_of_name(const std::string& text, const std::vector<std::string>& names) {
  std::size_t at = text.find('='), longest = 0;
  for (const std::string& name : names)
    if (name.size() > longest && text.starts_with(name + "=")) at = longest = name.size();
  return at;
}

}  // namespace

std::map<std::string, DimRange> dims_of(const std::vector<std::string>& given) {
  std::map<std::string, DimRange> dims;
  for (const std::string& text : given) {
    const auto [name, value] = pair_of("--dim", text, text.rfind('='));
    const std::size_t dots = value.find("..");
    const std::string option = "--dim " + name;
    DimRange range{number_of(option, value.substr(0, dots)), 0};
    range.greatest = dots == std::string::npos ? range.least : number_of(option, value.substr(dots + 2));
    require(dims.emplace(name, range).second, "--dim {}: expected one range, found two", name);
  }
  return dims;
}

std::map<std::string, std::string> inputs_of(const std::vector<std::string>& given,
                                             const std::vector<std::string>& names) {
  std::map<std::string, std::string> inputs;
  for (const std::string& text : given) {
    const auto [name, file] = pair_of("--input", text, end_of_name(text, names));
    require(inputs.emplace(name, file).second, "--input {}: expected one value, found two", name);
  }
  return inputs;
}

OwnedTensor random_tensor(const std::string& input, DType dtype, const Shape& shape, std::mt19937_64& random) {
  const std::int64_t bytes = dense_bytes(dtype, shape);
  require(bytes <= most_random, "--input {}=random: expected at most {} bytes, found {} for {}", input, most_random,
          bytes, shape.to_string());
  OwnedTensor tensor(dtype, shape);
  std::normal_distribution<double> normal;
  const bool whole = !is_floating(dtype);
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    format::store_element(tensor.view.data, dtype, i, whole ? static_cast<double>(random() & 1u) : normal(random));
  return tensor;
}

std::string first_elements(const TensorView& view) {
  constexpr std::int64_t most = 8;
  std::string text;
  for (std::int64_t e = 0; e < std::min(most, view.elements()); ++e)
    text += fmt::format("{}{:.6g}", e ? ", " : "", format::load_element(view.data, view.dtype, e));
  return view.elements() > most ? text + ", .." : text;
}

std::string random_inputs_text(const std::vector<std::string>& names, std::uint64_t seed) {
  if (names.empty()) return {};
  return fmt::format("random input{}: {} (--seed {}); --input NAME=FILE.npy reads a file\n",
                     names.size() == 1 ? "" : "s", fmt::join(names, ", "), seed);
}

}  // namespace cermet::cli
