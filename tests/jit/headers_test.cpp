// Every device header includes what it uses: NVRTC compiles it when nothing comes before it.
#include <algorithm>

#include "jit/unit.hpp"
#include "kernel/cuda/sources.hpp"
#include "tests/jit/architectures.hpp"
#include "tests/support/error_text.hpp"

namespace cermet::jit {
namespace {

/// Whether a text is a header: the tables (.inc) mean nothing without the macros of the file that includes them.
bool is_header(std::string_view name) { return name.ends_with(".cuh") || name.ends_with(".hpp"); }

/// Headers of kernels for 9.0a alone have it in their names; all others compile for every architecture.
bool compiles_for(std::string_view name, std::string_view architecture) {
  return architecture == "compute_90a" || name.find("hopper") == name.npos;
}

/// One unit for each source that includes a header and nothing else. PTX: what is parsed is the header, and no
/// assembler need run.
std::vector<Unit> units_of(std::span<const std::string> includes, const std::string& architecture) {
  std::vector<Unit> units;
  for (const std::string& name : includes)
    units.push_back(
        source_unit(toolchain(), name, "#include \"" + name + "\"\n", architecture, cuda::CompileRequest::Form::ptx));
  return units;
}

class DeviceHeaders : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!no_toolchain().empty()) GTEST_SKIP() << no_toolchain();
  }
  std::vector<Image> build(std::span<const std::string> includes) {
    Report report;
    Options options;
    options.cache = &test_cache();
    return build_units(units_of(includes, GetParam()), report, options);
  }
};

TEST_P(DeviceHeaders, CompileAlone) {
  std::vector<std::string> names;
  for (const cuda::SourceHeader& header : cuda::embedded_sources())
    if (is_header(header.name) && compiles_for(header.name, GetParam())) names.emplace_back(header.name);
  EXPECT_GT(std::count_if(names.begin(), names.end(), [](const std::string& name) { return name.ends_with(".cuh"); }),
            80);
  const std::vector<Image> images = build(names);
  for (std::size_t i = 0; i < names.size(); ++i)
    EXPECT_EQ(images[i].log.find("warning"), std::string::npos) << names[i] << "\n" << images[i].log;
}

TEST_P(DeviceHeaders, OneThatNeedsAnotherIsReported) {
  // A table without its macros stands for a header that relies on an earlier include.
  const std::string error = error_text([&] { build(std::vector<std::string>{"base/dtype.inc"}); });
  EXPECT_NE(error.find("base/dtype.inc does not compile"), std::string::npos) << error;
}

INSTANTIATE_TEST_SUITE_P(Of, DeviceHeaders, testing::Values("compute_80", "compute_90a"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace cermet::jit
