// GEMVs with a fused normalization, against the two references one after the other.
#include "tests/kernel_cuda/region_case.hpp"

namespace cermet {
namespace {

/// A normalization and the GEMV after it, whose operand 0 it computes.
struct NormedProduct {
  CaseData norm, product;
  Expected normalized, expected;

  NormedProduct(OpKind norm_op, const Case& norm_case, OpKind product_op, Case product_case)
      : norm(make_case_data(definition(norm_op), norm_case)) {
    normalized = run_reference(norm);
    std::vector<double> row;
    const TensorView& y = normalized.outputs[0].view;
    for (std::int64_t i = 0; i < y.elements(); ++i) row.push_back(static_cast<float>(load(y, i)));
    product_case.inputs[0] = CaseOperand{{DType::f32, norm.problem.outputs[0].dims}, values(std::move(row))};
    product = make_case_data(definition(product_op), product_case);
    expected = run_reference(product);
  }
  Region region(const Target* target) const {
    Region whole = chained(norm.problem, product.problem);
    whole.set_target(target);
    return whole;
  }
};

/// Runs the normalization and the GEMV in one launch; returns "" or what is wrong.
std::string run_chain(const NormedProduct& chain, const Kernel& kernel, TestDevice& gpu) {
  const Region region = chain.region(gpu.device->target());
  std::vector<TensorView> operands;
  for (const RegionPlace& place : region.operands)
    operands.push_back((place.node == 0 ? chain.norm : chain.product).inputs[static_cast<std::size_t>(place.index)]);
  const std::vector<DeviceResult> results = run_region(region, operands, kernel, 3, gpu);
  const bool adds = results.size() > 1;
  for (const DeviceResult& result : results)
    if (!result.padding_untouched()) return "wrote between the rows of a strided result";
  if (adds)
    for (std::int64_t i = 0; i < results[1].view.elements(); ++i) {
      const double want = load(chain.normalized.outputs[1].view, i), got = load(results[1].view, i);
      if (std::abs(got - want) > 0x1p-24 * std::abs(want) * 1.001)
        return fmt::format("sum, element {}: expected {}, found {}", i, want, got);
    }
  return compare(chain.product.problem, chain.expected, {results[0].view});
}

CaseOperand row(DType t, std::int64_t k, double deviation = 1) { return {{t, {1, k}}, normal(deviation)}; }
CaseOperand matrix(DType t, std::int64_t n, std::int64_t k) { return {{t, {n, k}}, normal(0.2), 0, true}; }

/// Every kernel that takes the chain; at least one must.
void check_chain(OpKind norm_op, const Case& norm_case, OpKind product_op, const Case& product_case) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const NormedProduct chain(norm_op, norm_case, product_op, product_case);
  const Region region = chain.region(gpu.device->target());
  int taken = 0;
  for (const Kernel* kernel : cuda::kernels_of(product_op)) {
    if (!kernel->fuses || kernel->declines(region)) continue;
    ++taken;
    EXPECT_EQ(run_chain(chain, *kernel, gpu), "")
        << norm_case.name << ", " << product_case.name << ", kernel " << kernel->name;
  }
  EXPECT_GT(taken, 0) << norm_case.name << ", " << product_case.name;
}

const Attributes settings{{"eps", 1e-5}, {"out_dtype", "f32"}};

TEST(Prologue, NormalizationAlone) {
  for (const std::int64_t k : {40, 264, 1000, 2048, 4096, 8192, 14336})
    for (const DType w : {DType::bf16, DType::f16, DType::f32})
      check_chain(
          OpKind::rms_norm,
          {fmt::format("k{}", k), {row(DType::f32, k, 3), CaseOperand{{DType::f32, {k}}, normal(0.5, 1)}}, settings},
          OpKind::linear, {fmt::format("{}", name_of(w)), {{}, matrix(w, 45, k)}, {{"out_dtype", "f32"}}});
}

TEST(Prologue, SumAndNormalization) {
  for (const std::int64_t k : {40, 1000, 2048, 4096, 14336})
    for (const DType delta : {DType::f32, DType::bf16})
      check_chain(
          OpKind::add_rms_norm,
          {fmt::format("k{}_{}", k, name_of(delta)),
           {row(delta, k), row(DType::f32, k, 3), CaseOperand{{DType::bf16, {k}}, normal(0.5, 1)}},
           settings},
          OpKind::linear,
          {"bias", {{}, matrix(DType::bf16, 300, k), CaseOperand{{DType::f32, {300}}}}, {{"out_dtype", "bf16"}}});
}

TEST(Prologue, BeforeTwoProducts) {
  for (const std::int64_t k : {40, 2048, 4096, 8192})
    for (const bool biases : {false, true}) {
      Case product{fmt::format("dual_{}", biases),
                   {{}, matrix(DType::bf16, 300, k), matrix(DType::bf16, 300, k)},
                   {{"out_dtype", "f32"}}};
      if (biases)
        product.inputs.insert(product.inputs.end(),
                              {CaseOperand{{DType::f32, {300}}}, CaseOperand{{DType::bf16, {300}}}});
      check_chain(
          OpKind::rms_norm,
          {fmt::format("k{}", k), {row(DType::f32, k), CaseOperand{{DType::f32, {k}}, normal(0.5, 1)}}, settings},
          OpKind::dual_linear, product);
      check_chain(OpKind::add_rms_norm,
                  {fmt::format("k{}", k),
                   {row(DType::f32, k), row(DType::f32, k), CaseOperand{{DType::f32, {k}}, normal(0.5, 1)}},
                   settings},
                  OpKind::dual_linear, product);
    }
}

TEST(Prologue, WeightOffset) {
  check_chain(OpKind::rms_norm,
              {"offset",
               {row(DType::f32, 2048), CaseOperand{{DType::f32, {2048}}, normal(0.1)}},
               {{"eps", 1e-6}, {"out_dtype", "f32"}, {"weight_offset", 1.0}}},
              OpKind::linear, {"f32", {{}, matrix(DType::bf16, 45, 2048)}, {{"out_dtype", "f32"}}});
}

}  // namespace
}  // namespace cermet
