// What items say about their bytes, for every case of every kernel on the null device: writes of items are the same or
// apart, what they read is all that the operator's definition needs for what they write, and the items that another
// waits for are those that touch its bytes.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>

#include "device/dependency.hpp"
#include "kernel/cuda/kernels.hpp"
#include "op/schema/case_data.hpp"
#include "op/schema/operator.hpp"
#include "op/schema/reference.hpp"
#include "tests/kernel_cuda/epilogue_case.hpp"
#include "tests/kernel_cuda/item_bytes.hpp"
#include "tests/kernel_cuda/poisoned.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/kernel_cuda/region_data.hpp"
#include "tests/support/rotated_regions.hpp"
#include "tests/support/row_regions.hpp"

namespace cermet {
namespace {

/// A kernel's launches for a case, with operands in host memory that the null device does not touch.
struct CaseLaunches {
  CaseData data;
  NullLaunches null;
  std::vector<OwnedTensor> results;
  std::vector<TensorView> outputs;

  CaseLaunches(const OpDefinition& op, const Case& recipe, const Region& region, const Kernel& kernel)
      : data(make_case_data(op, recipe)), null(region, kernel) {
    for (const TensorType& type : data.problem.outputs) {
      results.emplace_back(type.dtype, bind(type.dims, {}));
      outputs.push_back(results.back().view);
    }
    null.launch(data.inputs, outputs);
  }
  const Plan& plan() const { return null.plan(); }
};

/// Calls body(kernel, launches) for cases of every kernel, in an order of their own, until it has returned true for
/// `most` of a kernel's.
template <class Body>
void for_some_cases(int most, Body&& body) {
  const auto device = make_null_device(90);
  std::map<const Kernel*, int> taken;
  for (const OpDefinition& op : all_operators()) {
    std::vector<Case> recipes = op.cases();
    std::ranges::shuffle(recipes, std::mt19937(7));
    for (const Case& recipe : recipes) {
      Region region(problem_of(op.kind, recipe));
      region.set_target(device->target());
      for (const Kernel* kernel : cuda::kernels_of(op.kind)) {
        if (taken[kernel] >= most || kernel->declines(region) || kernel->name.starts_with("cublaslt")) continue;
        SCOPED_TRACE(fmt::format("{} case {}, kernel {}", op.name, recipe.name, kernel->name));
        CaseLaunches launches(op, recipe, region, *kernel);
        taken[kernel] += body(*kernel, launches);
      }
    }
  }
}

/// Kernels whose items say more than they write: whole lines of places of which they have some, or all heads of tokens
/// of which tiles begin and end within.
const std::set<std::string_view> wide_kernels{"conv.depthwise", "attention.batched_general",
                                              "attention.prefill_batched"};

/// Items of a launch, but of many only some.
std::vector<std::int64_t> some_items(std::int64_t items) {
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < items; i += std::max<std::int64_t>(1, items / 6)) list.push_back(i);
  if (!list.empty() && list.back() + 1 != items) list.push_back(items - 1);
  return list;
}

/// Launches of programs with items that share something out.
template <class Body>
void for_each_sharing(const Plan& plan, Body&& body) {
  for (const Launch& launch : plan.launches())
    if (launch.kind == Launch::Kind::program && launch.declared && shares_out(plan.writes(launch))) body(launch);
}

TEST(DeclaredItems, WritesAreTheSameOrApart) {
  int checked = 0;
  for_some_cases(8, [&](const Kernel& kernel, CaseLaunches& launches) {
    const int before = checked;
    for_each_sharing(launches.plan(), [&](const Launch& launch) {
      for (const ByteRange& range : launches.plan().writes(launch)) {
        if (!range.box.is_given() || wide_kernels.contains(kernel.name) || launches.null.fallbacks > 0) continue;
        ByteRange whole = range;
        whole.box = {};
        std::vector<ByteMap> maps;
        for (const std::int64_t item : some_items(launch.items)) maps.emplace_back(whole).mark(range, item);
        for (std::size_t a = 0; a < maps.size(); ++a)
          for (std::size_t b = 0; b < a; ++b)
            EXPECT_TRUE(maps[a] == maps[b] || !maps[a].meets(maps[b])) << "items " << b << " and " << a << " of those";
        ++checked;
      }
    });
    return checked > before;
  });
  EXPECT_GT(checked, 1000);
}

/// Compares the elements of a result that an item has, before and after what the item does not read was spoiled.
void expect_the_same(const Plan& plan, std::int64_t item, const TensorView& result, const TensorView& before,
                     const TensorView& after, int& compared) {
  ByteMap own(byte_range(result));
  own.mark(plan.writes(plan.launches()[0]), item);
  const auto bytes = static_cast<std::int64_t>(size_of(result.dtype));
  for (std::int64_t e = 0; e < result.elements(); ++e) {
    if (!own.has(e * bytes, bytes)) continue;
    ++compared;
    const double a = load(before, e), b = load(after, e);
    ASSERT_TRUE(a == b || (std::isnan(a) && std::isnan(b)))
        << "element " << e << ", item " << item << ": " << a << " and " << b;
  }
}

/// One launch, whose items say what they write.
bool shares_results_out(const Plan& plan) {
  return plan.launches().size() == 1 && plan.launches()[0].declared && shares_out(plan.writes(plan.launches()[0]));
}

/// Elements of results that an item alone has do not depend on anything that it does not read, by the operator's own
/// reference.
TEST(DeclaredItems, ReadsAreAllThatTheDefinitionNeeds) {
  std::map<std::string, int> compared;  // elements, by kernel
  for_some_cases(3, [&](const Kernel& kernel, CaseLaunches& launches) {
    const Plan& plan = launches.plan();
    std::int64_t elements = 0;
    for (const TensorView& view : launches.data.inputs) elements += view.present ? view.elements() : 0;
    const bool checks = kernel.op == OpKind::sample;  // refuses what poison makes of its settings
    if (checks || !shares_results_out(plan) || wide_kernels.contains(kernel.name) || elements > 1 << 19) return false;
    const int before = compared[kernel.name];
    const Launch& launch = plan.launches()[0];
    const Expected expected = run_reference(launches.data);
    const std::vector<std::int64_t> items = some_items(launch.items);
    for (const std::int64_t item : std::set{items[items.size() / 2], items.back()}) {
      CaseData poisoned = copy_of(launches.data);
      int spoiled = 0;
      for (std::size_t i = 0; i < poisoned.inputs.size(); ++i)
        spoiled += poison(launches.data.inputs[i], poisoned.inputs[i], plan.reads(launch), item, item + 1);
      if (spoiled == 0) continue;
      const Expected found = run_reference(poisoned);
      for (std::size_t o = 0; o < launches.outputs.size(); ++o) {
        SCOPED_TRACE(fmt::format("result {}", o));
        const auto& aliases = definition(launches.data.problem).aliases;
        if (o < aliases.size() && aliases[o] >= 0) continue;  // what items leave as it is
        expect_the_same(plan, item, launches.outputs[o], expected.outputs[o].view, found.outputs[o].view,
                        compared[kernel.name]);
      }
    }
    return compared[kernel.name] > before;
  });
  for (const char* kernel :
       {"gemm.linear.general", "gemm.linear.tensor", "gemm.matmul.general", "gemm.matmul.plain", "gemv.linear",
        "gemm.dual_linear.hopper", "gemm.scaled_mm.general", "conv.implicit", "conv.hopper", "conv.few_channels",
        "conv.general", "pool.max", "pool.average", "reduce.sum", "rowwise.group_norm", "movement.transpose",
        "scan.cumsum", "movement.where", "rowwise.rms_norm"})
    EXPECT_GT(compared[kernel], 0) << kernel;
  EXPECT_GT(compared["attention.batched_short"], 0);
}

/// A product of several tiles in both directions, which the operator's own cases are too small for.
Region tiled_product(const Target* target) {
  RegionBuilder b(Rounding::strict, target);
  const auto product = b.add(OpKind::linear, {b.operand({DType::bf16, {400, 64}}), b.operand({DType::bf16, {520, 64}}),
                                              b.operand({DType::f32, {520}})});
  b.result(b.add(OpKind::add, {product, b.operand({DType::bf16, {400, 520}})}));
  return with_constant_weight(b, product);
}

/// Regions of rows and elements, a product, and of a decode step's those that are small.
std::vector<NamedRegion> small_regions(const Target* target) {
  const std::set<std::string> chosen{"gated_i8_264",
                                     "gated_bf16_264",
                                     "router_264",
                                     "combined_bf16_of_3_48",
                                     "rotated_bias",
                                     "rotated_k1000",
                                     "rotated_partial",
                                     "rotated_interleaved",
                                     "rotated_fp8_cache",
                                     "rotated_many_heads",
                                     "rotated_f32_weight",
                                     "rotated_tokens_before_heads",
                                     "rotated_bias_7_rows",
                                     "rotated_interleaved_8_rows",
                                     "rotated_partial_11_rows"};
  std::vector<NamedRegion> regions = row_regions(target);
  regions.push_back({"tiled_product", tiled_product(target)});
  for (NamedRegion& named : pointwise_regions(target)) regions.push_back(std::move(named));
  for (const auto& list : {decode_regions(target), rotated_regions(target), rotated_rows_regions(target)})
    std::ranges::copy_if(list, std::back_inserter(regions),
                         [&](const NamedRegion& named) { return chosen.contains(named.name); });
  return regions;
}

/// The same of regions, by the references of their operators one after another.
TEST(DeclaredItems, ReadsAreAllThatRegionsNeed) {
  const auto device = make_null_device(90);
  std::map<std::string, int> compared;
  for (const NamedRegion& named : small_regions(device->target()))
    for (const Kernel* kernel : cuda::kernels_of(named.region.problem().op->kind)) {
      if (!kernel->fuses || kernel->declines(named.region)) continue;
      SCOPED_TRACE(fmt::format("{}, kernel {}", named.name, kernel->name));
      RegionData data(named);
      const std::vector<TensorView> expected = data.reference();
      std::vector<TensorView> inputs;
      for (const OwnedTensor& operand : data.operands) inputs.push_back(operand.view);
      NullLaunches null(named.region, *kernel);
      null.launch(inputs, expected);  // which nobody writes
      if (!shares_results_out(null.plan())) continue;
      const Launch& launch = null.plan().launches()[0];
      const std::vector<std::int64_t> items = some_items(launch.items);
      for (const std::int64_t item : std::set{items[items.size() / 2], items.back()}) {
        RegionData poisoned(named);
        int spoiled = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i)
          spoiled += poison(inputs[i], poisoned.operands[i].view, null.plan().reads(launch), item, item + 1);
        if (spoiled == 0) continue;
        const std::vector<TensorView> found = poisoned.reference();
        for (std::size_t r = 0; r < expected.size(); ++r) {
          SCOPED_TRACE(fmt::format("result {}", r));
          const RegionPlace& place = named.region.results[r];
          const Problem& maker = named.region.nodes[static_cast<std::size_t>(place.node)].problem;
          if (alias_of(maker, static_cast<std::size_t>(place.index)) < 0)
            expect_the_same(null.plan(), item, expected[r], expected[r], found[r], compared[kernel->name]);
        }
      }
    }
  for (const char* kernel : {"gemm.linear.hopper", "gemm.linear.tensor", "gemm.linear.general", "gemv.norm_linear",
                             "gemv.linear", "gemv.combine", "rowwise.rms_norm", "rowwise.softmax"})
    EXPECT_GT(compared[kernel], 0) << kernel;
}

/// Every launch twice, and a launch of rows that reads its results: what items wait for, beside those that touch a byte
/// in common.
TEST(DeclaredItems, ItemsWaitForThoseThatTouchTheirBytes) {
  std::int64_t pairs = 0, needed = 0, waited = 0;
  for_some_cases(6, [&](const Kernel&, CaseLaunches& launches) {
    const std::int64_t pairs_before = pairs;
    for_each_sharing(launches.plan(), [&](const Launch& launch) {
      const std::span<const ByteRange> reads = launches.plan().reads(launch), writes = launches.plan().writes(launch);
      if (launch.items > 400) return;
      Plan plan;
      plan.want_ranges(true);
      for (int i = 0; i < 2; ++i) {
        plan.add_program(launch, {});
        plan.declare(reads, writes);
      }
      Launch rows;
      rows.items = 5;
      plan.add_program(rows, {});
      std::vector<ByteRange> read(writes.begin(), writes.end());
      for (ByteRange& range : read)
        range.box = range.bytes > 0 ? tiles_of_items(1, div_up(range.bytes, 5), range.bytes) : ItemBox{};
      plan.declare(read, {});
      for (const auto& [before, after] : {std::pair{0, 1}, std::pair{1, 2}})
        for (const std::int64_t item : some_items(plan.launches()[static_cast<std::size_t>(after)].items)) {
          const std::vector<ItemRange> found =
              items_before(plan, static_cast<std::size_t>(before), static_cast<std::size_t>(after), item);
          const auto holds = [&](std::int64_t earlier) {
            return std::ranges::any_of(found,
                                       [&](const ItemRange& r) { return r.first <= earlier && earlier < r.end; });
          };
          for (std::int64_t earlier = 0; earlier < launch.items; ++earlier) {
            const bool touches =
                common_bytes(plan, static_cast<std::size_t>(before), earlier, static_cast<std::size_t>(after), item);
            ASSERT_TRUE(!touches || holds(earlier))
                << "item " << item << " of launch " << after << " does not wait for item " << earlier;
            needed += touches;
            waited += holds(earlier);
            ++pairs;
          }
        }
    });
    return pairs > pairs_before;
  });
  EXPECT_GT(pairs, 10000);
  EXPECT_LE(waited, needed + needed / 50) << "of " << pairs << " pairs";
}

}  // namespace
}  // namespace cermet
