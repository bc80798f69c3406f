// Calls that must fail: one file each in tests/op/must_fail. Lines that start with '#' say why; "call" gives the call
// as its text form spells it, "error" the whole message that it must throw.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "op/schema/operator.hpp"
#include "op/schema/type_text.hpp"

namespace cermet {
namespace {

struct MustFail {
  std::string name, call, error;
};

MustFail read(const std::filesystem::path& path) {
  MustFail file{path.stem().string(), "", ""};
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("call ")) file.call = line.substr(5);
    else if (line.starts_with("error ")) file.error = line.substr(6);
    else
      EXPECT_TRUE(line.empty() || line.starts_with("#"))
          << path << ": expected a line of '#', 'call' or 'error', found " << line;
  }
  return file;
}

std::vector<MustFail> every_file() {
  std::vector<MustFail> files;
  for (const auto& entry : std::filesystem::directory_iterator(CERMET_SOURCE_DIR "/tests/op/must_fail"))
    files.push_back(read(entry.path()));
  std::sort(files.begin(), files.end(), [](const MustFail& a, const MustFail& b) { return a.name < b.name; });
  return files;
}

class MustFailTest : public testing::TestWithParam<MustFail> {};

TEST_P(MustFailTest, WithThisMessage) {
  ASSERT_NE(GetParam().call, "");
  ASSERT_NE(GetParam().error, "");
  OperatorCall call = parse_call(GetParam().call);
  const OpDefinition* op = find_operator(call.name);
  ASSERT_NE(op, nullptr) << call.name;
  try {
    const Problem problem = make_problem(*op, std::move(call.inputs), call.attributes);
    ADD_FAILURE() << "accepted: " << problem.to_string();
  } catch (const Error& error) {
    EXPECT_TRUE(error.status() == Status::invalid_argument || error.status() == Status::unsupported)
        << status_name(error.status());
    EXPECT_EQ(std::string(error.what()), GetParam().error);
  }
}

INSTANTIATE_TEST_SUITE_P(Files, MustFailTest, testing::ValuesIn(every_file()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace cermet
