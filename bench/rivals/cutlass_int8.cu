// int8 products of CUTLASS with a scale for each row and column, bf16 results: a rival of bench/gpu_suite.py.
//
// script/build-rivals builds it where CUTLASS_DIR names the headers of CUTLASS 4, which are no part of this project.
// Rows: "product i8 M N K". The answer is the fastest of the tiles below; with `swapped`, tokens are the columns of the tile.
#include <memory>

#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/device/gemm_universal_adapter.h"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "cutlass/util/packed_stride.hpp"
#include "cutlass/version.h"

#include "rival.cuh"

namespace peer {

using namespace cute;
namespace fusion = cutlass::epilogue::fusion;
using Bf16 = cutlass::bfloat16_t;

/// a[M, K] times b[N, K] transposed, y[M, N]; sets one after the other.
struct Operands {
  std::int64_t m, n, k, sets;
  rival::Array<std::int8_t> a, b;
  rival::Array<float> a_scale, b_scale;
  rival::Array<Bf16> y;
  Operands(std::int64_t m, std::int64_t n, std::int64_t k)
      : m(m),
        n(n),
        k(k),
        sets(rival::sets_for(m * k + n * k + 2 * m * n)),
        a(sets * m * k),
        b(sets * n * k),
        a_scale(sets * m),
        b_scale(sets * n),
        y(sets * m * n) {
    rival::fill(a, 1);
    rival::fill(b, 2);
    rival::fill(a_scale, 3);
    rival::fill(b_scale, 4);
    rival::check(cudaDeviceSynchronize(), "operands");
  }
};

template <class Tile, class Cluster, bool Cooperative, bool Swapped, bool StreamK = false>
struct Product {
  // The scale of the tile's rows is the tokens', or, swapped, the weights'.
  using RowScale = fusion::Sm90ColBroadcast<0, Tile, float>;
  using ColumnScale = fusion::Sm90RowBroadcast<0, Tile, float>;
  template <class Out>
  using Multiply = fusion::Sm90Compute<cutlass::multiplies, Out, float, cutlass::FloatRoundStyle::round_to_nearest>;
  using Scaled = fusion::Sm90EVT<Multiply<Bf16>, RowScale, fusion::Sm90EVT<Multiply<float>, ColumnScale, fusion::Sm90AccFetch>>;
  using LayoutD = std::conditional_t<Swapped, cutlass::layout::ColumnMajor, cutlass::layout::RowMajor>;
  using MainSchedule = std::conditional_t<Cooperative, cutlass::gemm::KernelTmaWarpSpecializedCooperative, cutlass::gemm::KernelTmaWarpSpecializedPingpong>;
  using EndSchedule = std::conditional_t<Cooperative, cutlass::epilogue::TmaWarpSpecializedCooperative, cutlass::epilogue::TmaWarpSpecialized>;
  using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
                                                                             cutlass::epilogue::collective::EpilogueTileAuto, std::int32_t, float, void,
                                                                             LayoutD, 8, Bf16, LayoutD, 8, EndSchedule, Scaled>::CollectiveOp;
  using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
      cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, std::int8_t, cutlass::layout::RowMajor, 16, std::int8_t, cutlass::layout::ColumnMajor, 16,
      std::int32_t, Tile, Cluster, cutlass::gemm::collective::StageCountAutoCarveout<static_cast<int>(sizeof(typename Epilogue::SharedStorage))>,
      MainSchedule>::CollectiveOp;
  using Scheduler = std::conditional_t<StreamK, cutlass::gemm::StreamKScheduler, cutlass::gemm::PersistentScheduler>;
  using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue, Scheduler>;
  using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

  static typename Gemm::Arguments arguments(const Operands& o, std::int64_t set, int swizzle) {
    const std::int8_t *a = o.a.at(set * o.m * o.k), *b = o.b.at(set * o.n * o.k);
    const float *a_scale = o.a_scale.at(set * o.m), *b_scale = o.b_scale.at(set * o.n);
    const int rows = static_cast<int>(Swapped ? o.n : o.m), columns = static_cast<int>(Swapped ? o.m : o.n), k = static_cast<int>(o.k);
    if (Swapped) {
      std::swap(a, b);
      std::swap(a_scale, b_scale);
    }
    typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm,
                                       {rows, columns, k, 1},
                                       {a, cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {rows, k, 1}), b,
                                        cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {columns, k, 1})},
                                       {{},
                                        nullptr,
                                        cutlass::make_cute_packed_stride(typename Kernel::StrideC{}, {rows, columns, 1}),
                                        o.y.at(set * o.m * o.n),
                                        cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {rows, columns, 1})}};
    arguments.epilogue.thread = {{a_scale}, {{b_scale}, {}, {}}, {}};
    if constexpr (!StreamK) arguments.scheduler.max_swizzle_size = swizzle;
    return arguments;
  }

  static void add(std::vector<rival::Variant>& list, const Operands& o, const std::string& name, int swizzle) {
    const auto workspace = std::make_shared<rival::Array<std::uint8_t>>(std::int64_t(Gemm::get_workspace_size(arguments(o, 0, swizzle))) + 16);
    const auto gemm = std::make_shared<Gemm>();
    list.push_back({name + (swizzle > 1 ? " swizzle " + std::to_string(swizzle) : ""), [&o, workspace, gemm, swizzle](std::int64_t set, cudaStream_t stream) {
                      const auto call = arguments(o, set, swizzle);
                      if (Gemm::can_implement(call) != cutlass::Status::kSuccess) throw std::runtime_error("not implemented");
                      const auto status = gemm->initialize(call, workspace->data(), stream);
                      if (status != cutlass::Status::kSuccess || gemm->run(stream) != cutlass::Status::kSuccess) throw std::runtime_error("not run");
                    }});
  }
};

__global__ void compare(const std::int8_t* a, const std::int8_t* b, const float* a_scale, const float* b_scale, const Bf16* y, std::int64_t m, std::int64_t n,
                        std::int64_t k, int* wrong) {
  const std::uint64_t at = rival::mixed(threadIdx.x + 7 * static_cast<std::uint64_t>(m)) % static_cast<std::uint64_t>(m * n);
  const std::int64_t row = static_cast<std::int64_t>(at) / n, column = static_cast<std::int64_t>(at) % n;
  std::int32_t sum = 0;
  for (std::int64_t i = 0; i < k; ++i) sum += static_cast<std::int32_t>(a[row * k + i]) * b[column * k + i];
  const float expected = a_scale[row] * (b_scale[column] * static_cast<float>(sum)), found = static_cast<float>(y[at]);
  if (!(fabsf(expected - found) <= 0.005f * fabsf(expected))) atomicAdd(wrong, 1);
}

/// Throws unless 256 elements of the first set, chosen anywhere, are right.
void verify(const Operands& o, const rival::Variant& variant) {
  rival::Array<int> wrong(1);
  rival::check(cudaMemset(wrong.data(), 0, sizeof(int)), "cudaMemset");
  rival::check(cudaMemset(o.y.data(), 0xff, static_cast<std::size_t>(o.m * o.n) * 2), "cudaMemset");
  variant.launch(0, nullptr);
  compare<<<1, 256>>>(o.a.data(), o.b.data(), o.a_scale.data(), o.b_scale.data(), o.y.data(), o.m, o.n, o.k, wrong.data());
  int count = 0;
  rival::check(cudaMemcpy(&count, wrong.data(), sizeof(int), cudaMemcpyDeviceToHost), "verify");
  if (count) throw std::runtime_error(std::to_string(count) + " of 256 elements are wrong");
}

std::string answer(const rival::Row& row, double seconds) {
  if (row.word(0) != "product" || row.word(1) != "i8") throw std::runtime_error("expected product i8 M N K");
  const Operands o(row.number(2), row.number(3), row.number(4));
  std::vector<rival::Variant> list;
  if (o.m >= 64) {
    for (const int swizzle : {1, 4, 8}) {
      Product<Shape<_128, _256, _128>, Shape<_2, _1, _1>, true, false>::add(list, o, "128x256 cooperative", swizzle);
      Product<Shape<_256, _128, _128>, Shape<_2, _1, _1>, true, false>::add(list, o, "256x128 cooperative", swizzle);
    }
    Product<Shape<_128, _128, _128>, Shape<_2, _1, _1>, false, false>::add(list, o, "128x128 ping-pong", 1);
    Product<Shape<_64, _128, _128>, Shape<_2, _1, _1>, false, false>::add(list, o, "64x128 ping-pong", 1);
    Product<Shape<_64, _256, _128>, Shape<_1, _1, _1>, false, false>::add(list, o, "64x256 ping-pong", 1);
  }
  if (o.m <= 512) {
    Product<Shape<_64, _16, _256>, Shape<_1, _1, _1>, false, true>::add(list, o, "64x16 ping-pong swapped", 1);
    Product<Shape<_64, _64, _256>, Shape<_1, _1, _1>, false, true>::add(list, o, "64x64 ping-pong swapped", 1);
    Product<Shape<_128, _64, _128>, Shape<_1, _1, _1>, false, true>::add(list, o, "128x64 ping-pong swapped", 1);
    Product<Shape<_128, _16, _256>, Shape<_1, _1, _1>, true, true, true>::add(list, o, "128x16 stream-K swapped", 1);
    Product<Shape<_128, _64, _128>, Shape<_1, _1, _1>, true, true, true>::add(list, o, "128x64 stream-K swapped", 1);
    Product<Shape<_128, _128, _128>, Shape<_2, _1, _1>, true, true, true>::add(list, o, "128x128 stream-K swapped", 1);
  }
  std::vector<rival::Variant> right;
  std::string refusal = "no tile takes this shape";
  for (const rival::Variant& variant : list) try {
      verify(o, variant);
      right.push_back(variant);
    } catch (const std::exception& error) {
      refusal = variant.name + ": " + error.what();
      if (cudaGetLastError(); cudaDeviceSynchronize() != cudaSuccess) throw;
    }
  if (right.empty()) throw std::runtime_error(refusal);
  return rival::best_of("CUTLASS", right, o.sets, seconds);
}

}  // namespace peer

int main() {
  return rival::serve("CUTLASS " + std::to_string(CUTLASS_MAJOR) + "." + std::to_string(CUTLASS_MINOR) + "." + std::to_string(CUTLASS_PATCH), peer::answer);
}
