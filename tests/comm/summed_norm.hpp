// Rows that are summed over ranks, added to the residual and normalized: what follows every product of a model over
// several ranks.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "graph/text.hpp"
#include "runtime/session.hpp"
#include "tests/runtime/tokens.hpp"

namespace cermet::test {

inline const std::string norm_alone = R"(  %y = rms_norm(%h, %w) {eps = 1e-05, out_dtype = "bf16"} : bf16[T, 512]
)";
/// As layers have them whose products take quantized rows.
inline std::string quantized_to(const std::string& dtype) {
  return "  %n = rms_norm(%h, %w) {eps = 1e-05} : f32[T, 512]\n  %y, %scale = dynamic_quant(%n) {out_dtype = \"" +
         dtype + "\"} : " + dtype + "[T, 512], f32[T]\n  output scale = %scale\n";
}

/// h = residual + sum over ranks of x; y is what the tail makes of it.
inline std::string summed_norm(int ranks, bool sum_leaves, const std::string& tail = norm_alone) {
  return fmt::format(R"(graph summed {{
  input %x : f32[T, 512]
  input %residual : f32[T, 512]
  input %w : bf16[512]
  %s = all_reduce(%x) {{group = "tensor", ranks = {}}} : f32[T, 512]
  %h = add(%s, %residual) : f32[T, 512]
{}  output h = %h
  output y = %y{}
}})",
                     ranks, tail, sum_leaves ? "\n  output s = %s" : "");
}

/// Whether a step's kernel is of this family.
inline bool has_step(const Session& session, std::string_view family) {
  return std::ranges::any_of(session.executable().steps(),
                             [&](const StepInfo& step) { return step.kernel.starts_with(family); });
}

inline SessionOptions options_of(std::int64_t most, FusionMode mode, std::vector<RankGroup> groups) {
  SessionOptions options;
  options.maximum = tokens(most);
  options.fusion.mode = mode;
  options.groups = std::move(groups);
  return options;
}

inline const LoadWeight no_weights = [](const std::string&, std::int64_t, const TensorView&) {};

}  // namespace cermet::test
