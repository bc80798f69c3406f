#include "kernel/cuda/device/entry.cuh"
#include "kernel/cuda/device/rowwise/rms_norm.cuh"

using Task = cermet::rms_norm::Task<{.hidden = 4096}>;

extern "C" __device__ void cermet_task_1(const void* params, unsigned item, char* smem) {
  Task::run(*static_cast<const Task::Params*>(params), item, smem);
}
