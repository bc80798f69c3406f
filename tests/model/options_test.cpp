// Options by name: values, messages, and the page that the tables make.
#include <gtest/gtest.h>

#include <limits>

#include "model/engine_options.hpp"
#include "model/generate.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {
namespace {

TEST(OptionsPage, IsUpToDate) { expect_golden("../docs/reference/options.md", option_reference_markdown()); }

TEST(Options, AreSetByName) {
  EngineOptions engine;
  set_options(engine_option_table(), &engine,
              "dtype=bf16;head=int8;compact_weights=1;max_context=64;rope_frequencies=stored;super_kernel=decode;"
              "super_kernel_options=width=2:early-start=0");
  EXPECT_EQ(engine.dtype, DType::bf16);
  EXPECT_EQ(engine.head, DType::i8);
  EXPECT_TRUE(engine.compact_weights);
  EXPECT_EQ(engine.max_context, 64);
  EXPECT_EQ(engine.rope_frequencies, RopeFrequencies::stored);
  EXPECT_EQ(engine.fusion.super_kernel.select, "decode");
  EXPECT_EQ(engine.fusion.super_kernel.options, "width=2:early-start=0");
  EXPECT_EQ(engine.max_sequences, 1) << "what is not named keeps its value";
  GenerateOptions generate;
  set_options(generate_option_table(), &generate,
              "max_new_tokens=7;temperature=0.25;seed=18446744073709551615;top_k=3;");
  EXPECT_EQ(generate.max_new_tokens, 7);
  EXPECT_EQ(generate.sampling.temperature, 0.25);
  EXPECT_EQ(generate.sampling.seed, ~std::uint64_t{0});
  EXPECT_EQ(generate.sampling.top_k, 3);
  EXPECT_FALSE(generate.ignore_eos);
}

TEST(Options, TextGivesTheValueBack) {
  for (const char* text : {"weights=i8", "expert_exchange=gather", "max_batch_tokens=1", "overlap_experts=1"}) {
    const std::string_view pair = text, name = pair.substr(0, pair.find('=')), value = pair.substr(name.size() + 1);
    EngineOptions options;
    const OptionRow& row = engine_option_table().at(name);
    EXPECT_NE(option_text(row, &options), value);
    set_option(row, &options, name, value);
    EXPECT_EQ(option_text(row, &options), value);
    set_option(row, &options, name, "");
    EXPECT_EQ(option_text(row, &options), value) << "no text leaves the value";
  }
}

TEST(Options, MistakesAreNamed) {
  EngineOptions engine;
  const auto found = [&](const char* text) {
    return error_text([&] { set_options(engine_option_table(), &engine, text); });
  };
  EXPECT_EQ(found("head=bf16"), "head: expected i8 or f8_e4m3, found \"bf16\"");
  EXPECT_EQ(found("weights=f8"), "weights: expected i8, f8_e4m3, f16, bf16 or f32, found \"f8\"");
  EXPECT_EQ(found("rope_frequencies=some"), "rope_frequencies: expected exact or stored, found \"some\"");
  EXPECT_EQ(found("compact_weights=yes"), "compact_weights: expected 0 or 1, found \"yes\"");
  EXPECT_EQ(found("steps_per_launch=4x"), "steps_per_launch: expected 1 to 256, found \"4x\"");
  EXPECT_EQ(found("head"), "options: expected name=value;name=value, found \"head\"");
  EXPECT_EQ(found("head=int8;head=fp8"), "options: expected head once, found it twice");
  EXPECT_EQ(found("device=cuda"), "options: expected device of the handle, found it here");
  EXPECT_EQ(found("tensor_parallel=2"), "options: expected no tensor_parallel here, found it");
  const std::string unknown = found("hed=int8");
  EXPECT_TRUE(unknown.starts_with("options: expected one of dtype, weights, head, ")) << unknown;
  EXPECT_TRUE(unknown.ends_with(", found \"hed\"")) << unknown;
}

TEST(Options, RangesOfSamplingAreChecked) {
  const auto found = [](Sampling sampling) { return error_text([&] { check_sampling(sampling); }); };
  EXPECT_EQ(found({.temperature = -1}), "temperature: expected a number >= 0, at most 1000000, found -1");
  EXPECT_EQ(found({.top_k = -1}), "top_k: expected a number >= 0, found -1");
  EXPECT_EQ(found({.top_p = 0}), "top_p: expected a number in (0, 1], found 0");
  EXPECT_EQ(found({.min_p = 1.5}), "min_p: expected a number in [0, 1], found 1.5");
  EXPECT_EQ(found({.repetition_penalty = std::numeric_limits<double>::quiet_NaN()}),
            "repetition_penalty: expected a number > 0, at most 1000000, found nan");
}

}  // namespace
}  // namespace cermet
