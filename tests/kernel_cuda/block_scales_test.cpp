// scaled_mm with scales of blocks that lie by columns, as CUTLASS and DeepGEMM want them: every kernel that takes a
// case gives what it gives of rows.
#include "op/operands.hpp"
#include "tests/kernel_cuda/device_case.hpp"

namespace cermet {
namespace {

/// The operand in memory of its own, with strides [1, rows].
struct ByColumns {
  AlignedBuffer memory;
  TensorView view;

  explicit ByColumns(const TensorView& from)
      : memory(dense_bytes(from.dtype, from.shape)),
        view(memory.data(), from.dtype, from.shape, Shape{1, from.shape[0]}) {
    for (std::int64_t i = 0; i < from.elements(); ++i) copy_element(from, i, view, i);
  }
};

TEST(BlockScales, MayLieByColumns) {
  using enum op::scaled_mm::Operand;
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  std::size_t tried = 0;
  for (const Case& recipe : definition(OpKind::scaled_mm).cases()) {
    if (recipe.name.find("blocks") == std::string::npos || !is_chosen(recipe.name, "CERMET_TEST_CASE")) continue;
    CaseData data = make_case_data(definition(OpKind::scaled_mm), recipe);
    data.problem.target = gpu.device->target();
    const Expected expected = run_reference(data);
    std::vector<ByColumns> scales;
    scales.reserve(2);
    for (const std::size_t i : {std::size_t{a_scale}, std::size_t{b_scale}}) {
      const bool blocks = i < data.inputs.size() && data.inputs[i].present && data.inputs[i].shape.rank() == 2 &&
                          data.inputs[i].shape[0] > 1 && data.inputs[i].shape[1] > 1;
      if (blocks) data.inputs[i] = scales.emplace_back(data.inputs[i]).view;
    }
    if (scales.empty()) continue;
    for (const Kernel* kernel : enabled_kernels_of(OpKind::scaled_mm)) {
      if (kernel->declines(data.problem)) continue;
      ++tried;
      EXPECT_EQ(run_on_device(data, expected, *kernel, 0, gpu.queue(), gpu.pool), "")
          << kernel->name << ", " << recipe.name;
    }
  }
  EXPECT_GT(tried, 3u);
}

}  // namespace
}  // namespace cermet
