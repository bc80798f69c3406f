// The work of one `cermet quantize` command line: calibrate, put together, measure, report.
#pragma once

#include <cstdint>
#include <string>

#include "cli/ui/console.hpp"
#include "quant/policy.hpp"
#include "quant/prompts.hpp"

namespace cermet::cli {

/// What the command line asks for; see --help.
struct QuantizeCommand {
  std::string model, calibration, out, policy, scheme, heldout, check, target, tokenizer;
  std::string anti_outlier = "auto", format = "compressed-tensors";
  bool plain_experts = false;
  std::string device = "cpu";
  double clamp_percentile = 99.9;
  PromptOptions prompts;
  std::int64_t max_file_bytes = std::int64_t{4} << 30, heldout_characters = 0;
  int threads = 0;
  bool print_policy = false, restart = false, no_speed = false;
};

/// The policy of --policy or --scheme, or the default. Throws Error for both, for a broken file, for a name that is not
/// a scheme.
Policy policy_option(const QuantizeCommand& options);
/// Quantizes MODEL into --out. Throws Error naming the option, file or module that is at fault, before anything is
/// written where it can be known by then.
void run_quantize(const QuantizeCommand& command, Console& console);

}  // namespace cermet::cli
