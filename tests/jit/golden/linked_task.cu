#include "kernel/cuda/device/linked.cuh"
#include "kernel/cuda/device/rowwise/rms_norm.cuh"

using Task = cermet::rms_norm::Task<{.hidden = 4096}>;

extern "C" __device__ void cermet_task_e744f147ed832599(const volatile cermet::linked::Work& work, char* smem) {
  cermet::linked::run_body<Task, cermet::PartTeam<128>>(work, smem);
}
