// What launches say about the bytes that they touch, for every case of every kernel on the null device: all operands
// are covered, nothing beyond them is named, and the tiles that items share out are as many as the items take.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "tests/kernel_cuda/epilogue_case.hpp"
#include "tests/kernel_cuda/item_bytes.hpp"
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

/// "" or what is wrong with one range of a launch.
std::string fault_of(const ByteRange& range, const Launch& launch, std::span<const ByteRange> known) {
  if (range.bytes == 0) return "";
  if (std::ranges::none_of(known, [&](const ByteRange& k) { return lies_in(range, k); }))
    return "names bytes that are no operand's";
  const ItemBox& box = range.box;
  if (!box.is_given()) return "";
  std::int64_t span = box.run, apart = box.run;
  for (int a = box.rank - 1; a >= 0; --a) {
    const ItemAxis& axis = box.axes[static_cast<std::size_t>(a)];
    if (axis.pitch < apart && axis.pitch * axis.extent > 1 && axis.extent > 1)
      return "has axes that do not lie within each other";
    span += (axis.extent - 1) * axis.pitch;
    apart = axis.extent * axis.pitch;
  }
  if (span > range.bytes) return fmt::format("has a box of {} bytes in {}", span, range.bytes);
  // The last tile of a row kernel may be short of items.
  const std::int64_t missing = box.grid.items() - launch.items;
  if (missing < 0 || missing >= std::max(box.grid.extent[3], 1u))
    return fmt::format("has a grid of {} for {} items", box.grid.items(), launch.items);
  return "";
}

/// Whether launches touch every element of an operand.
bool is_covered(const TensorView& view, const Plan& plan,
                std::span<const ByteRange> (Plan::*list)(const Launch&) const) {
  const ByteRange whole = byte_range(view);
  if (whole.bytes == 0) return true;
  ByteMap touched(whole);
  for (const Launch& launch : plan.launches())
    for (const ByteRange& range : (plan.*list)(launch))
      for (std::int64_t item = 0; item < (range.box.is_given() ? launch.items : 1); ++item) touched.mark(range, item);
  const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
  if (view.is_dense()) return touched.has(0, whole.bytes);
  for (std::int64_t e = 0; e < view.elements(); ++e)
    if (!touched.has(element_offset(view, e) * bytes, bytes)) return false;
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

/// By kernel: launches that say which items have which bytes, that say which bytes they touch as a whole, and that say
/// nothing.
struct DeclaredLaunches {
  int shared = 0, whole = 0, silent = 0;
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
    count.silent += !launch.declared;
    if (!launch.declared) continue;
    bool shares = false;
    for (const auto& list : {plan.reads(launch), plan.writes(launch)})
      for (const ByteRange& range : list) {
        EXPECT_EQ(fault_of(range, launch, known), "") << kernel.name << " of " << region.to_string();
        shares = shares || range.box.is_given();
      }
    (shares ? count.shared : count.whole) += 1;
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

/// Kernels of which no launch shares anything out, though it says what it touches: their rows begin and end within
/// items.
const std::set<std::string_view> never_shared{"gemv.grouped_linear", "rowwise.reduce_max", "rowwise.reduce_mean",
                                              "rowwise.reduce_sum"};
/// Kernels of which no launch says anything, which counts as touching all operands and the workspace: places depend on
/// values, a sequence goes through all steps, one block updates all sequences, or a launch works through lines in
/// memory of its own.
const std::set<std::string_view> undeclared{"image.non_max_suppression",
                                            "moe.expert_load",
                                            "moe.permute",
                                            "movement.nonzero",
                                            "movement.unique",
                                            "pool.max_unpool",
                                            "recurrent.gru",
                                            "recurrent.lstm",
                                            "recurrent.rnn",
                                            "sampling.advance_tokens",
                                            "transform.det",
                                            "transform.dft"};
/// Kernels of which some launches do not: equal shares of all sequences' keys; places that depend on values; sorting
/// inside a mixture; transposes of planes with more than two axes around them.
const std::set<std::string_view> partly_declared{"attention.decode",     "local.all_to_all", "moe.mixture",
                                                 "moe.mixture_of_ranks", "movement.scatter", "movement.scatter_nd",
                                                 "movement.transpose"};

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
          count.shared += found.shared, count.whole += found.whole, count.silent += found.silent;
        }
      }
    }
  for (const auto& [kernel, count] : counts) {
    EXPECT_EQ(count.shared == 0, never_shared.contains(kernel) || undeclared.contains(kernel))
        << kernel << " shares out " << count.shared;
    EXPECT_EQ(count.silent > 0, undeclared.contains(kernel) || partly_declared.contains(kernel))
        << kernel << " says nothing of " << count.silent;
    EXPECT_TRUE(count.shared + count.whole == 0 || !undeclared.contains(kernel)) << kernel;
  }
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
                      program == "gemm/dots")
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
        const DeclaredLaunches count = count_of(region, *kernel, 0);
        EXPECT_EQ(count.silent, 0) << kernel->name;
        // Shares of several rows begin and end in the middle of them, which no box says.
        EXPECT_TRUE(count.shared > 0 || kernel->name == "gemv.grouped_linear") << kernel->name;
      }
}

}  // namespace
}  // namespace cermet
