// What launches say about the bytes that they touch, for every case of every kernel on the null device: all operands
// are covered, and nothing beyond them is named.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "tests/kernel_cuda/epilogue_case.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/kernel_cuda/region_data.hpp"
#include "tests/support/product_regions.hpp"
#include "tests/support/rotated_regions.hpp"
#include "tests/support/row_regions.hpp"

namespace cermet {
namespace {

bool lies_in(const ByteRange& inner, const ByteRange& outer) {
  return outer.begin <= inner.begin && inner.begin + inner.bytes <= outer.begin + outer.bytes;
}

/// Whether launches touch every element of an operand.
bool is_covered(const TensorView& view, const Plan& plan,
                std::span<const ByteRange> (Plan::*list)(const Launch&) const) {
  const ByteRange whole = byte_range(view);
  for (const Launch& launch : plan.launches())
    for (const ByteRange& range : (plan.*list)(launch))
      if (lies_in(whole, range)) return true;
  std::vector<bool> touched(static_cast<std::size_t>(whole.bytes));
  for (const Launch& launch : plan.launches())
    for (const ByteRange& range : (plan.*list)(launch))
      for (std::int64_t b = std::max<std::int64_t>(0, range.begin - whole.begin);
           b < std::min(whole.bytes, range.begin - whole.begin + range.bytes); ++b)
        touched[static_cast<std::size_t>(b)] = true;
  const auto bytes = byte_size(view.dtype);
  for (std::int64_t e = 0; e < view.elements() && whole.bytes > 0; ++e)
    for (std::int64_t b = 0; b < bytes; ++b)
      if (!touched[static_cast<std::size_t>(element_offset(view, e) * bytes + b)]) return false;
  return true;
}

/// By definition.
bool reads_a_part(const Kernel& kernel) {
  return kernel.name == std::string_view("movement.slice") || kernel.name == std::string_view("local.broadcast_from") ||
         kernel.name == std::string_view("local.scatter_from");
}

/// Whether an operand's memory holds a result, too: what of it is written need not be read.
bool is_updated(const Region& region, std::size_t operand) {
  for (std::size_t n = 0; n < region.nodes.size(); ++n)
    for (std::size_t o = 0; o < region.nodes[n].problem.outputs.size(); ++o)
      if (const int alias = alias_of(region.nodes[n].problem, o);
          alias >= 0 && region.operand_of(n, static_cast<std::size_t>(alias)) == operand)
        return true;
  return false;
}

/// By kernel: launches that say which bytes they touch, and those of several that do not.
struct DeclaredLaunches {
  int declared = 0, silent = 0;
};

/// Checks launches that say anything.
DeclaredLaunches count_of(const Region& region, const Kernel& kernel, std::int64_t padding) {
  NullLaunches null(region, kernel);
  const std::vector<TensorView> inputs = null.inputs(), outputs = null.outputs(padding);
  null.launch(inputs, outputs);
  const Plan& plan = null.plan();
  std::vector<ByteRange> known{null.workspace()};
  for (const auto* list : {&inputs, &outputs})
    for (const TensorView& view : *list) known.push_back(byte_range(view));
  DeclaredLaunches count;
  for (const Launch& launch : plan.launches()) {
    if (launch.kind != Launch::Kind::program) continue;
    count.declared += launch.declared;
    count.silent += !launch.declared && plan.launches().size() > 1;
    for (const auto& list : {plan.reads(launch), plan.writes(launch)})
      for (const ByteRange& range : list)
        EXPECT_TRUE(range.bytes == 0 ||
                    std::ranges::any_of(known, [&](const ByteRange& k) { return lies_in(range, k); }))
            << kernel.name << " names bytes that are no operand's of " << region.to_string();
  }
  const bool all_say = std::ranges::all_of(plan.launches(), [](const Launch& launch) { return launch.declared; });
  if (plan.launches().empty() || !all_say) return count;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(reads_a_part(kernel) || is_updated(region, i) || is_covered(inputs[i], plan, &Plan::reads))
        << kernel.name << " reads less than operand " << i << " of " << region.to_string();
  for (const TensorView& view : outputs)
    EXPECT_TRUE(is_covered(view, plan, &Plan::writes))
        << kernel.name << " writes less than a result of " << region.to_string();
  return count;
}

/// Kernels of several launches of which some say nothing, which counts as touching all operands and the workspace:
/// places that depend on values, equal shares of all sequences' keys, sorting inside a mixture, a fill and what
/// follows.
const std::set<std::string_view> partly_declared{
    "attention.decode", "attention.decode_shared", "attention.decode_tma", "image.non_max_suppression",
    "moe.mixture",      "moe.mixture_of_ranks",    "moe.permute",          "movement.nonzero",
    "movement.scatter", "movement.scatter_nd",     "movement.unique",      "pool.max_unpool"};

TEST(Declared, RangesOfEveryCase) {
  const auto device = make_null_device(90);
  std::map<std::string, DeclaredLaunches> counts;  // by kernel
  for (const OpDefinition& op : all_operators())
    for (const Case& test_case : op.cases()) {
      Region region(problem_of(op.kind, test_case));
      region.set_target(device->target());
      for (const Kernel* kernel : cuda::kernels_of(op.kind)) {
        if (decline_of(*kernel, region) || kernel->name.starts_with("cublaslt")) continue;
        for (const std::int64_t padding : {0, dense_dims_of(region.problem()) == 1 ? 3 : 0}) {
          const DeclaredLaunches found = count_of(region, *kernel, padding);
          DeclaredLaunches& count = counts[kernel->name];
          count.declared += found.declared, count.silent += found.silent;
        }
      }
    }
  for (const auto& [kernel, count] : counts)
    EXPECT_EQ(count.silent > 0, partly_declared.contains(kernel)) << kernel << " says nothing of " << count.silent;
  for (const char* kernel : {"gemm.linear.general", "gemm.linear.hopper", "gemm.linear.stream", "gemm.linear.dots",
                             "gemv.linear", "attention.decode", "movement.concat", "reduce.sum", "moe.gating_warp"})
    EXPECT_GT(counts[kernel].declared, 0) << kernel;
}

/// Weights that no launch writes, and nothing else: by the tasks that fetch them before earlier launches have ended.
TEST(Declared, OnlyConstantWeightsAreReadEarly) {
  const auto device = make_null_device(90);
  std::map<std::string, int> fetching;  // by kernel: launches
  for (const OpDefinition& op : all_operators())
    for (const Case& test_case : op.cases()) {
      Region region(problem_of(op.kind, test_case));
      region.set_target(device->target());
      for (const Kernel* kernel : cuda::kernels_of(op.kind)) {
        if (decline_of(*kernel, region) || kernel->name.starts_with("cublaslt")) continue;
        SCOPED_TRACE(fmt::format("{} of {}", kernel->name, region.to_string()));
        NullLaunches null(region, *kernel);
        const std::vector<TensorView> inputs = null.inputs(), outputs = null.outputs();
        const std::vector<RecordedLaunch> launches = null.launch(inputs, outputs);
        for (std::size_t l = 0; l < null.plan().launches().size(); ++l) {
          bool early = false;
          for (const ByteRange& range : null.plan().reads(null.plan().launches()[l])) {
            if (!range.early) continue;
            early = true;
            const auto found = std::ranges::find_if(
                inputs, [&](const TensorView& view) { return view.present && lies_in(range, byte_range(view)); });
            ASSERT_NE(found, inputs.end());
            EXPECT_TRUE(region.is_constant(static_cast<std::size_t>(found - inputs.begin())));
          }
          for (const ByteRange& range : null.plan().writes(null.plan().launches()[l])) EXPECT_FALSE(range.early);
          if (!early) continue;
          ++fetching[kernel->name];
          const std::string_view program = launches[l].program;
          EXPECT_TRUE(program == "gemv/gemv" || program == "gemm/hopper" || program == "gemm/stream" ||
                      program == "gemm/simt_split_k")
              << program;
        }
      }
    }
  for (const char* kernel : {"gemv.linear", "gemv.dual_linear", "gemv.scaled_mm", "gemm.linear.hopper",
                             "gemm.dual_linear.hopper", "gemm.scaled_mm.hopper", "gemm.linear.stream",
                             "gemm.linear.dots", "gemm.scaled_mm.stream", "gemm.grouped_linear.hopper", "conv.hopper"})
    EXPECT_GT(fetching[kernel], 0) << kernel;
  for (const char* kernel : {"gemv.grouped_linear", "attention.decode"}) EXPECT_EQ(fetching[kernel], 0) << kernel;
}

TEST(Declared, RangesOfRegions) {
  const auto device = make_null_device(90);
  const Target* const target = device->target();
  std::vector<NamedRegion> products;
  for (const ProductRegion& product : product_regions()) products.push_back({product.name, product.region(target)});
  for (const auto& list : {row_regions(target), pointwise_regions(target), decode_regions(target),
                           rotated_regions(target), rotated_rows_regions(target), products})
    for (const auto& [name, region] : list)
      for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind)) {
        if (!kernel->fuses || kernel->declines(region)) continue;
        SCOPED_TRACE(name);
        EXPECT_EQ(count_of(region, *kernel, 0).silent, 0) << kernel->name;
      }
}

}  // namespace
}  // namespace cermet
