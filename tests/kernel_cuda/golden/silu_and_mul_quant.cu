#include "kernel/cuda/device/entry.cuh"
#include "kernel/cuda/device/rowwise/region.cuh"

#include "kernel/cuda/device/pointwise/functions.cuh"
#include "kernel/cuda/device/pointwise/activations.cuh"

namespace cermet::row_region {
namespace {

// quantizes s1; x0: $0 bf16 element; x1: $0 bf16 element from 256 by 1; s0 = silu(x0); s1 = mul(s0, x1)
template <RowLayout L>
struct Source {
  static constexpr int width = L.width;
  struct Raw {
    Vector<Element<cermet::DType::bf16>, width> x0;
    Vector<Element<cermet::DType::bf16>, width> x1;
  };
  const Element<cermet::DType::bf16>* at0;

  CERMET_DEVICE Raw fetch(int64_t column) const { return {load_vector<width>(at0 + column), load_vector<width>(at0 + 256 + column)}; }
  CERMET_DEVICE void values(const Raw& raw, [[maybe_unused]] int64_t column, float (&v)[width]) const {
    float gates[width];
    float c0[width];
    to_floats(raw.x0, c0);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float x0 = c0[k];
      gates[k] = x0;
    }
    gated::silu(gates);
    {
    float c1[width];
    to_floats(raw.x1, c1);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float s0 = gates[k];
      const float x1 = c1[k];
      const float s1 = __fmul_rn(s0, x1);
      v[k] = s1;
    }
    }
  }
};

struct Body {
  template <RowLayout L, class Team, class Parameters>
  static CERMET_DEVICE void run(const Parameters& p, uint32_t item, char* smem) {
    using Partition = RowPartition<L, Team>;
    RowReducer<Partition> reduce(smem);
    // Phase 1: which row, which of its elements
    const RowCoord<Partition> coord(item, p.dims, p.rows);
    const Partition partition(p.length);
    // Phase 2: load
    const Element<cermet::DType::bf16>* at0 = coord.template of<const Element<cermet::DType::bf16>>(p.operands[0]);
    const Source<L> source{at0};
    RawRow raw(partition, source, coord.active);
    auto row = make_row(partition, source, raw);
    // Phase 4: store
    quantize_row<Quantization{.format = {.dtype = cermet::DType::i8, .wide = false, .asymmetric = false, .group = 0, .power_of_two = false, .bounded = false}, .exact = false}>(row, p.out, coord, reduce);
    reduce.finish();
  }
};

}  // namespace
}  // namespace cermet::row_region

using Task = cermet::row_region::Task<cermet::row_region::Body, cermet::RowLayout{.columns = 256, .lanes = 32, .threads = 128, .width = 8}>;

extern "C" __global__ void __launch_bounds__(128, 7) cermet_task(const __grid_constant__ Task::Params params, unsigned items) {
  extern __shared__ __align__(1024) char smem[];
  cermet::run_items<Task, cermet::BlockTeam<128>>(params, items, smem);
}
