// Kernels from outside through the C interface: added, chosen by what is created afterwards, and removed.
#include "cermet/kernels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/model/scratch.hpp"

namespace {

const std::string example = CERMET_BINARY_DIR "/examples/kernels/cpu/rms_norm.json";
const std::string program = CERMET_BINARY_DIR "/bin/cermet";

nlohmann::json listed() {
  const char* report = nullptr;
  EXPECT_EQ(cermet_kernel_list(&report), CERMET_OK) << cermet_last_error_message();
  return nlohmann::json::parse(report)["kernels"];
}

/// The environment is read once, so all of it is one test with a process of its own.
TEST(KernelsInC, AreAddedCheckedListedAndRemoved) {
  const cermet::test::ScratchFolder cache;
  setenv("CERMET_CACHE_DIR", cache.path().c_str(), 1);
  cermet_kernel_options options = cermet_kernel_defaults();
  EXPECT_EQ(options.struct_size, sizeof options);
  EXPECT_EQ(options.seconds, 60);
  options.program = program.c_str();
  const char* report = nullptr;
  ASSERT_EQ(cermet_kernel_add(example.c_str(), &options, &report), CERMET_OK) << cermet_last_error_message();
  const auto added = nlohmann::json::parse(report);
  EXPECT_EQ(added["kernel"], "mine.rms_norm");
  EXPECT_TRUE(added["unchecked"].is_null());
  EXPECT_GT(added["runs"], 10);
  EXPECT_EQ(listed().size(), 1u);
  EXPECT_EQ(cermet_kernel_add(example.c_str(), &options, nullptr), CERMET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(cermet_last_error_message()).find("expected a name that is not taken"), std::string::npos);
  options.replace = 1;
  EXPECT_EQ(cermet_kernel_add(example.c_str(), &options, nullptr), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(cermet_kernel_check("mine.rms_norm", &options, &report), CERMET_OK) << cermet_last_error_message();
  options.seconds = 0;
  EXPECT_EQ(cermet_kernel_check("mine.rms_norm", &options, &report), CERMET_INVALID_ARGUMENT);
  EXPECT_NE(std::string(cermet_last_error_message()).find("seconds: expected 1 to 3600, found 0"), std::string::npos);
  EXPECT_EQ(cermet_kernel_remove("mine.rms_norm"), CERMET_OK) << cermet_last_error_message();
  EXPECT_EQ(cermet_kernel_remove("mine.rms_norm"), CERMET_INVALID_ARGUMENT);
  EXPECT_EQ(listed().size(), 0u);
  EXPECT_EQ(cermet_kernel_add(nullptr, nullptr, nullptr), CERMET_INVALID_ARGUMENT);
  EXPECT_EQ(cermet_kernel_list(nullptr), CERMET_INVALID_ARGUMENT);
}

}  // namespace
