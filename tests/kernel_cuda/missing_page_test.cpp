// Decoding attention whose table names a page that the cache does not have: results of that sequence are NaN, and those
// of the others as they would be.
#include <cmath>

#include "format/element.hpp"
#include "op/schema/operator.hpp"
#include "tests/kernel_cuda/paged_case.hpp"
#include "tests/kernel_cuda/region_case.hpp"

namespace cermet {
namespace {

struct MissingPage {
  const char* kernel;
  DType cache;
  std::int64_t head_size;
  std::vector<double> queries;
};

TEST(MissingPage, MakesItsSequenceNanAndNoOther) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  constexpr std::size_t tables = 3;
  for (const MissingPage& c : {MissingPage{"attention.decode", DType::bf16, 64, {1, 1}},
                               {"attention.decode", DType::i8, 128, {1, 2}},
                               {"attention.decode_shared", DType::bf16, 128, {5, 3}},
                               {"attention.decode_shared", DType::f8_e4m3, 64, {5, 16}},
                               {"attention.decode_shared", DType::bf16, 256, {1, 2}},
                               {"attention.decode_shared", DType::i8, 256, {1, 1}},
                               {"attention.decode_tma", DType::bf16, 128, {1, 1}},
                               {"attention.decode_tma", DType::i8, 256, {5, 3}},
                               {"attention.prefill_paged_wide", DType::bf16, 512, {5, 3}}}) {
    PagedCase sequences{.contexts = {300, 150}, .queries = c.queries};
    sequences.cache = c.cache;
    sequences.head_size = c.head_size;
    CaseData data = make_case_data(definition(OpKind::incre_flash_attention), sequences.named("missing_page"));
    data.problem.target = gpu.device->target();
    const auto kernels = cuda::kernels_of(OpKind::incre_flash_attention);
    const Kernel& kernel = **std::ranges::find(kernels, c.kernel, &Kernel::name);
    const Region region(data.problem);
    if (decline_of(kernel, region)) continue;
    const std::vector<DeviceResult> whole = run_region(region, data.inputs, kernel, 0, gpu);
    for (const double page : {-1.0, 1000.0}) {
      format::store_element(data.inputs[tables].data, DType::i32, 7, page);  // of the first sequence
      const std::vector<DeviceResult> broken = run_region(region, data.inputs, kernel, 0, gpu);
      const auto first = static_cast<std::int64_t>(c.queries[0]) * sequences.heads * c.head_size;
      for (std::int64_t i = 0; i < whole[0].view.elements(); ++i) {
        const double before = load(whole[0].view, i), after = load(broken[0].view, i);
        ASSERT_TRUE(i < first ? std::isnan(after) : before == after)
            << c.kernel << ", a cache of " << name_of(c.cache) << ", page " << page << ", element " << i << ": "
            << before << " and " << after;
      }
    }
  }
}

}  // namespace
}  // namespace cermet
