#include "kernel/cuda/device/entry.cuh"
#include "kernel/cuda/device/rowwise/region.cuh"

#include "kernel/cuda/device/pointwise/functions.cuh"

namespace cermet::row_region {
namespace {

// in0 = inverse_root(x0, 1e-06); quantizes s1; in0: f32; x0: $0 bf16 element; x1: $1 bf16 column; s0 = mul(x0, in0); s1 = mul(s0, x1)
struct Body {
  template <RowLayout L, class Team, class Parameters>
  static CERMET_DEVICE void run(const Parameters& p, uint32_t item, char* smem) {
    using Partition = RowPartition<L, Team>;
    constexpr int width = L.width;
    RowReducer<Partition> reduce(smem);
    // Phase 1: which row, which of its elements
    const RowCoord<Partition> coord(item, p.dims, p.rows);
    const Partition partition(p.length);
    // Phase 2: load
    const Element<cermet::DType::bf16>* at0 = coord.template of<const Element<cermet::DType::bf16>>(p.operands[0]);
    const PlainSource<Element<cermet::DType::bf16>, width> source{at0};
    RawRow raw(partition, source, coord.active);
    const ColumnParameter<Element<cermet::DType::bf16>, Partition> column1(partition, p.operands[1].data, coord.active);
    auto row = make_row(partition, source, raw);
    // Phase 3: reduce
    RowPartials<Sum, Partition, 2> partial0;
    row.each([&]([[maybe_unused]] int i, [[maybe_unused]] int64_t column, const float (&v)[width]) {
#pragma unroll
      for (int k = 0; k < width; ++k) {
        [[maybe_unused]] const float x0 = v[k];
        partial0.at(i, k) = fmaf(x0, x0, partial0.at(i, k));
      }
    });
    const float in0 = norm::inverse_root(reduce.template operator()<Sum>(partial0), partition.length, 0x1.0c6f7ap-20f);
    // Phase 4: store
    row.forget_values();
    auto&& quantized = row.then(
        [&]([[maybe_unused]] int i, [[maybe_unused]] int64_t column, float (&v)[width]) {
      float c1[width];
      column1.get(i, column, c1);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const float x1 = c1[k];
        [[maybe_unused]] const float x0 = v[k];
        const float s0 = __fmul_rn(x0, in0);
        const float s1 = __fmul_rn(s0, x1);
        v[k] = s1;
      }
    });
    quantize_row<Quantization{.format = {.dtype = cermet::DType::i8, .wide = false, .asymmetric = true, .group = 0, .power_of_two = false, .bounded = false}, .exact = false}>(quantized, p.out, coord, reduce);
    reduce.finish();
  }
};

}  // namespace
}  // namespace cermet::row_region

using Task = cermet::row_region::Task<cermet::row_region::Body, cermet::RowLayout{.columns = 512, .lanes = 32, .threads = 128, .width = 8, .keep_float32 = true}>;

extern "C" __global__ void __launch_bounds__(128, 3) cermet_task(const __grid_constant__ Task::Params params, unsigned items) {
  extern __shared__ __align__(1024) char smem[];
  cermet::run_items<Task, cermet::BlockTeam<128>>(params, items, smem);
}
