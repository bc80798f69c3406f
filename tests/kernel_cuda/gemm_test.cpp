// GEMMs at sizes and alignments that the tensor cores' kernels take: tails in rows, columns and reduction, every form
// of scale, empty groups.
#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"
#include "tests/kernel_cuda/device_case.hpp"
#include "tests/kernel_cuda/operands.hpp"

namespace cermet {
namespace {

/// A case that bulk copies cannot walk: its operands repeat along different axes.
constexpr std::string_view both_repeat = "broadcast_both";

/// Whether a launch of these cases, whose operands are all aligned, must take the kernel's fallback: results with rows
/// of whole 16 bytes are what the others store.
bool falls_back(const Kernel& kernel, const Case& recipe, const Problem& problem, std::int64_t padding) {
  if (kernel.name.ends_with(".hopper") && recipe.name == both_repeat) return true;
  const bool stores_16_bytes =
      kernel.name.ends_with(".hopper") || kernel.name.ends_with(".stream") || kernel.name.starts_with("cublaslt.");
  return stores_16_bytes && padding == 3 &&
         problem.outputs[0].elements().constant() > problem.outputs[0].dims.back().constant();
}

/// Runs every kernel that takes a case, with dense, aligned and misaligned results, against the reference.
void check_products(OpKind kind, const std::vector<Case>& cases) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const OpDefinition& op = definition(kind);
  std::vector<CaseData> data;
  std::vector<cuda::Program> programs;
  for (const Case& recipe : cases) {
    data.push_back(make_case_data(op, recipe));
    data.back().problem.target = gpu.device->target();
    for (const Kernel* kernel : enabled_kernels_of(kind))
      if (!kernel->declines(data.back().problem))
        for (cuda::Program& program : kernel->programs(data.back().problem)) programs.push_back(std::move(program));
  }
  gpu.programs->prepare(programs);
  for (std::size_t c = 0; c < data.size(); ++c) {
    const Expected expected = run_reference(data[c]);
    for (const Kernel* kernel : enabled_kernels_of(kind)) {
      if (kernel->declines(data[c].problem)) continue;
      for (const std::int64_t padding : {0, 3, 8}) {
        const std::string where =
            fmt::format("{} case {}, kernel {}, rows {} elements apart", op.name, cases[c].name, kernel->name, padding);
        std::vector<RecordedLaunch> launches;
        EXPECT_EQ(run_on_device(data[c], expected, *kernel, padding, gpu.queue(), gpu.pool, &launches), "") << where;
        ASSERT_FALSE(launches.empty()) << where;
        EXPECT_EQ(std::ranges::any_of(launches, &RecordedLaunch::fallback),
                  falls_back(*kernel, cases[c], data[c].problem, padding))
            << where << " ran " << launches.back().program;
      }
    }
  }
}

CaseOperand offsets(std::vector<double> list, DType t = DType::i32) {
  const auto count = static_cast<std::int64_t>(list.size());
  return {{t, {count}}, values(std::move(list))};
}

TEST(CudaProduct, Linear) {
  std::vector<Case> list;
  for (const std::string_view out : {"f32", "bf16", "f16"})
    for (const auto& [x, w] :
         {std::pair(DType::bf16, DType::bf16), std::pair(DType::f16, DType::f16), std::pair(DType::f32, DType::bf16)})
      list.push_back({fmt::format("{}_{}_{}", name_of(x), name_of(w), out),
                      {real(x, {150, 272}), weight(w, {136, 272}), real(DType::bf16, {136})},
                      to(out)});
  for (const std::int64_t m : {1, 17, 64, 65, 300})
    for (const DType x : {DType::bf16, DType::f32})
      list.push_back({fmt::format("{}_rows_{}", name_of(x), m),
                      {real(x, {m, 104}), weight(DType::bf16, {520, 104}), real(DType::f32, {520})},
                      to("f32")});
  list.push_back({"strided", {real(DType::bf16, {150, 72}, 8), weight(DType::bf16, {136, 72}, 16)}});
  list.push_back({"strided_f32", {real(DType::f32, {150, 72}, 8), weight(DType::bf16, {136, 72}, 16)}});
  list.push_back({"leading", {real(DType::bf16, {3, 50, 72}), weight(DType::bf16, {136, 72})}});
  list.push_back({"short", {real(DType::bf16, {130, 8}), weight(DType::bf16, {8, 8})}});
  list.push_back({"long", {real(DType::bf16, {40, 8200}), weight(DType::bf16, {24, 8200})}, to("f32")});
  list.push_back({"long_f32", {real(DType::f32, {40, 8200}), weight(DType::bf16, {24, 8200})}});
  list.push_back({"extreme",
                  {CaseOperand{{DType::f32, {2, 8}},
                               values({3.4e38, 1, -INFINITY, 0, 1e-38, 3, NAN, 5, 1e-30, 1e30, 3.3e38, 7, 1, 1, 1, 1})},
                   CaseOperand{{DType::bf16, {8, 8}},
                               values({1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
                                       0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0,
                                       0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1}),
                               0,
                               true}}});
  list.push_back({"not_constant", {real(DType::bf16, {70, 64}), real(DType::bf16, {64, 64})}});
  check_products(OpKind::linear, list);
}

TEST(CudaProduct, DualLinear) {
  std::vector<Case> list;
  for (const DType x : {DType::bf16, DType::f32})
    for (const std::string_view activation : {"silu", "gelu", "gelu_tanh", "relu"})
      list.push_back({fmt::format("{}_{}", name_of(x), activation),
                      {real(x, {150, 136}), weight(DType::bf16, {136, 136}), weight(DType::bf16, {136, 136}),
                       real(DType::bf16, {136}), real(DType::f32, {136})},
                      {{"activation", std::string(activation)}, {"out_dtype", "f32"}}});
  for (const std::int64_t m : {1, 33, 64, 200})
    list.push_back(
        {fmt::format("rows_{}", m),
         {real(DType::bf16, {m, 104}), weight(DType::bf16, {264, 104}, 8), weight(DType::bf16, {264, 104}, 24)}});
  check_products(OpKind::dual_linear, list);
}

TEST(CudaProduct, ScaledInt8) {
  std::vector<Case> list;
  const std::vector<std::pair<std::vector<Dim>, std::vector<Dim>>> scales = {
      {{150}, {136}}, {{}, {}},           {{150, 1}, {136, 1}}, {{}, {136}},
      {{150}, {1}},   {{150, 3}, {2, 3}}, {{150, 3}, {136}},    {{}, {2, 3}}};
  for (std::size_t i = 0; i < scales.size(); ++i)
    for (const std::string_view out : {"f32", "bf16"})
      list.push_back({fmt::format("scales_{}_{}", i, out),
                      {codes({150, 272}), codes({136, 272}, true), scale(scales[i].first), scale(scales[i].second),
                       real(DType::bf16, {136})},
                      to(out)});
  for (const std::int64_t m : {1, 33, 64, 200})
    list.push_back(
        {fmt::format("rows_{}", m), {codes({m, 144}), codes({520, 144}, true), scale({m}), scale({520})}, to("f16")});
  list.push_back({"no_scales", {codes({70, 144}), codes({136, 144}, true)}});
  list.push_back({"batched", {codes({3, 50, 144}), codes({136, 144}, true), scale({3, 50}), scale({136})}});
  list.push_back(
      {"largest", {{{{DType::i8, {70, 4096}}, constant(-128)}}, {{{DType::i8, {16, 4096}}, constant(-128), 0, true}}}});
  check_products(OpKind::scaled_mm, list);
}

/// Each operand of the epilogue without the others.
TEST(CudaProduct, PartsOfTheEpilogueAlone) {
  const CaseOperand a = codes({150, 144}), b = codes({136, 144}, true),
                    none_zero{{DType::i32, {150}}, integers(-128, 127)};
  check_products(OpKind::scaled_mm,
                 {{"row_scales", {a, b, scale({150})}, to("bf16")},
                  {"column_scales", {a, b, {}, scale({136})}, to("bf16")},
                  {"bias", {a, b, {}, {}, real(DType::f32, {136})}, to("f32")},
                  {"integer_bias", {a, b, {}, {}, CaseOperand{{DType::i32, {136}}, integers(-999, 999)}}, to("f32")},
                  {"zero_points", {a, b, {}, {}, {}, none_zero}, to("f32")},
                  {"residual", {a, b, {}, {}, {}, {}, real(DType::bf16, {150, 136})}, to("f32")},
                  {"out_scale", {a, b, {}, {}, {}, {}, {}, CaseOperand{{DType::f32, {}}, constant(3000)}}, to("i8")},
                  {"integers", {a, b}, to("i32")}});
  check_products(OpKind::dual_linear, {{"gate_bias",
                                        {real(DType::bf16, {70, 72}), weight(DType::bf16, {72, 72}),
                                         weight(DType::bf16, {72, 72}), real(DType::f32, {72})}},
                                       {"up_bias",
                                        {real(DType::bf16, {70, 72}),
                                         weight(DType::bf16, {72, 72}),
                                         weight(DType::bf16, {72, 72}),
                                         {},
                                         real(DType::f32, {72})}}});
}

TEST(CudaProduct, ScaledFp8) {
  std::vector<Case> list;
  for (const DType a : {DType::f8_e4m3, DType::f8_e5m2})
    for (const DType b : {DType::f8_e4m3, DType::f8_e5m2})
      list.push_back({fmt::format("{}_{}", name_of(a), name_of(b)),
                      {real(a, {130, 1040}), weight(b, {40, 1040}), scale({130}), scale({40})},
                      to("f32")});
  list.push_back({"long",
                  {real(DType::f8_e4m3, {70, 4112}), weight(DType::f8_e4m3, {24, 4112}), scale({}), scale({24})},
                  to("f32")});
  list.push_back(
      {"blocks",
       {real(DType::f8_e4m3, {130, 1040}), weight(DType::f8_e4m3, {136, 1040}), scale({130, 9}), scale({2, 9})},
       to("bf16")});
  check_products(OpKind::scaled_mm, list);
}

TEST(CudaProduct, Grouped) {
  std::vector<Case> list;
  const CaseOperand groups = offsets({0, 3, 3, 140, 140, 150}), wide = offsets({0, 0, 70, 150, 150, 150}, DType::i64);
  for (const DType x : {DType::bf16, DType::f32})
    for (const std::string_view out : {"f32", "bf16"})
      list.push_back({fmt::format("{}_{}", name_of(x), out),
                      {real(x, {150, 136}), weight(DType::bf16, {5, 136, 136}), groups, real(DType::bf16, {5, 136})},
                      to(out)});
  list.push_back({"f16_wide", {real(DType::f16, {150, 72}), weight(DType::f16, {5, 264, 72}), wide}});
  list.push_back({"strided", {real(DType::bf16, {150, 72}, 8), weight(DType::bf16, {5, 136, 72}, 8), groups}});
  list.push_back({"one_row", {real(DType::bf16, {1, 64}), weight(DType::bf16, {40, 72, 64}), offsets([] {
                                std::vector<double> begins(41, 1.0);
                                std::fill_n(begins.begin(), 34, 0.0);
                                return begins;
                              }())}});
  list.push_back({"i8",
                  {codes({150, 144}), codes({5, 136, 144}, true), groups, real(DType::f32, {5, 136}), scale({150}),
                   scale({5, 136})},
                  to("bf16")});
  list.push_back(
      {"i8_one_scale_each", {codes({150, 144}), codes({5, 136, 144}, true), wide, {}, scale({}), scale({5})}});
  list.push_back(
      {"i8_blocks", {codes({150, 272}), codes({5, 136, 272}, true), groups, {}, scale({150, 3}), scale({5, 2, 3})}});
  list.push_back({"fp8",
                  {real(DType::f8_e4m3, {150, 1040}),
                   weight(DType::f8_e4m3, {5, 40, 1040}),
                   groups,
                   {},
                   scale({150}),
                   scale({5, 40})}});
  check_products(OpKind::grouped_linear, list);
}

TEST(CudaProduct, GroupedWithRowsOfNoWeight) {
  std::vector<Case> list;
  const CaseOperand some = offsets({0, 3, 3, 70, 70, 72, 80}), all = offsets({0, 0, 0, 0, 0, 0, 80}),
                    none = offsets({0, 3, 3, 70, 70, 80, 80});
  for (const auto& [name, groups] : {std::pair("some", some), std::pair("all", all), std::pair("none", none)}) {
    list.push_back({fmt::format("bf16_{}", name),
                    {real(DType::bf16, {80, 136}), weight(DType::bf16, {5, 136, 136}), groups},
                    to("f32")});
    list.push_back({fmt::format("i8_{}", name),
                    {codes({80, 144}), codes({5, 136, 144}, true), groups, {}, scale({80}), scale({5, 136})},
                    to("bf16")});
    list.push_back({fmt::format("fp8_{}", name),
                    {real(DType::f8_e4m3, {80, 1040}),
                     weight(DType::f8_e4m3, {5, 40, 1040}),
                     groups,
                     {},
                     scale({80}),
                     scale({5, 40})}});
  }
  list.push_back({"f32", {real(DType::f32, {80, 136}), weight(DType::bf16, {5, 136, 136}), some}});
  // Blocks have several tiles, of which the first is of a group without rows; with rows of no weight after the last
  // group, and without.
  for (const bool unweighted : {false, true}) {
    std::vector<double> begins{0, 0, 0, 0};
    for (int group = 4; group <= 40; ++group)
      begins.push_back(group == 40 ? (unweighted ? 300 : 320) : (group - 3) * 8);
    if (unweighted) begins.push_back(320);
    list.push_back(
        {fmt::format("rounds_{}", unweighted),
         {codes({320, 144}), codes({40, 1024, 144}, true), offsets(begins), {}, scale({320}), scale({40, 1024})}});
  }
  check_products(OpKind::grouped_linear, list);
}

TEST(CudaProduct, Matmul) {
  std::vector<Case> list;
  for (const DType a : {DType::bf16, DType::f32})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        const std::vector<Dim> left = ta ? std::vector<Dim>{3, 72, 88} : std::vector<Dim>{3, 88, 72},
                               right = tb ? std::vector<Dim>{3, 40, 72} : std::vector<Dim>{3, 72, 40};
        list.push_back({fmt::format("{}_{}{}", name_of(a), ta ? "ta" : "", tb ? "tb" : ""),
                        {real(a, left), real(DType::bf16, right)},
                        {{"transpose_a", ta}, {"transpose_b", tb}, {"out_dtype", "f32"}}});
      }
  const Attributes transposed{{"transpose_b", true}};
  list.push_back({"broadcast_b", {real(DType::bf16, {2, 3, 40, 64}), real(DType::bf16, {72, 64})}, transposed});
  list.push_back({"broadcast_a", {real(DType::bf16, {150, 64}), real(DType::bf16, {3, 72, 64})}, transposed});
  list.push_back(
      {std::string(both_repeat), {real(DType::bf16, {2, 1, 40, 64}), real(DType::bf16, {3, 72, 64})}, transposed});
  list.push_back({"wide", {real(DType::bf16, {2, 150, 64}), real(DType::bf16, {2, 520, 64})}, transposed});
  check_products(OpKind::matmul, list);
}

}  // namespace
}  // namespace cermet
