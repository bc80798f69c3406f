// The report on a quantized checkpoint: report.md, and report.html with plots, which needs no other file.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/generate.hpp"
#include "quant/record.hpp"
#include "quant/target_quality.hpp"

namespace cermet {

/// A checkpoint as it was measured; absent figures were not.
struct MeasuredModel {
  std::string machine;     ///< where it ran
  std::int64_t bytes = 0;  ///< of all tensors
  std::optional<Perplexity> perplexity;
  double prefill_tokens_per_second = 0, decode_tokens_per_second = 0;  ///< 0: not measured
};

struct ReportInput {
  std::string model, machine, date;
  QuantizationRecord record;
  MeasuredModel before, after;
  std::string heldout;               ///< what perplexities were measured on; empty: nothing
  double seconds = 0;                ///< that the quantization took
  std::string target;                ///< "+0.5 %": of --target-ppl; empty: there was none
  std::vector<SchemeGroup> choices;  ///< of --target-ppl
  std::vector<TargetAttempt> attempts;
};

/// "+0.31 %": a perplexity against another.
std::string change_text(double before, double after);

std::string markdown_report(const ReportInput& input);
std::string html_report(const ReportInput& input);
/// Writes FOLDER/report.md and FOLDER/report.html.
void write_reports(const std::filesystem::path& folder, const ReportInput& input);

}  // namespace cermet
