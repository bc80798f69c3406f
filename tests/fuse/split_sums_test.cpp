// A sum that is normalized becomes a sum and a norm where a kernel adds it to what its product gives.
#include "fuse/split_sums.hpp"

#include <gtest/gtest.h>

#include "base/target.hpp"
#include "fmt/format.h"
#include "graph/text.hpp"

namespace cermet {
namespace {

/// The nodes of a graph after the pass, as "linear add rms_norm"; `nodes` and `outputs` are lines of its text.
std::string split(std::string_view nodes, std::int64_t rows = 1, bool takes = true, bool on_gpu = true,
                  std::string_view type = "f32") {
  const Graph graph = parse_graph(
      fmt::format("graph g {{\n  input %x : bf16[{0}, 64]\n  input %r : {1}[{0}, 32]\n  constant %w : bf16[32, 64]\n"
                  "  constant %n : bf16[32]\n{2}}}",
                  rows, type, nodes));
  Target target;
  target.compute_capability = 90;
  const SplitNodes result = split_sums(graph, SymbolValues(), on_gpu ? &target : nullptr, [&](const Region& region) {
    EXPECT_EQ(find_fault(region), std::nullopt) << region.to_string();
    return takes;
  });
  std::string names;
  for (const Node& node : result.graph.nodes())
    names += fmt::format("{}{}", names.empty() ? "" : " ", definition(node.op).name);
  EXPECT_EQ(result.count > 0, names.find("add ") != std::string::npos);
  return names;
}

std::string norm_of(std::string_view operands, std::int64_t rows = 1, std::string_view type = "f32") {
  return fmt::format(
      "  %d = linear(%x, %w) {{out_dtype = \"{2}\"}} : {2}[{1}, 32]\n  %y, %s = add_rms_norm({0}, %n) : {2}[{1}, 32], "
      "{2}[{1}, 32]\n",
      operands, rows, type);
}
constexpr std::string_view ends = "  output y = %y\n  output s = %s\n";

TEST(SplitSums, OfAProductAndItsResidual) {
  EXPECT_EQ(split(norm_of("%d, %r") + std::string(ends)), "linear add rms_norm");
  EXPECT_EQ(split(norm_of("%r, %d") + std::string(ends)), "linear add rms_norm") << "the other way round";
  EXPECT_EQ(split(norm_of("%d, %r", 32) + std::string(ends), 32), "linear add rms_norm");
}

TEST(SplitSums, OneBehindTheOther) {
  const std::string second =
      "  %e = linear(%x, %w) {out_dtype = \"f32\"} : f32[1, 32]\n  %z, %t = add_rms_norm(%e, %s, %n) : f32[1, 32], "
      "f32[1, 32]\n"
      "  output y = %y\n  output z = %z\n  output t = %t\n";
  EXPECT_EQ(split(norm_of("%d, %r") + second), "linear add rms_norm linear add rms_norm");
}

TEST(SplitSums, OfRowsThatAreQuantized) {
  const std::string quantized =
      "  %d = linear(%x, %w) {{out_dtype = \"f32\"}} : f32[{0}, 32]\n"
      "  %q, %s, %c = add_rms_norm_quant(%d, %r, %n) : i8[{0}, 32], f32[{0}, 32], f32[{0}]\n"
      "  output q = %q\n  output s = %s\n  output c = %c\n";
  EXPECT_EQ(split(fmt::format(fmt::runtime(quantized), 1)), "linear add rms_norm_quant");
  EXPECT_EQ(split(fmt::format(fmt::runtime(quantized), 2), 2), "linear add_rms_norm_quant")
      << "of several rows it was slower";
}

TEST(SplitSums, WhatKeepsItWhole) {
  EXPECT_EQ(split(norm_of("%d, %r") + std::string(ends), 1, false), "linear add_rms_norm") << "no kernel takes it";
  EXPECT_EQ(split(norm_of("%d, %r") + std::string(ends), 1, true, false), "linear add_rms_norm") << "the CPU";
  EXPECT_EQ(split(norm_of("%d, %r", 33) + std::string(ends), 33), "linear add_rms_norm") << "many rows";
  EXPECT_EQ(split(norm_of("%d, %r", 1, "bf16") + std::string(ends), 1, true, true, "bf16"), "linear add_rms_norm")
      << "a sum that is rounded";
  EXPECT_EQ(split(norm_of("%d, %r") + std::string(ends) + "  output d = %d\n"), "linear add_rms_norm")
      << "the product is read elsewhere";
  EXPECT_EQ(split("  %o = exp(%r) : f32[1, 32]\n  %y, %s = add_rms_norm(%o, %r, %n) : f32[1, 32], f32[1, 32]\n" +
                  std::string(ends)),
            "exp add_rms_norm")
      << "no product";
}

}  // namespace
}  // namespace cermet
