// The storage of a model's head through the C interface and the C++ one over it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cermet/cermet.hpp>
#include <cmath>
#include <cstddef>
#include <vector>

#include "tests/api/model_fixture.hpp"

namespace cermet::test {
namespace {

TEST(ModelHead, QuantizedItMovesLogitsALittleAndKeepsTheGreedyTokens) {
  cermet_model_options options = cermet_model_defaults();
  ASSERT_EQ(options.head, nullptr);
  cermet_generate_options six = cermet_generate_defaults();
  six.max_new_tokens = 6;
  cermet::model stored(demo, options);
  const std::vector<std::int32_t> prompt = stored.tokenize("The PostgreSQL server");
  const std::vector<float> expected = stored.logits(prompt);
  const std::vector<std::int32_t> ids = stored.generate(prompt, six);
  ASSERT_EQ(ids.size(), 6u);
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  struct Choice {
    const char* head;
    float error;  // of the largest logit
  };
  for (const Choice& choice :
       {Choice{"i8", 0.03f}, Choice{"int8", 0.03f}, Choice{"f8_e4m3", 0.06f}, Choice{"fp8", 0.06f}}) {
    SCOPED_TRACE(choice.head);
    options.head = choice.head;
    cermet::model quantized(demo, options);
    const std::vector<float> logits = quantized.logits(prompt);
    EXPECT_NE(logits, expected) << "nothing was rounded";
    ASSERT_EQ(logits.size(), expected.size());
    for (std::size_t i = 0; i < logits.size(); ++i) ASSERT_NEAR(logits[i], expected[i], choice.error * largest) << i;
    EXPECT_EQ(quantized.generate(prompt, six), ids);
  }
}

TEST(ModelHead, ProgramsFromBeforeThereWasTheMemberGetTheStoredOne) {
  cermet_model_options options = cermet_model_defaults();
  const std::vector<std::int32_t> prompt{497, 2314, 1581};
  const std::vector<float> expected = cermet::model(demo, options).logits(prompt);
  options.head = "bf16";  // what lies behind their struct is not read
  options.struct_size = offsetof(cermet_model_options, head);
  EXPECT_EQ(cermet::model(demo, options).logits(prompt), expected);
}

TEST_F(Model, HeadsOfOtherTypesAreRefused) {
  for (const char* name : {"bf16", "int4"}) {
    options.head = name;
    expect_refused(CERMET_INVALID_ARGUMENT, load(tiny),
                   {std::string("head: expected i8 or f8_e4m3, found \"") + name + '"'});
  }
}

}  // namespace
}  // namespace cermet::test
