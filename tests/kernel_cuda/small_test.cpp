// A small case for each kernel that keeps operands in shared memory, one test each: few enough accesses for racecheck,
// which is a hundred times slower.
#include "op/schema/operator.hpp"
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/kernel_cuda/paged_case.hpp"

namespace cermet {
namespace {

struct SmallCase {
  OpKind op;
  std::string_view kernel, program;  ///< that it is to take, and the program that runs last
  Case recipe;
};

void add_products(std::vector<SmallCase>& list) {
  constexpr DType bf16 = DType::bf16, f32 = DType::f32, i8 = DType::i8;
  const CaseOperand groups{{DType::i32, {4}}, values({0, 3, 3, 70})};
  for (const auto& [kernel, program] : {std::pair("hopper", "gemm/hopper"), std::pair("tensor", "gemm/general"),
                                        std::pair("general", "gemm/general")}) {
    const auto add = [&, kernel = kernel, program = program](OpKind op, std::string_view name, Case recipe) {
      static std::vector<std::unique_ptr<std::string>> names;  // views of the table must last
      names.push_back(std::make_unique<std::string>(fmt::format("gemm.{}.{}", definition(op).name, kernel)));
      recipe.name = name;
      list.push_back({op, *names.back(), program, std::move(recipe)});
    };
    add(OpKind::linear, "bf16", {"", {real(bf16, {70, 136}), weight(bf16, {72, 136}), real(f32, {72})}, to("f32")});
    add(OpKind::dual_linear, "bf16", {"", {real(bf16, {70, 136}), weight(bf16, {72, 136}), weight(bf16, {72, 136})}});
    add(OpKind::dual_linear, "biases",
        {"",
         {real(bf16, {70, 136}), weight(bf16, {72, 136}), weight(bf16, {72, 136}), real(bf16, {72}), real(f32, {72})},
         to("f32")});
    add(OpKind::scaled_mm, "i8", {"", {codes({70, 144}), weight(i8, {72, 144}), scale({70}), scale({72})}, to("bf16")});
    add(OpKind::grouped_linear, "bf16", {"", {real(bf16, {70, 72}), weight(bf16, {3, 72, 72}), groups}});
    add(OpKind::matmul, "batches", {"", {real(bf16, {2, 70, 72}), real(bf16, {2, 72, 72})}, {{"transpose_b", true}}});
  }
  const std::string_view linear = "gemm.linear.stream", dual = "gemm.dual_linear.stream",
                         scaled = "gemm.scaled_mm.stream";
  for (const std::int64_t m : {5, 16, 40}) {
    const auto named = [&](const char* what) { return fmt::format("{}_{}_rows", what, m); };
    list.push_back({OpKind::linear,
                    linear,
                    "gemm/stream",
                    {named("bf16"), {real(bf16, {m, 136}), weight(bf16, {72, 136}), real(f32, {72})}, to("f32")}});
    list.push_back({OpKind::linear,
                    linear,
                    "gemm/stream",
                    {named("written_weight"), {real(bf16, {m, 392}), real(bf16, {264, 392})}}});
    list.push_back(
        {OpKind::linear, linear, "gemm/stream", {named("rounds"), {real(bf16, {m, 200}), weight(bf16, {34056, 200})}}});
    list.push_back({OpKind::dual_linear,
                    dual,
                    "gemm/stream",
                    {named("bf16"), {real(bf16, {m, 136}), weight(bf16, {72, 136}), weight(bf16, {72, 136})}}});
    list.push_back({OpKind::scaled_mm,
                    scaled,
                    "gemm/stream",
                    {named("i8"), {codes({m, 144}), weight(i8, {72, 144}), scale({m}), scale({72})}, to("bf16")}});
  }
  list.push_back(
      {OpKind::linear, "gemm.linear.hopper", "gemm/hopper", {"f32", {real(f32, {70, 136}), weight(bf16, {72, 136})}}});
  list.push_back({OpKind::linear,
                  "gemm.linear.dots",
                  "gemm/simt_split_k",
                  {"f32", {real(f32, {9, 136}), weight(bf16, {20, 136})}}});
  const CaseOperand few{{DType::i32, {7}},
                        values({0, 0, 5, 12, 30, 40, 56})};  // of 5 groups, and rows without a weight
  list.push_back({OpKind::grouped_linear,
                  "gemm.grouped_linear.hopper",
                  "gemm/hopper",
                  {"few_rows", {real(bf16, {56, 72}), weight(bf16, {5, 72, 72}), few}}});
  list.push_back({OpKind::linear,
                  "gemm.linear.hopper",
                  "gemm/hopper",
                  {"rounds", {real(bf16, {64, 72}), weight(bf16, {34056, 72})}}});
  list.push_back({OpKind::dual_linear,
                  "gemm.dual_linear.hopper",
                  "gemm/hopper",
                  {"f32", {real(f32, {70, 136}), weight(bf16, {72, 136}), weight(bf16, {72, 136})}}});
  for (const std::int64_t k : {520, 4096}) {
    list.push_back({OpKind::linear,
                    "gemv.linear",
                    "gemv/gemv",
                    {fmt::format("bf16_{}", k), {real(f32, {1, k}), weight(bf16, {45, k})}}});
    list.push_back({OpKind::dual_linear,
                    "gemv.dual_linear",
                    "gemv/gemv",
                    {fmt::format("bf16_{}", k), {real(f32, {1, k}), weight(bf16, {45, k}), weight(bf16, {45, k})}}});
    list.push_back({OpKind::scaled_mm,
                    "gemv.scaled_mm",
                    "gemv/gemv",
                    {fmt::format("i8_{}", k), {codes({1, k}), weight(i8, {45, k}), scale({1}), scale({45})}}});
    list.push_back(
        {OpKind::grouped_linear,
         "gemv.grouped_linear",
         "gemv/grouped",
         {fmt::format("bf16_{}", k),
          {real(bf16, {4, k}), weight(bf16, {3, 24, k}), CaseOperand{{DType::i32, {4}}, values({0, 1, 1, 4})}}}});
  }
}

void add_attention(std::vector<SmallCase>& list) {
  constexpr OpKind op = OpKind::incre_flash_attention;
  constexpr DType bf16 = DType::bf16, f32 = DType::f32;
  const auto paged = [](std::string name, DType q, std::vector<double> contexts, std::vector<double> queries) {
    return PagedCase{.contexts = std::move(contexts), .queries = std::move(queries), .q = q}.named(std::move(name));
  };
  const auto add_sequences = [&](const char* program, std::string name, const PagedCase& sequences) {
    list.push_back({op, "attention.decode", program, sequences.named(std::move(name))});
  };
  list.push_back({op, "attention.decode", "attention/decode_cluster", paged("cluster", f32, {300}, {1})});
  add_sequences("attention/decode_cluster", "clusters_of_four", PagedCase::decoding(12));
  add_sequences("attention/decode_cluster", "clusters_of_two", PagedCase::decoding(30));
  PagedCase sequences = PagedCase::decoding(36);
  add_sequences("attention/decode", "whole_spans", sequences);
  sequences.contexts[17] =
      700;  // longer than a share, as its own blocks see at once, and the others after they have asked for keys
  add_sequences("attention/decode", "shares", sequences);
  for (const DType cache : {DType::i8, DType::f8_e4m3}) {
    sequences = PagedCase::decoding(36);
    sequences.cache = cache;
    add_sequences("attention/decode", fmt::format("whole_spans_{}", name_of(cache)), sequences);
    sequences.contexts[17] = 1200;
    add_sequences("attention/decode", fmt::format("shares_{}", name_of(cache)), sequences);
  }
  sequences = PagedCase::decoding(20);
  for (std::size_t i = 0; i < sequences.contexts.size(); ++i)
    sequences.contexts[i] += 15, sequences.queries[i] = i % 4 == 0 ? 4 : 1;  // none can have more than 16
  add_sequences("attention/decode", "several_queries_of_few_rows", sequences);
  sequences.heads = 24;
  add_sequences("attention/decode_shared", "several_queries", sequences);
  list.push_back({op, "attention.decode", "attention/prefill_tma", paged("prompt", bf16, {150}, {70})});
  list.push_back({op, "attention.decode", "attention/prefill_tma",
                  paged("mixed", bf16, {200, 150, 33, 40, 90, 9}, {1, 70, 0, 8, 9, 2})});
  list.push_back({op, "attention.decode", "attention/prefill_hopper",
                  paged("mixed_split_queries", f32, {200, 150, 33}, {1, 70, 3})});
  list.push_back(
      {op, "attention.prefill_paged_hopper", "attention/prefill_hopper", paged("prompt", bf16, {150, 20}, {70, 20})});
  list.push_back(
      {op, "attention.prefill_paged_tma", "attention/prefill_tma", paged("prompt", bf16, {150, 20}, {70, 20})});
  PagedCase f8{.contexts = {290, 20}, .queries = {70, 20}, .q = DType::f8_e4m3, .cache = DType::f8_e4m3};
  f8.columns = true;
  list.push_back({op, "attention.prefill_paged_f8", "attention/prefill_tma", f8.named("columns")});
  sequences = {.contexts = {150, 20}, .queries = {70, 20}, .head_size = 512};
  list.push_back({op, "attention.prefill_paged_wide", "attention/prefill_wide", sequences.named("prompt")});
  list.push_back({op, "attention.prefill_paged", "attention/prefill", paged("prompt", bf16, {150, 20}, {70, 20})});
  list.push_back({op, "attention.general_paged", "attention/general", paged("prompt", bf16, {40, 20}, {20, 1})});
}

/// A batch of sequences: several tiles of rows, of keys and of their masks.
void add_batched_attention(std::vector<SmallCase>& list) {
  const auto add = [&](std::string name, std::int64_t keys, bool operands) {
    const CaseOperand q = real(DType::f16, {2, 150, 1, 64}), k = real(DType::f16, {2, keys, 1, 64});
    Case recipe{std::move(name), {q, k, k}, {{"causal", false}}};
    if (operands) {
      recipe.inputs.resize(9);
      recipe.inputs[7] = real(DType::f16, {2, 1, 150, keys});
      recipe.inputs[8] = CaseOperand{{DType::boolean, {150, keys}}, values({1, 1, 0, 1, 1})};
    }
    list.push_back({OpKind::flash_attention, "attention.batched_hopper", "attention/batched_hopper", recipe});
    list.push_back(
        {OpKind::flash_attention, "attention.prefill_batched", "attention/prefill_batched", std::move(recipe)});
  };
  add("plain", 197, false);
  add("pairs", 132, true);
  add("odd", 133, true);
}

/// Batches of short sequences: one tile of keys and two, parts of tiles, heads beside each other and one below the
/// other, operands that are alike for queries.
void add_short_attention(std::vector<SmallCase>& list) {
  const auto add = [&](std::string name, DType type, std::int64_t queries, std::int64_t keys,
                       std::optional<CaseOperand> bias, bool mask, std::string layout) {
    const auto rows = [&](std::int64_t tokens) {
      return layout == "bshd" ? std::vector<Dim>{2, tokens, 3, 64} : std::vector<Dim>{2, 3, tokens, 64};
    };
    Case recipe{std::move(name),
                {real(type, rows(queries)), real(type, rows(keys)), real(type, rows(keys))},
                {{"causal", false}}};
    for (const char* attribute : {"q_layout", "k_layout", "v_layout", "o_layout"})
      recipe.attributes.set(attribute, layout);
    recipe.inputs.resize(9);
    recipe.inputs[7] = bias;
    if (mask) recipe.inputs[8] = CaseOperand{{DType::boolean, {queries, keys}}, values({1, 1, 0, 1, 1})};
    list.push_back({OpKind::flash_attention, "attention.batched_short", "attention/batched_short", std::move(recipe)});
  };
  add("one_tile", DType::f16, 128, 128, real(DType::f16, {2, 1, 128, 128}), false, "bshd");
  add("alike", DType::bf16, 150, 100, real(DType::f16, {2, 1, 1, 100}), false, "bshd");
  add("two_tiles", DType::f16, 300, 197, std::nullopt, false, "bshd");
  add("both", DType::f16, 70, 132, real(DType::f32, {3, 70, 132}), true, "bhsd");
  add("few", DType::bf16, 5, 10, std::nullopt, true, "bhsd");
}

std::vector<SmallCase> small_cases() {
  std::vector<SmallCase> list;
  add_products(list);
  add_attention(list);
  add_batched_attention(list);
  add_short_attention(list);
  return list;
}

class Small : public testing::TestWithParam<SmallCase> {};

TEST_P(Small, RunsTheDeclaredProgramAndAgrees) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  if (gpu.device->target()->compute_capability != 90)
    GTEST_SKIP() << "the programs are those of compute capability 9.0";
  const SmallCase& c = GetParam();
  const auto kernels = enabled_kernels_of(c.op);
  const auto kernel = std::ranges::find(kernels, c.kernel, &Kernel::name);
  ASSERT_NE(kernel, kernels.end()) << c.kernel;
  CaseData data = make_case_data(definition(c.op), c.recipe);
  data.problem.target = gpu.device->target();
  ASSERT_EQ((*kernel)->declines(data.problem), std::nullopt);
  std::vector<RecordedLaunch> launches;
  EXPECT_EQ(run_on_device(data, run_reference(data), **kernel, 0, gpu.queue(), gpu.pool, &launches), "");
  ASSERT_FALSE(launches.empty());
  EXPECT_EQ(launches.back().program, c.program);
  EXPECT_FALSE(launches.back().fallback);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Small, testing::ValuesIn(small_cases()), [](const auto& test) {
  std::string name = fmt::format("{}_{}", test.param.kernel, test.param.recipe.name);
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace cermet
