// Checkpoints as tools and fine-tunes write them, each with the logits that transformers or an emulation of the stored
// format gives.
#include <gtest/gtest.h>

#include <cmath>

#include "io/json_file.hpp"
#include "model/engine.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

using test::ScratchFolder;

const std::filesystem::path cases = source / "tests/model/cases";

/// A case's folder with the weights that it shares with others.
std::filesystem::path model_of_case(const std::string& name, const ScratchFolder& scratch) {
  std::filesystem::path folder = scratch / "input";
  std::filesystem::create_directory(folder);
  for (const auto& entry : std::filesystem::directory_iterator(cases / name))
    if (entry.path().filename() != "case.json") std::filesystem::copy(entry.path(), folder);
  const JsonDocument document = JsonDocument::read(cases / name / "case.json");
  if (const std::optional<Json> weights = document.root().find("weights"))
    std::filesystem::copy(cases / "weights" / weights->as_string(), folder / "model.safetensors");
  return folder;
}

std::vector<std::int32_t> ids_of_command(std::string_view command) {
  std::vector<std::int32_t> ids;
  const std::size_t begin = command.find("--ids ") + 6;
  std::string list(command.substr(begin, command.find(' ', begin) - begin));
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    ids.push_back(std::stoi(list.substr(at, end - at)));
    at = end + 1;
  }
  return ids;
}

class CheckpointCases : public testing::TestWithParam<std::string> {};

TEST_P(CheckpointCases, GiveTheirLogits) {
  const JsonDocument document = JsonDocument::read(cases / GetParam() / "case.json");
  const Json expected = document.root();
  SCOPED_TRACE(expected.at("what").as_string());
  const ScratchFolder scratch;
  EngineOptions options;
  options.dtype = DType::f32;
  options.threads = 2;
  options.max_context = 64;
  Engine engine = Engine::load(model_of_case(GetParam(), scratch), options);
  const std::vector<std::int32_t> ids = ids_of_command(expected.at("command").as_string());
  const SequenceTokens all{0, ids};
  const TensorView logits = engine.forward({&all, 1}, Engine::Logits::all);
  const std::int64_t vocabulary = logits.shape[1];
  const double tolerance = expected.at("tolerance").as_number();
  const float* last = logits.as<const float>() + (logits.shape[0] - 1) * vocabulary;
  std::int64_t at = 0;
  for (const Json value : expected.at("last_row")) {
    const double found = static_cast<double>(last[at]);
    EXPECT_LE(std::abs(found - value.as_number()), tolerance) << "logit " << at;
    ++at;
  }
  EXPECT_EQ(at, vocabulary);
  std::int64_t row = 0, same = 0;
  for (const Json id : expected.at("likeliest")) {
    const float* found = logits.as<const float>() + row++ * vocabulary;
    const float largest = *std::max_element(found, found + vocabulary);
    same += found[id.as_integer(0, vocabulary - 1)] >= largest - static_cast<float>(2 * tolerance);
  }
  EXPECT_EQ(row, logits.shape[0]);
  EXPECT_EQ(same, row);
}

std::vector<std::string> cases_with_logits() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(cases)) {
    if (!std::filesystem::exists(entry.path() / "case.json")) continue;
    if (JsonDocument::read(entry.path() / "case.json").root().at("kind").as_string() == "logits")
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, CheckpointCases, testing::ValuesIn(cases_with_logits()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace cermet
