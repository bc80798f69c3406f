// Several calls of generate on one model: a conversation in sequence 0.
#include <gtest/gtest.h>

#include <vector>

#include "tests/api/model_fixture.hpp"

namespace cermet::test {
namespace {

int32_t keep_id(void* user, int32_t id, const char*, size_t) {
  static_cast<std::vector<std::int32_t>*>(user)->push_back(id);
  return 0;
}

TEST_F(Model, GenerationGoesOnAfterAllThatWasSaid) {
  options.dtype = "f32";
  ASSERT_EQ(load(tiny), CERMET_OK) << cermet_last_error_message();
  cermet_generate_options generate = cermet_generate_defaults();
  generate.max_new_tokens = 4;
  generate.ignore_eos = 1;
  generate.repetition_penalty = 1.3;
  const auto answer_to = [&](const std::vector<std::int32_t>& prompt) {
    std::vector<std::int32_t> ids;
    EXPECT_EQ(cermet_model_generate(model, prompt.data(), prompt.size(), &generate, keep_id, &ids, nullptr), CERMET_OK)
        << cermet_last_error_message();
    return ids;
  };
  std::vector<std::int32_t> said{5, 6, 7};
  const std::vector<std::int32_t> first = answer_to(said);
  said.insert(said.end(), first.begin(), first.end());
  EXPECT_EQ(cermet_model_length(model, 0), 7);
  const std::int32_t heard = 9;
  const cermet_tokens more{0, &heard, 1};
  const float* logits = nullptr;
  size_t rows = 0;
  ASSERT_EQ(cermet_model_forward(model, &more, 1, 0, &logits, &rows), CERMET_OK) << cermet_last_error_message();
  said.insert(said.end(), {9, 10});
  EXPECT_EQ(cermet_model_length(model, 0), 8);
  const std::vector<std::int32_t> second = answer_to({10});
  ASSERT_EQ(cermet_model_reset(model, 0), CERMET_OK);
  EXPECT_EQ(cermet_model_length(model, 0), 0);
  EXPECT_EQ(second, answer_to(said));
}

}  // namespace
}  // namespace cermet::test
