// That the plain decoder computes what engines compute where nothing is quantized.
#include "tests/model/plain_decoder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/engine.hpp"

namespace cermet::test {
namespace {

TEST(PlainDecoder, AgreesWithTheEngineOnRealCheckpoints) {
  for (const char* name : {"llama-gqa-f32", "qwen2-bias-f16", "qwen3-qknorm-bf16", "qwen3moe-mixed-f32", "mixtral-bf16",
                           "gemma2-softcap-window-bf16"}) {
    const std::filesystem::path model = std::filesystem::path(CERMET_SOURCE_DIR) / "tests/model/data/reference" / name;
    PlainDecoder plain(model);
    const std::vector<std::int32_t> ids{3, 10, 31, 66, 115, 178, 255, 26, 131};
    const std::vector<double> expected = plain.logits(ids);
    EngineOptions options;
    options.dtype = DType::f32;
    Engine engine = Engine::load(model, options);
    const SequenceTokens part{0, ids};
    const TensorView found = engine.forward({&part, 1}, Engine::Logits::all);
    ASSERT_EQ(static_cast<std::int64_t>(expected.size()), found.elements());
    const double largest = std::abs(*std::max_element(expected.begin(), expected.end(),
                                                      [](double a, double b) { return std::abs(a) < std::abs(b); }));
    for (std::size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(expected[i], static_cast<double>(found.as<float>()[i]), 2e-5 * largest) << name;
  }
}

}  // namespace
}  // namespace cermet::test
