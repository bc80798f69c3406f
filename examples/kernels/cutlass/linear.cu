// linear in CuTe, on the tensor cores through mma.sync: a block for each tile of 128 x 128. make.sh compiles it with the headers in CUTLASS_DIR.
#include <cutlass/bfloat16.h>

#include <cute/tensor.hpp>

using cute::_;
using cute::_1;
using cute::Int;
using element = cutlass::bfloat16_t;

// x: [m, k], w: [n, k], y: [m, n], dense; m and n are multiples of 128, k of 32
extern "C" __global__ void __launch_bounds__(128) linear(const element* x, const element* w, element* y, int m, int n, int k) {
  const auto tile = cute::make_shape(Int<128>{}, Int<128>{}, Int<32>{});
  const auto at = cute::make_coord(blockIdx.x, blockIdx.y, _);
  const auto all_x = cute::make_tensor(cute::make_gmem_ptr(x), cute::make_shape(m, k), cute::make_stride(k, _1{}));
  const auto all_w = cute::make_tensor(cute::make_gmem_ptr(w), cute::make_shape(n, k), cute::make_stride(k, _1{}));
  const auto all_y = cute::make_tensor(cute::make_gmem_ptr(y), cute::make_shape(m, n), cute::make_stride(n, _1{}));
  const auto tiles_x = cute::local_tile(all_x, tile, at, cute::Step<_1, cute::X, _1>{});  // (128, 32, k / 32)
  const auto tiles_w = cute::local_tile(all_w, tile, at, cute::Step<cute::X, _1, _1>{});  // (128, 32, k / 32)
  auto tile_y = cute::local_tile(all_y, tile, at, cute::Step<_1, _1, cute::X>{});         // (128, 128)

  // Rows of 32 elements, 40 apart, so that the rows of a fragment are in different banks.
  __shared__ alignas(16) element memory_x[128 * 40], memory_w[128 * 40];
  const auto layout = cute::make_layout(cute::make_shape(Int<128>{}, Int<32>{}), cute::make_stride(Int<40>{}, _1{}));
  auto shared_x = cute::make_tensor(cute::make_smem_ptr(memory_x), layout);
  auto shared_w = cute::make_tensor(cute::make_smem_ptr(memory_w), layout);

  const auto copy = cute::make_tiled_copy(cute::Copy_Atom<cute::UniversalCopy<cute::uint128_t>, element>{},
                                          cute::Layout<cute::Shape<cute::_32, cute::_4>, cute::Stride<cute::_4, _1>>{},
                                          cute::Layout<cute::Shape<_1, cute::_8>>{});
  const auto own_copy = copy.get_slice(threadIdx.x);
  const auto from_x = own_copy.partition_S(tiles_x);
  const auto from_w = own_copy.partition_S(tiles_w);
  auto to_x = own_copy.partition_D(shared_x);
  auto to_w = own_copy.partition_D(shared_w);

  const auto mma = cute::make_tiled_mma(cute::SM80_16x8x16_F32BF16BF16F32_TN{}, cute::Layout<cute::Shape<cute::_2, cute::_2>>{});
  const auto own_mma = mma.get_slice(threadIdx.x);
  const auto read_x = own_mma.partition_A(shared_x);
  const auto read_w = own_mma.partition_B(shared_w);
  auto a = own_mma.make_fragment_A(read_x);
  auto b = own_mma.make_fragment_B(read_w);
  auto write_y = own_mma.partition_C(tile_y);
  auto sums = own_mma.make_fragment_C(write_y);
  cute::clear(sums);

  for (int t = 0; t < k / 32; ++t) {
    cute::copy(copy, from_x(_, _, _, t), to_x);
    cute::copy(copy, from_w(_, _, _, t), to_w);
    __syncthreads();
    cute::copy(read_x, a);
    cute::copy(read_w, b);
    cute::gemm(mma, a, b, sums);
    __syncthreads();
  }
  for (int i = 0; i < cute::size(sums); ++i) write_y(i) = element(sums(i));
}
