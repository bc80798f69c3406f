// A model with outliers in its activations, which tools/make_outlier_model.py makes with numpy and safetensors: the
// quantizer's anti-outlier step handles them.
#include "tests/cli/rise.hpp"
#include "tests/python/python.hpp"

namespace cermet::test {
namespace {

TEST(Outliers, AreMet) {
  const ScratchFolder scratch;
  const std::string model = (scratch / "outliers").string();
  ASSERT_NO_FATAL_FAILURE(
      expect_python(CERMET_SOURCE_DIR "/tools/make_outlier_model.py " CERMET_SOURCE_DIR "/models/demo " + model));
  const auto perplexity = [](const std::string& folder) {
    return run_cermet("eval " + folder + " --text models/demo/heldout.txt --chars 60000 --json")
        .json()["perplexity"]
        .get<double>();
  };
  EXPECT_NEAR(perplexity(model) / perplexity("models/demo"), 1, 1e-4);  // the same function
  EXPECT_GE(rise(model, "--scheme w8a8_dynamic --anti-outlier none"), 5);
  EXPECT_LE(rise(model, "--scheme w8a8_dynamic"), 1);
  EXPECT_LE(rise(model, ""), 1);
}

}  // namespace
}  // namespace cermet::test
