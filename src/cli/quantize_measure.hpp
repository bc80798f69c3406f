// Quality and speed of a model before and after it was quantized.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "cli/model_options.hpp"
#include "quant/report.hpp"

namespace cermet::cli {

struct MeasureOptions {
  std::string device = "cpu";
  int threads = 0;
  std::int64_t window = 512;  ///< tokens of a window of perplexity; shorter where the model or the text is
};

/// Bytes of a checkpoint's tensors.
std::int64_t checkpoint_bytes(const std::filesystem::path& folder);
/// Perplexity over the ids. Throws Error where they fill no window of 2 tokens.
void measure_perplexity(const std::filesystem::path& folder, std::span<const std::int32_t> ids,
                        const MeasureOptions& options, const std::string& title, MeasuredModel& figures);
/// Prefill of 128 tokens and 32 decode steps, medians of three rounds after a warm-up; fewer where the model's context
/// is shorter.
void measure_speed(const std::filesystem::path& folder, const MeasureOptions& options, MeasuredModel& figures);

}  // namespace cermet::cli
