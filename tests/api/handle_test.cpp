// Handles, statuses and schemas through the C interface.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <cstring>
#include <string>
#include <thread>

#include "tests/api/refusal.hpp"

namespace cermet::test {
namespace {

TEST(Handle, NamesDeviceAndThreads) {
  cermet_handle* handle = nullptr;
  ASSERT_EQ(cermet_create("cpu", 3, &handle), CERMET_OK);
  EXPECT_EQ(cermet_threads(handle), 3);
  EXPECT_EQ(cermet_computes(handle), 1);
  EXPECT_EQ(cermet_computes(nullptr), 0);
  EXPECT_NE(std::string(cermet_device(handle)).find("cpu (3 threads"), std::string::npos);
  cermet_destroy(handle);
  cermet_destroy(nullptr);
  handle = nullptr;
  expect_refused(cermet_create("gpu", 0, &handle), {"gpu", "cpu", "cuda"});
  expect_refused(cermet_create("cpu", -1, &handle), {"threads", "-1"});
  expect_refused(cermet_create(nullptr, 1, &handle), {"device", "NULL"});
  expect_refused(cermet_create("cpu", 1, nullptr), {"handle", "NULL"});
  EXPECT_EQ(handle, nullptr);
}

TEST(Status, HasNamesAndAMessagePerThread) {
  EXPECT_STREQ(cermet_status_name(CERMET_OK), "ok");
  EXPECT_STREQ(cermet_status_name(CERMET_INVALID_FILE), "invalid_file");
  EXPECT_NE(std::string(cermet_version()), "");
  cermet_handle* handle = nullptr;
  expect_refused(cermet_create("abacus", 1, &handle), {"abacus"});
  std::string other = "unset";
  std::thread([&] { other = cermet_last_error_message(); }).join();
  EXPECT_EQ(other, "");
  const std::string huge(100000, 'x');
  expect_refused(cermet_create(huge.c_str(), 1, &handle), {"xxx"});
}

TEST(Schema, IsListedAndIsJson) {
  ASSERT_GT(cermet_op_count(), 0u);
  EXPECT_EQ(cermet_op_name(cermet_op_count()), nullptr);
  for (std::size_t i = 0; i < cermet_op_count(); ++i) {
    const char* schema = cermet_op_schema(cermet_op_name(i));
    ASSERT_NE(schema, nullptr);
    EXPECT_EQ(schema, cermet_op_schema(cermet_op_name(i)));
    EXPECT_NE(std::strstr(schema, "\"semantics\""), nullptr);
  }
  EXPECT_EQ(cermet_op_schema("no such"), nullptr);
  EXPECT_NE(std::string(cermet_last_error_message()).find("no such"), std::string::npos);
  EXPECT_EQ(cermet_op_schema(nullptr), nullptr);
}

/// Of results, as bindings declare functions by it: in "max_pool", `indices` is one that only some calls have; `split`
/// has any number of `y`.
TEST(Schema, SaysWhichResultsDependOnTheCall) {
  const auto outputs = [](const char* name) { return nlohmann::json::parse(cermet_op_schema(name))["outputs"]; };
  EXPECT_EQ(outputs("max_pool")[0]["optional"], false);
  EXPECT_EQ(outputs("max_pool")[1]["optional"], true);
  EXPECT_EQ(outputs("topk")[1]["optional"], false);
  EXPECT_EQ(outputs("kv_cache_write")[2]["optional"], true);
  EXPECT_EQ(outputs("split")[0]["optional"], false);
  EXPECT_EQ(outputs("split")[0]["variadic"], true);
  EXPECT_EQ(outputs("topk")[1]["variadic"], false);
}

}  // namespace
}  // namespace cermet::test
