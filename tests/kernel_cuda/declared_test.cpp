// What launches say about the bytes that they touch, for every case of every kernel on the null device: all operands are covered, nothing beyond them is named,
// and the tiles that items share out are as many as the items take.
#include <gtest/gtest.h>

#include <map>

#include "kernel/cuda/kernels.hpp"
#include "op/operator.hpp"
#include "tests/kernel_cuda/epilogue_case.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/row_regions.hpp"

namespace cermet {
namespace {

bool lies_in(const ByteRange& inner, const ByteRange& outer) { return outer.begin <= inner.begin && inner.begin + inner.bytes <= outer.begin + outer.bytes; }

/// "" or what is wrong with one range of a launch.
std::string fault_of(const ByteRange& range, const Launch& launch, std::span<const ByteRange> known) {
  if (std::ranges::none_of(known, [&](const ByteRange& k) { return lies_in(range, k); })) return "names bytes that are no operand's";
  if (range.tiles.items_each == 0) return "";
  const std::int64_t tiles = div_up(range.bytes, range.tiles.bytes_each), most = tiles * range.tiles.items_each;
  if (range.tiles.bytes_each <= 0) return "has empty tiles";
  if (launch.items > most) return fmt::format("has {} tiles of {} items each for {} items", tiles, range.tiles.items_each, launch.items);
  return launch.items + range.tiles.items_each > most ? "" : fmt::format("has {} tiles of {} items for {} items", tiles, range.tiles.items_each, launch.items);
}

bool is_covered(const ByteRange& operand, const Plan& plan, std::span<const ByteRange> (Plan::*list)(const Launch&) const) {
  return operand.bytes == 0 || std::ranges::any_of(plan.launches(), [&](const Launch& launch) {
           return std::ranges::any_of((plan.*list)(launch), [&](const ByteRange& r) { return lies_in(operand, r); });
         });
}

/// How many launches of a kernel on a region say which items have which bytes; checks those that say anything.
int shared_launches(const Region& region, const Kernel& kernel, std::int64_t padding) {
  NullLaunches null(region, kernel);
  const std::vector<TensorView> inputs = null.inputs(), outputs = null.outputs(padding);
  null.launch(inputs, outputs);
  const Plan& plan = null.plan();
  std::vector<ByteRange> known{null.workspace()};
  for (const auto* list : {&inputs, &outputs})
    for (const TensorView& view : *list) known.push_back(byte_range(view));
  int shared = 0;
  for (const Launch& launch : plan.launches()) {
    if (!launch.declared || launch.kind != Launch::Kind::program) continue;
    bool shares = false;
    for (const auto& list : {plan.reads(launch), plan.writes(launch)})
      for (const ByteRange& range : list) {
        EXPECT_EQ(fault_of(range, launch, known), "") << kernel.name << " of " << region.to_string();
        shares = shares || range.tiles.items_each > 0;
      }
    shared += shares;
  }
  const bool all_say = std::ranges::all_of(plan.launches(), [](const Launch& launch) { return launch.declared; });
  if (plan.launches().empty() || !all_say) return shared;
  for (const TensorView& view : inputs)
    EXPECT_TRUE(is_covered(byte_range(view), plan, &Plan::reads)) << kernel.name << " reads less than an operand of " << region.to_string();
  for (const TensorView& view : outputs)
    EXPECT_TRUE(is_covered(byte_range(view), plan, &Plan::writes)) << kernel.name << " writes less than a result of " << region.to_string();
  return shared;
}

TEST(Declared, RangesOfEveryCase) {
  const auto device = make_null_device(90);
  std::map<std::string, int> shared;  // by kernel: launches
  for (const OpDefinition& op : all_operators())
    for (const Case& test_case : op.cases()) {
      Region region(problem_of(op.kind, test_case));
      region.set_target(device->target());
      for (const Kernel* kernel : cuda::kernels_of(op.kind)) {
        if (decline_of(*kernel, region) || kernel->name.starts_with("cublaslt")) continue;
        for (const std::int64_t padding : {0, 3}) shared[kernel->name] += shared_launches(region, *kernel, padding);
      }
    }
  for (const char* kernel :
       {"rowwise.rms_norm", "rowwise.add_rms_norm", "rowwise.layer_norm", "rowwise.softmax", "rowwise.rms_norm_quant", "rowwise.add_rms_norm_quant",
        "rowwise.silu_and_mul_quant", "rowwise.dequant_swiglu_quant", "rowwise.dynamic_quant", "pointwise.add", "pointwise.cast", "pointwise.quantize",
        "pointwise.silu_and_mul", "attention.rope", "attention.rope_and_cache", "attention.kv_cache_write", "attention.merge_states", "movement.embedding"})
    EXPECT_GT(shared[kernel], 0) << kernel;
}

TEST(Declared, RangesOfRegions) {
  const auto device = make_null_device(90);
  for (const auto& list : {row_regions(device->target()), pointwise_regions(device->target())})
    for (const auto& [name, region] : list)
      for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind)) {
        if (!kernel->fuses || kernel->declines(region)) continue;
        SCOPED_TRACE(name);
        EXPECT_GT(shared_launches(region, *kernel, 0), 0);
      }
}

}  // namespace
}  // namespace cermet
