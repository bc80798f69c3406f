// A token's experts on a GPU: chosen, sorted and multiplied with in one launch, of which the next reads them before it
// waits.
#include "kernel/cuda/device/gemv/routed.hpp"
#include "tests/kernel_cuda/region_case.hpp"
#include "tests/kernel_cuda/region_data.hpp"
#include "tests/support/decode_regions.hpp"

namespace cermet {
namespace {

constexpr std::int64_t chosen_choices = 8, chosen_experts = 40;

/// The first product of the experts, after `front`, and the second one.
Region experts_region(DType w, std::string front, const Target* target) {
  if (w == DType::i8) front += "_quant";
  return decode_region(
      {.w = w, .k = 256, .n = 96, .front = front, .gated = true, .experts = chosen_experts, .choices = chosen_choices},
      target);
}
Region combined_region(DType w, const Target* target) {
  const std::string front = w == DType::i8 ? "quant" : "";
  return decode_region({.w = w,
                        .k = 48,
                        .n = 300,
                        .front = front,
                        .experts = chosen_experts,
                        .choices = chosen_choices,
                        .combined = true},
                       target);
}

const Kernel& experts_kernel(const Region& region) {
  for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind))
    if (!decline_of(*kernel, region)) return *kernel;
  fail(Status::internal, "no kernel of {}", region.problem().op->name);
}

std::vector<TensorView> operand_views(const RegionData& data) {
  std::vector<TensorView> views;
  for (const OwnedTensor& operand : data.operands) views.push_back(operand.view);
  return views;
}

/// Logits with ties, and with numbers that are none.
void draw_logits(const TensorView& logits, int turn) {
  std::mt19937_64 random(static_cast<std::uint64_t>(turn));
  for (std::int64_t e = 0; e < logits.elements(); ++e) {
    const double value = turn % 3 == 0 ? static_cast<double>(random() % 5) : draw(normal(), e, random);
    store(logits, e, turn % 5 == 4 && e % 7 == 3 ? std::nan("") : value);
  }
}

std::string bytes_of(const TensorView& view) {
  return {view.as<const char>(), static_cast<std::size_t>(dense_bytes(view.dtype, view.shape))};
}

class ChosenExperts : public testing::TestWithParam<DType> {};

TEST_P(ChosenExperts, GiveTheBitsOfTheKernelsApart) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  const Target* const target = gpu.device->target();
  RegionData together({"chosen", experts_region(GetParam(), "choose_permute", target)}),
      sorted({"chosen", experts_region(GetParam(), "permute", target)});
  RegionData gating({"chosen", Region(together.region.nodes[0].problem)});
  const std::size_t logits = *together.region.operand_of(0, 0), ids = *sorted.region.operand_of(0, 1);
  std::vector<std::size_t> own, other;  // operands that both have
  for (std::size_t i = 0; i < together.operands.size(); ++i)
    if (i != logits) own.push_back(i);
  for (std::size_t i = 0; i < sorted.operands.size(); ++i)
    if (i != ids) other.push_back(i);
  ASSERT_EQ(own.size(), other.size());
  for (std::size_t i = 0; i < own.size(); ++i) copy(together.operands[own[i]].view, sorted.operands[other[i]].view);
  for (int turn = 0; turn < 10; ++turn) {
    draw_logits(together.operands[logits].view, turn);
    copy(together.operands[logits].view, gating.operands[0].view);
    const std::vector<DeviceResult> chosen =
        run_region(gating.region, operand_views(gating), experts_kernel(gating.region), 0, gpu);
    copy(chosen[1].view, sorted.operands[ids].view);
    const std::vector<DeviceResult> found =
        run_region(together.region, operand_views(together), experts_kernel(together.region), 0, gpu);
    const std::vector<DeviceResult> apart =
        run_region(sorted.region, operand_views(sorted), experts_kernel(sorted.region), 0, gpu);
    ASSERT_EQ(found.size(), apart.size() + 1);
    EXPECT_EQ(bytes_of(found[0].view), bytes_of(chosen[0].view)) << "weights, turn " << turn;
    for (std::size_t r = 0; r < apart.size(); ++r)
      EXPECT_EQ(bytes_of(found[r + 1].view), bytes_of(apart[r].view)) << "result " << r << ", turn " << turn;
  }
}

/// Operands of the second product, and the results of the first that they are.
std::vector<std::pair<std::size_t, std::size_t>> operands_from_first(const Region& second) {
  const std::size_t last = second.nodes.size() - 1, anchor = static_cast<std::size_t>(second.anchor);
  enum { weights, offsets, row_of, rows };
  return {{*second.operand_of(last, 2), weights},
          {*second.operand_of(anchor, 2), offsets},
          {*second.operand_of(last, 1), row_of},
          {*second.operand_of(0, 0), rows}};
}

/// Whether the last launch of a plan reads its experts before it waits.
bool reads_early(const Plan& plan) {
  gemv::Params params;
  std::memcpy(&params, plan.parameters(plan.launches().back()).data(), sizeof(params));
  return params.published != 0;
}

TEST(PublishedResults, AreThoseOfTheLastLaunch) {
  const char memory[2]{};
  const Launch::Published results{memory, memory + 1};
  Plan plan;
  EXPECT_FALSE(plan.is_published(results));
  plan.add_program({}, {});
  EXPECT_FALSE(plan.is_published({}));
  plan.publish(results);
  EXPECT_TRUE(plan.is_published(results));
  EXPECT_FALSE(plan.is_published({memory, memory}));
  plan.add_program({}, {});
  EXPECT_FALSE(plan.is_published(results));
  plan.clear();
  plan.want_ranges(true);
  plan.add_program({}, {});
  plan.publish(results);
  EXPECT_FALSE(plan.is_published(results)) << "launches are ordered by ranges";
}

TEST(PublishedResults, AreReadEarlyRightBehindTheLaunchThatMakesThem) {
  const auto device = make_null_device(90);
  for (const DType w : {DType::bf16, DType::i8})
    for (const char* front : {"choose_permute", "permute"}) {
      const Region first = experts_region(w, front, device->target()), second = combined_region(w, device->target());
      NullLaunches one(first, experts_kernel(first)), two(second, experts_kernel(second));
      const std::vector<TensorView> inputs = one.inputs(), between = one.outputs(), y = two.outputs();
      std::vector<TensorView> others = two.inputs();
      for (const auto& [operand, result] : operands_from_first(second))
        if (first.results.size() == 4 || result > 0) others[operand] = between[result - (4 - first.results.size())];
      Plan together, apart, ordered;
      ordered.want_ranges(true);
      for (Plan* const plan : {&together, &ordered}) {
        one.add_to(*plan, inputs, between);
        two.add_to(*plan, others, y);
      }
      one.add_to(apart, inputs, between);
      two.add_to(apart, two.inputs(), y);
      EXPECT_TRUE(reads_early(together)) << front;
      EXPECT_FALSE(reads_early(ordered)) << front;
      EXPECT_FALSE(reads_early(apart)) << front << ": others than the launch before gives";
    }
}

/// Both products of a token's experts, with their memory on the device.
class ExpertChain {
 public:
  ExpertChain(DType w, TestDevice& gpu)
      : gpu_(gpu),
        first_({"first", experts_region(w, "choose_permute", gpu.device->target())}),
        second_({"second", combined_region(w, gpu.device->target())}) {
    for (const OwnedTensor& operand : first_.operands) first_memory_.emplace_back(operand.view, gpu.queue());
    for (std::size_t r = 0; r < first_.region.results.size(); ++r)
      between_.emplace_back(first_.region.result_type(r), 1, 0, gpu.queue());
    for (const OwnedTensor& operand : second_.operands) second_memory_.emplace_back(operand.view, gpu.queue());
    y_.emplace(second_.region.result_type(0), 1, 0, gpu.queue());
  }

  /// Adds both launches to plans, which may be one.
  void plan(Plan& first, Plan& second) {
    const DeviceQueue queue = gpu_.queue();
    std::vector<TensorView> inputs, results, others;
    for (const DeviceTensor& operand : first_memory_) inputs.push_back(operand.view);
    for (const DeviceResult& result : between_) results.push_back(result.on_device());
    for (const DeviceTensor& operand : second_memory_) others.push_back(operand.view);
    for (const auto& [operand, result] : operands_from_first(second_.region))
      others[operand] = between_[result].on_device();
    const std::vector<TensorView> y{y_->on_device()};
    add(first_.region, inputs, results, first, queue);
    add(second_.region, others, y, second, queue);
  }
  void draw(int turn) {
    const std::size_t logits = *first_.region.operand_of(0, 0);
    draw_logits(first_.operands[logits].view, turn);
    gpu_.queue().stream->upload(first_memory_[logits].view.data, first_.operands[logits].view.data, chosen_experts * 4);
  }
  std::string result() {
    y_->download(gpu_.queue());
    gpu_.stream->synchronize();
    return bytes_of(y_->view);
  }

 private:
  void add(const Region& region, std::span<const TensorView> inputs, std::span<const TensorView> outputs, Plan& plan,
           const DeviceQueue& queue) {
    const Kernel& kernel = experts_kernel(region);
    const std::vector<cuda::LoadedProgram> programs = queue.programs->get(kernel.programs(region));
    const cuda::TaskQueue tasks(*queue.device, plan, programs);
    kernel.bind(region)({inputs, outputs, nullptr, &gpu_.pool, &tasks});
  }

  TestDevice& gpu_;
  RegionData first_, second_;
  std::vector<DeviceTensor> first_memory_, second_memory_;
  std::vector<DeviceResult> between_;
  std::optional<DeviceResult> y_;
};

TEST_P(ChosenExperts, AreReadByTheNextLaunchBeforeItWaits) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  ExpertChain chain(GetParam(), gpu);
  Plan together, first, second;
  chain.plan(together, together);
  chain.plan(first, second);
  ASSERT_TRUE(reads_early(together));
  ASSERT_FALSE(reads_early(second));
  std::vector<std::string> early;
  for (int turn = 0; turn < 50; ++turn) {  // launches that follow each other without a wait between
    chain.draw(turn);
    together.enqueue(*gpu.stream);
    early.push_back(chain.result());
  }
  for (int turn = 0; turn < 50; ++turn) {
    chain.draw(turn);
    first.enqueue(*gpu.stream);
    gpu.stream->synchronize();
    second.enqueue(*gpu.stream);
    EXPECT_EQ(chain.result(), early[static_cast<std::size_t>(turn)]) << "turn " << turn;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, ChosenExperts, testing::Values(DType::bf16, DType::i8),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace cermet
