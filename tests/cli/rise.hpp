// What a quantization of a model costs on text that calibration does not see.
#pragma once

#include <cmath>

#include "tests/cli/command.hpp"

namespace cermet::test {

/// The rise of perplexity, in per cent, of a quantization; NaN where it fails.
inline double rise(const std::string& model, const std::string& options, int heldout_chars = 60000) {
  const ScratchFolder scratch;
  const CommandResult result = run_cermet(
      "quantize " + model +
      " --calib models/demo/calibration.jsonl --heldout models/demo/heldout.txt --heldout-chars " +
      std::to_string(heldout_chars) + " --no-speed --json --out " + (scratch / "out").string() + " " + options);
  EXPECT_EQ(result.code, 0) << result.err;
  if (result.code != 0) return std::nan("");
  const nlohmann::json json = result.json();
  return 100 * (json["perplexity_after"].get<double>() / json["perplexity_before"].get<double>() - 1);
}

}  // namespace cermet::test
