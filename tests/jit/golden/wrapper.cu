#include "kernel/cuda/device/entry.cuh"
#include "kernel/cuda/device/rowwise/rms_norm.cuh"

using Task = cermet::rms_norm::Task<{.hidden = 4096}>;

extern "C" __global__ void __launch_bounds__(128, 4) cermet_task(const __grid_constant__ Task::Params params, unsigned items) {
  extern __shared__ __align__(1024) char smem[];
  cermet::run_items<Task, cermet::BlockTeam<128>>(params, items, smem);
}
