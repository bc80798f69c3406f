#include "kernel/cuda/device/entry.cuh"
#include "kernel/cuda/device/rowwise/rms_norm.cuh"

using Task = cermet::rms_norm::Task<{.hidden = 4096}>;

extern "C" __device__ void cermet_task_1(const void* params, unsigned item, char* smem) {
  using Call = cermet::TaskCall<Task, cermet::BlockTeam<128>>;
  const Task::Params& p = *static_cast<const Task::Params*>(params);
  constexpr cermet::BlockTeam<128> team;
  Call::Ring ring(p, team, smem);
  Call::fetch(p, item, team, smem, ring);
  Call::compute(p, item, team, smem, ring);
  ring.close(p, team, smem);
}
