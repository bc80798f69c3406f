// The quality that docs/guide/quantize.md states, held on a shorter text that calibration does not see.
#include <cmath>
#include <cstdlib>

#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

/// The rise of perplexity, in per cent, of a quantization; NaN where it fails.
double rise(const std::string& model, const std::string& options) {
  const ScratchFolder scratch;
  const CommandResult result = run_cermet("quantize " + model +
                                          " --calib models/demo/calibration.jsonl --heldout models/demo/heldout.txt --heldout-chars 60000 --no-speed --json "
                                          "--out " +
                                          (scratch / "out").string() + " " + options);
  EXPECT_EQ(result.code, 0) << result.err;
  if (result.code != 0) return std::nan("");
  const nlohmann::json json = result.json();
  return 100 * (json["perplexity_after"].get<double>() / json["perplexity_before"].get<double>() - 1);
}

TEST(QuantizeQuality, WeightsAloneCostATenthOfAPerCent) { EXPECT_LE(rise("models/demo", "--scheme w8a16"), 0.1); }

TEST(QuantizeQuality, DynamicScalesCostThreeTenths) { EXPECT_LE(rise("models/demo", "--scheme w8a8_dynamic"), 0.3); }

TEST(QuantizeQuality, TheDefaultPolicyCostsEightTenths) { EXPECT_LE(rise("models/demo", ""), 0.8); }

TEST(QuantizeQuality, OutliersAreMet) {
  const ScratchFolder scratch;
  const char* python = std::getenv("CERMET_TEST_PYTHON");
  const std::string model = (scratch / "outliers").string();
  const std::string tool = std::string(python ? python : "python3") + " " CERMET_SOURCE_DIR "/tools/make_outlier_model.py " CERMET_SOURCE_DIR "/models/demo ";
  if (std::system((tool + model + " >/dev/null 2>&1").c_str()) != 0) GTEST_SKIP() << "tools/make_outlier_model.py needs Python with numpy and safetensors";
  const auto perplexity = [](const std::string& folder) {
    return run_cermet("eval " + folder + " --text models/demo/heldout.txt --chars 60000 --json").json()["perplexity"].get<double>();
  };
  EXPECT_NEAR(perplexity(model) / perplexity("models/demo"), 1, 1e-4);  // the same function
  EXPECT_GE(rise(model, "--scheme w8a8_dynamic --anti-outlier none"), 5);
  EXPECT_LE(rise(model, "--scheme w8a8_dynamic"), 1);
  EXPECT_LE(rise(model, ""), 1);
}

}  // namespace
}  // namespace cermet::test
