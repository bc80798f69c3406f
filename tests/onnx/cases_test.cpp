// Models and values of the folder cases/: what ONNX Runtime or ONNX's reference gives for them, made after reports of
// users of several importers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "format/element.hpp"
#include "io/json_value.hpp"
#include "io/npy.hpp"
#include "io/posix_file.hpp"
#include "onnx/compiled_model.hpp"
#include "tests/onnx/builder.hpp"

namespace cermet::onnx::test {
namespace {

namespace fs = std::filesystem;

fs::path cases_folder() { return fs::path(CERMET_SOURCE_DIR) / "tests/onnx/cases"; }

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(cases_folder()))
    if (fs::exists(entry.path() / "case.json"))
      names.push_back(entry.path().filename().string());  // others are packed: contrib_test.cpp
  std::ranges::sort(names);
  return names;
}

DimRange range_of(const std::string& text) {
  const std::size_t dots = text.find("..");
  const std::int64_t least = std::stoll(text);
  return {least, dots == std::string::npos ? least : std::stoll(text.substr(dots + 2))};
}

/// Zeros agree in their sign, too.
bool agree(double x, double y, double tolerance) {
  if (x == y) return x != 0 || std::signbit(x) == std::signbit(y);
  return (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= tolerance * (1 + std::abs(y));
}

/// Nothing where two tensors agree, else where they do not.
std::string difference(const TensorView& found, const TensorView& expected, double tolerance) {
  if (found.type() != expected.type())
    return fmt::format("expected {}, found {}", expected.type().to_string(), found.type().to_string());
  const std::size_t bytes = size_of(expected.dtype);
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double x = format::load_element(found.data, found.dtype, i),
                 y = format::load_element(expected.data, expected.dtype, i);
    const std::size_t at = static_cast<std::size_t>(i) * bytes;
    const bool same = std::memcmp(found.as<char>() + at, expected.as<char>() + at, bytes) ==
                      0;  // integers beyond 2^53 differ in their bits alone
    if (!same && !(is_floating(expected.dtype) && agree(x, y, tolerance)))
      return fmt::format("element {}: expected {}, found {}", i, y, x);
  }
  return "";
}

class Cases : public testing::TestWithParam<std::string> {};
TEST_P(Cases, GiveTheValuesOfOthers) {
  const fs::path folder = cases_folder() / GetParam();
  const std::optional<JsonValue> description = JsonValue::parse(read_file(folder / "case.json"));
  ASSERT_TRUE(description.has_value());
  ModelOptions options;
  for (const std::string& dim : (*description)["dims"].get<Names>())
    options.dims[dim.substr(0, dim.find('='))] = range_of(dim.substr(dim.find('=') + 1));
  Context context(ContextOptions{.device = "cpu", .threads = 1});
  CompiledModel model(std::make_shared<const Model>(read_model(folder / "model.onnx")), context, options);
  const auto names = (*description)["inputs"].get<Names>();
  std::vector<OwnedTensor> held(names.size());
  std::vector<ModelOperand> operands;
  for (const auto* inputs : {&model.inputs(), &model.defaults()})
    for (const ValueInfo& input : *inputs) {
      const auto given = std::ranges::find(names, input.name) - names.begin();
      if (given == std::ssize(names)) {
        operands.push_back({});
        continue;
      }
      held[static_cast<std::size_t>(given)] = read_npy(folder / fmt::format("input_{}.npy", given), input.dtype);
      operands.push_back({held[static_cast<std::size_t>(given)].view});
    }
  model.run(operands);
  const auto results = (*description)["results"].get<Names>();
  ASSERT_EQ(model.output_names(), results);
  for (std::size_t o = 0; o < results.size(); ++o) {
    const OwnedTensor expected = read_npy(folder / fmt::format("expected_{}.npy", o));
    EXPECT_EQ(difference(model.host_output(o), expected.view, (*description)["tolerance"].get<double>()), "")
        << results[o];
  }
}
INSTANTIATE_TEST_SUITE_P(Folder, Cases, testing::ValuesIn(case_names()), [](const auto& test) {
  std::string name = test.param;
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace cermet::onnx::test
