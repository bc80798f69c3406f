#include "kernel/cuda/device/linked.cuh"

extern "C" __device__ void cermet_task_a(const volatile cermet::linked::Work& work, char* smem);
extern "C" __device__ void cermet_task_b(const volatile cermet::linked::Work& work, char* smem);

extern "C" __global__ void __launch_bounds__(384, 1) cermet_task(const __grid_constant__ cermet::linked::Params params, unsigned) {
  extern __shared__ __align__(1024) char smem[];
  volatile auto& work = *reinterpret_cast<volatile cermet::linked::Work*>(smem + 4096);
  cermet::linked::run_instance(params, work, [&](unsigned body) {
    switch (body) {
      case 0: return cermet_task_a(work, smem);
      case 1: return cermet_task_b(work, smem);
    }
  });
}
