// Regions of several operators in one launch, against the operators one after another.
#include <set>

#include "op/schema/operator.hpp"
#include "tests/kernel_cuda/region_case.hpp"
#include "tests/kernel_cuda/region_data.hpp"
#include "tests/support/rotated_regions.hpp"
#include "tests/support/row_regions.hpp"

namespace cermet {
namespace {

/// Runs a region with its kernel into results whose rows are padded, as those of the first operand may be. Returns ""
/// or what is wrong with the memory around them.
std::string run_on_device(RegionData& data, const Kernel& kernel, std::int64_t padding, TestDevice& gpu,
                          std::vector<DeviceResult>& results, std::int64_t operand_padding = 0) {
  const DeviceQueue queue = gpu.queue();
  std::vector<DeviceTensor> memory;
  std::vector<TensorView> inputs, outputs;
  for (std::size_t i = 0; i < data.operands.size(); ++i) {
    memory.emplace_back(data.operands[i].view, queue);
    inputs.push_back(packed_for(kernel, data.region, i, data.operands[i].view, memory.back(), gpu));
  }
  DeviceResult first(data.region.operand_type(0), 1, operand_padding, queue);
  if (operand_padding > 0) {
    copy(data.operands[0].view, first.view);
    first.upload(queue);
    inputs[0] = first.on_device();
  }
  for (std::size_t r = 0; r < data.region.results.size(); ++r) {
    const RegionPlace place = data.region.results[r];
    const RegionNode& node = data.region.nodes[static_cast<std::size_t>(place.node)];
    const int alias = alias_of(node.problem, static_cast<std::size_t>(place.index));
    results.emplace_back(data.region.result_type(r), 1, alias >= 0 ? 0 : padding, queue);
    if (alias < 0) continue;
    const auto operand = static_cast<std::size_t>(node.inputs[static_cast<std::size_t>(alias)].index);
    copy(data.operands[operand].view, results.back().view);
    results.back().upload(queue);
    inputs[operand] = results.back().on_device();
  }
  for (const DeviceResult& result : results) outputs.push_back(result.on_device());
  const std::vector<cuda::LoadedProgram> programs = queue.programs->get(kernel.programs(data.region));
  Plan plan;
  const cuda::TaskQueue tasks(*queue.device, plan, programs);
  kernel.bind(data.region)({inputs, outputs, nullptr, &gpu.pool, &tasks});
  plan.enqueue(*queue.stream);
  for (DeviceResult& result : results) result.download(queue);
  queue.stream->synchronize();
  for (const DeviceResult& result : results)
    if (!result.padding_untouched()) return "wrote between the rows of a strided result";
  return "";
}

double unit_of(DType t) {
  switch (t) {
    case DType::bf16: return 0x1p-8;
    case DType::f16: return 0x1p-11;
    case DType::f8_e4m3: return 0x1p-4;
    case DType::i8: return 0x1p-12;  // one quantized value of a row that another rounding moves
    default: return 0x1p-20;
  }
}

/// A unit of the coarsest type in the region, a few times over: one value that is rounded the other way changes those
/// after it by as much.
std::string compare_loosely(const Region& region, std::size_t result, const TensorView& expected,
                            const TensorView& found) {
  double unit = 0, squares = 0;
  const bool sums_a_row =
      region.problem().op->kind == OpKind::scaled_mm || region.problem().op->kind == OpKind::grouped_linear;
  for (std::size_t n = 0; n < region.nodes.size(); ++n)
    for (const TensorType& type : region.nodes[n].problem.outputs) {
      const bool is_of_many = sums_a_row && static_cast<int>(n) < region.anchor &&
                              (type.dtype == DType::f8_e4m3 || type.dtype == DType::f8_e5m2);
      unit = std::max(unit, is_of_many ? 0x1p-8 : unit_of(type.dtype));  // as for int8: one value of a row
    }
  const std::int64_t count = expected.elements();
  for (std::int64_t i = 0; i < count; ++i) squares += load(expected, i) * load(expected, i);
  const double typical = std::sqrt(squares / static_cast<double>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const double want = load(expected, i), got = load(found, i);
    const bool exact = expected.dtype == DType::boolean || expected.dtype == DType::i32;
    const double bound = exact ? 0 : 8 * unit * (std::abs(want) + typical) + (expected.dtype == DType::i8 ? 1 : 0);
    if (!(std::abs(want - got) <= bound))
      return fmt::format("result {}, element {}: expected {} within {}, found {}", result, i, want, bound, got);
  }
  return "";
}

const Kernel* kernel_of(const Region& region) {
  for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind))
    if (kernel->fuses && !decline_of(*kernel, region)) return kernel;
  return nullptr;
}

void expect_right(const std::vector<NamedRegion>& regions, TestDevice& gpu) {
  for (const NamedRegion& named : regions) {
    RegionData data(named);
    const Kernel* kernel = kernel_of(data.region);
    ASSERT_NE(kernel, nullptr) << named.name;
    const std::vector<TensorView> expected = data.reference();
    for (const std::int64_t padding : {0, 16, 3}) {
      std::vector<DeviceResult> results;
      EXPECT_EQ(run_on_device(data, *kernel, padding, gpu, results), "") << named.name << ", padding " << padding;
      for (std::size_t r = 0; r < results.size(); ++r)
        EXPECT_EQ(compare_loosely(data.region, r, expected[r], results[r].view), "")
            << named.name << ", padding " << padding;
    }
  }
}

TEST(PointwiseRegion, GivesWhatTheOperatorsGive) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  expect_right(pointwise_regions(gpu.device->target()), gpu);
}

TEST(RowRegion, GivesWhatTheOperatorsGive) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  expect_right(row_regions(gpu.device->target()), gpu);
}

TEST(DecodeRegion, GivesWhatTheOperatorsGive) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  expect_right(decode_regions(gpu.device->target()), gpu);
}

TEST(DecodeRegion, GivesWhatTheOperatorsGiveOfCompactWeights) {
  const auto null = make_null_device(90);
  TestDevice& gpu = TestDevice::get();
  Target target = *(gpu.device ? gpu.device : null)->target();
  target.compact_weights = true;
  std::vector<NamedRegion> taken;
  std::set<std::string> names;
  for (const auto& list : {bf16_row_regions(&target), rotated_regions(&target)})
    for (const NamedRegion& named : list)
      if (const Kernel* kernel = kernel_of(named.region);
          kernel != nullptr && kernel->name.starts_with("gemv.compact_")) {
        taken.push_back(named);
        names.insert(kernel->name + (named.name.starts_with("rotated") ? " with rotation" : ""));
      }
  EXPECT_EQ(names.size(), 6u) << fmt::format("{}", fmt::join(names, ", "));
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  expect_right(taken, gpu);
}

/// Quantized by the product that reads them, rows give the bits that they give when a kernel of its own quantizes them.
TEST(DecodeRegion, QuantizedRowsGiveTheBitsOfTheKernelsApart) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  for (const DType w : {DType::i8, DType::f8_e4m3, DType::f8_e5m2})
    for (const std::int64_t k : {264, 2048, 8192}) {
      RegionData whole({"whole", decode_region({.w = w, .k = k, .front = "quant"}, gpu.device->target())});
      RegionData rows({"rows", Region(whole.region.nodes[0].problem)});
      RegionData product({"product", decode_region({.w = w, .k = k, .front = ""}, gpu.device->target())});
      const Kernel* const together = kernel_of(whole.region);
      if (together == nullptr) continue;
      copy(whole.operands[0].view, rows.operands[0].view);
      std::vector<DeviceResult> quantized, apart, result;
      EXPECT_EQ(run_on_device(rows, *kernel_of(rows.region), 0, gpu, quantized), "");
      EXPECT_EQ(product.operands.size(), whole.operands.size() + 1);
      copy(quantized[0].view, product.operands[0].view);
      for (std::size_t i = 1; i < product.operands.size(); ++i) {  // the scale is between the weight and its own
        const std::int32_t input = product.region.operands[i].index;
        copy(input == 2 ? quantized[1].view : whole.operands[input == 1 ? 1 : 2].view, product.operands[i].view);
      }
      EXPECT_EQ(run_on_device(product, *kernel_of(product.region), 0, gpu, apart), "");
      EXPECT_EQ(run_on_device(whole, *together, 0, gpu, result), "");
      const TensorView &a = result[0].view, &b = apart[0].view;
      EXPECT_EQ(std::memcmp(a.data, b.data, static_cast<std::size_t>(dense_bytes(a.dtype, a.shape))), 0)
          << name_of(w) << ", K " << k;
    }
}

TEST(DecodeRegion, RowsWithoutAWeightAddNothing) {
  const auto device = make_null_device(90);
  for (const auto& [name, region] : unweighted_regions(device->target())) {
    const Kernel* kernel = kernel_of(region);
    ASSERT_NE(kernel, nullptr) << name;
    EXPECT_EQ(kernel->name, "gemv.combine") << name;
  }
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  expect_right(unweighted_regions(gpu.device->target()), gpu);
}

class RotatedRegion : public testing::TestWithParam<NamedRotatedCase> {};

TEST_P(RotatedRegion, GivesWhatTheOperatorsGive) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  expect_right({{GetParam().name, rotated_region(GetParam().c, gpu.device->target())}}, gpu);
}

/// What rope_and_cache gives of rows that hold all heads, with its other operands those of the region's last node.
std::vector<DeviceResult> rotated_alone(const RegionData& whole, const TensorView& rows, TestDevice& gpu) {
  const RegionNode& rotation = whole.region.nodes.back();
  RegionData heads({"", Region(rotation.problem)});
  std::int64_t first = 0;
  for (std::size_t i = 0; i < heads.operands.size(); ++i) {
    const TensorView& operand = heads.operands[i].view;
    const RegionInput& input = rotation.inputs[i];
    if (input.from == RegionInput::From::outside)
      copy(whole.operands[static_cast<std::size_t>(input.index)].view, operand);
    if (!input.is_inside()) continue;
    const std::int64_t columns = operand.elements() / operand.shape[0];
    for (std::int64_t e = 0; e < operand.elements(); ++e)
      copy_element(rows, e / columns * rows.shape[1] + first + e % columns, operand, e);
    first += columns;
  }
  std::vector<DeviceResult> results;
  EXPECT_EQ(run_on_device(heads, *cuda::kernels_of(OpKind::rope_and_cache).front(), 0, gpu, results), "");
  return results;
}

/// The bits of the product's kernel and that of rope_and_cache, one after the other; also where the token is not kept.
TEST_P(RotatedRegion, GivesTheBitsOfTheKernelsApart) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const auto& [name, c] = GetParam();
  const Target* const target = gpu.device->target();
  for (const bool kept : {true, false}) {
    RegionData whole({name, rotated_region(c, target)}), product({name, product_before_rotation(c, target)});
    for (std::size_t i = 0; i < product.operands.size(); ++i) copy(whole.operands[i].view, product.operands[i].view);
    constexpr std::size_t slots = 8;
    if (!kept)
      store(whole.operands[static_cast<std::size_t>(whole.region.nodes.back().inputs[slots].index)].view, 0, -1);
    std::vector<DeviceResult> together, rows;
    const Kernel *const kernel = kernel_of(whole.region), *const alone = decline_of(*kernel, product.region)
                                                                             ? kernel_of(product.region)
                                                                             : kernel;
    EXPECT_EQ(run_on_device(whole, *kernel, 0, gpu, together), "");
    EXPECT_EQ(run_on_device(product, *alone, 0, gpu, rows), "");
    const std::vector<DeviceResult> apart = rotated_alone(whole, rows.back().view, gpu);
    for (std::size_t r = 0; r < apart.size(); ++r) {
      const TensorView &a = together[together.size() - apart.size() + r].view, &b = apart[r].view;
      EXPECT_EQ(std::memcmp(a.data, b.data, static_cast<std::size_t>(dense_bytes(a.dtype, a.shape))), 0)
          << "result " << r << ", kept " << kept;
    }
  }
}

/// The same where copies of 16 bytes do not suit the rows, so that another kernel takes them, one by one.
TEST_P(RotatedRegion, GivesWhatTheOperatorsGiveOfOddRows) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  if (GetParam().c.rows == 1) GTEST_SKIP() << "one row takes any address";
  RegionData data({GetParam().name, rotated_region(GetParam().c, gpu.device->target())});
  const std::vector<TensorView> expected = data.reference();
  std::vector<DeviceResult> results;
  EXPECT_EQ(run_on_device(data, *kernel_of(data.region), 0, gpu, results, 3), "");
  for (std::size_t r = 0; r < results.size(); ++r)
    EXPECT_EQ(compare_loosely(data.region, r, expected[r], results[r].view), "");
}

std::string name_of_rotated(const testing::TestParamInfo<NamedRotatedCase>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Of, RotatedRegion, testing::ValuesIn(rotated_cases()), name_of_rotated);
INSTANTIATE_TEST_SUITE_P(OfSeveralTokens, RotatedRegion, testing::ValuesIn(rotated_rows_cases()), name_of_rotated);

/// Strict edges give the bits of the unfused kernels.
TEST(PointwiseRegion, StrictEdgesGiveTheSameBits) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const DeviceQueue queue = gpu.queue();
  const auto alone = [&](const Problem& p, std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
    BoundOp op(p, select_kernel(p), gpu.pool, queue);
    std::vector<DeviceTensor> memory;
    std::vector<TensorView> on_device, given;
    memory.reserve(inputs.size());
    for (const TensorView& input : inputs) on_device.push_back(memory.emplace_back(input, queue).view);
    std::vector<DeviceResult> results;
    for (const TensorType& type : p.outputs) results.emplace_back(type, 1, 0, queue);
    for (const DeviceResult& result : results) given.push_back(result.on_device());
    op.run(on_device, given);
    for (DeviceResult& result : results) result.download(queue);
    queue.stream->synchronize();
    for (std::size_t o = 0; o < outputs.size(); ++o)
      for (std::int64_t i = 0; i < outputs[o].elements(); ++i) copy_element(results[o].view, i, outputs[o], i);
  };
  for (const NamedRegion& named : pointwise_regions(gpu.device->target())) {
    if (!named.name.ends_with("strict")) continue;
    RegionData data(named);
    const std::vector<TensorView> expected = data.run(alone);
    std::vector<DeviceResult> results;
    EXPECT_EQ(run_on_device(data, *kernel_of(data.region), 0, gpu, results), "") << named.name;
    for (std::size_t r = 0; r < results.size(); ++r)
      EXPECT_EQ(std::memcmp(expected[r].data, results[r].view.data,
                            static_cast<std::size_t>(expected[r].elements()) * size_of(expected[r].dtype)),
                0)
          << named.name << ", result " << r;
  }
}

}  // namespace
}  // namespace cermet
