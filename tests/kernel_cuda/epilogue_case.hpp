// Products with what follows them in one launch, beside the references of the operators one after the other; which
// kernels take them needs no GPU.
#pragma once

#include <cmath>

#include "op/schema/operator.hpp"
#include "tests/kernel_cuda/operands.hpp"
#include "tests/kernel_cuda/region_case.hpp"
#include "tests/support/case_problem.hpp"

namespace cermet {

/// An elementwise operator after the product; `other` fills its second operand.
struct After {
  Follower node;
  Fill other = {};
};

struct EpilogueCase {
  OpKind op;
  Case product;
  std::vector<After> after;
  std::vector<std::string_view> kernels;  ///< that take it on compute capability 9.0
};

inline Problem problem_of(OpKind op, const Case& recipe) {
  Problem problem = case_problem(op, recipe);
  for (std::size_t i = 0; i < recipe.inputs.size(); ++i)
    if (recipe.inputs[i] && recipe.inputs[i]->constant) problem.constant_inputs |= std::uint64_t{1} << i;
  return problem;
}

inline Region region_of(const EpilogueCase& c, const Target* target) {
  std::vector<Follower> chain;
  for (const After& after : c.after) chain.push_back(after.node);
  Region region = followed(problem_of(c.op, c.product), chain);
  region.set_target(target);
  verify(region);
  return region;
}

/// Distance between adjacent values around one.
inline double unit_of(DType dtype, double value) {
  const int mantissa = dtype == DType::f32 ? 23 : dtype == DType::f16 ? 10 : 7;
  return value == 0 ? 0 : std::ldexp(1.0, std::max(std::ilogb(value), dtype == DType::f16 ? -14 : -126) - mantissa);
}

inline std::vector<double> numbers(const TensorView& view) {
  std::vector<double> list;
  for (std::int64_t i = 0; i < view.elements(); ++i) list.push_back(load(view, i));
  return list;
}

/// A case's operands and what the references give for them.
struct Chain {
  CaseData product;
  Expected product_expected;
  std::vector<CaseData> after;
  std::vector<double> expected, bound;  ///< of the last result, where nodes follow

  explicit Chain(const EpilogueCase& c)
      : product(make_case_data(definition(c.op), c.product)), product_expected(run_reference(product)) {
    if (c.after.empty()) return;
    const std::vector<double> y = numbers(product_expected.outputs[0].view);
    const DType type = product.problem.outputs[0].dtype;
    const double depth = definition(product.problem).rounding_depth(product.problem) * 0x1p-24;
    std::vector<double> high = y, low = y;
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double error = depth * product_expected.magnitude[0][i] + 2 * unit_of(type, y[i]);
      high[i] += error, low[i] -= error;
    }
    expected = follow(c, y, &after);
    high = follow(c, high, nullptr), low = follow(c, low, nullptr);
    const DType out = after.back().problem.outputs[0].dtype;
    for (std::size_t i = 0; i < y.size(); ++i)
      bound.push_back(1.01 * std::max(std::abs(high[i] - expected[i]), std::abs(low[i] - expected[i])) +
                      2 * unit_of(out, expected[i]));
  }

  /// What the nodes after the product make of its results, each rounded to its type.
  static std::vector<double> follow(const EpilogueCase& c, std::vector<double> y, std::vector<CaseData>* keep) {
    TensorType type = problem_of(c.op, c.product).outputs[0];
    for (const After& after : c.after) {
      Case recipe{c.product.name, {CaseOperand{type, values(std::move(y))}}, after.node.attributes};
      if (after.node.other)
        recipe.inputs.insert(after.node.last ? recipe.inputs.begin() : recipe.inputs.end(),
                             CaseOperand{*after.node.other, after.other});
      CaseData data = make_case_data(definition(after.node.op), recipe);
      type = data.problem.outputs[0];
      y = numbers(run_reference(data).outputs[0].view);
      if (keep) keep->push_back(std::move(data));
    }
    return y;
  }

  std::string compare_with(const DeviceResult& result) const {
    if (expected.empty()) return compare(product.problem, product_expected, {result.view});
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double found = load(result.view, static_cast<std::int64_t>(i));
      if (!(std::abs(found - expected[i]) <= bound[i]))
        return fmt::format("element {}: expected {} +- {}, found {}", i, expected[i], bound[i], found);
    }
    return "";
  }
};

/// Runs every kernel that takes a case on the GPU.
inline void expect_agrees(const EpilogueCase& c) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const Chain chain(c);
  const Region region = region_of(c, gpu.device->target());
  std::vector<TensorView> operands;
  for (const RegionPlace& place : region.operands) {
    const CaseData& data = place.node == 0 ? chain.product : chain.after[static_cast<std::size_t>(place.node - 1)];
    operands.push_back(data.inputs[static_cast<std::size_t>(place.index)]);
  }
  for (const Kernel* kernel : enabled_kernels_of(c.op)) {
    if (decline_of(*kernel, region)) continue;
    for (const std::int64_t padding : {0, 3, 16}) {
      const std::vector<DeviceResult> results = run_region(region, operands, *kernel, padding, gpu);
      EXPECT_EQ(chain.compare_with(results[0]), "") << kernel->name << ", rows " << padding << " elements apart";
      EXPECT_TRUE(results[0].padding_untouched()) << kernel->name << ", rows " << padding << " elements apart";
    }
  }
}

/// The kernels that a case names take it, with their own programs, and the first is chosen.
inline void expect_taken(const EpilogueCase& c) {
  const auto device = make_null_device(90);
  const Region region = region_of(c, device->target());
  expect_taken(region, c.kernels);
  EXPECT_EQ(select_kernel(region).kernel->name, c.kernels.front());
}

inline std::string name_of_case(const testing::TestParamInfo<EpilogueCase>& info) {
  return fmt::format("{}_{}", definition(info.param.op).name, info.param.product.name);
}

}  // namespace cermet
