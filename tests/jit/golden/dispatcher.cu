struct Params {
  unsigned first[3];
  alignas(64) char params_0[40];
  alignas(64) char params_1[8];
};

extern "C" __device__ void cermet_task_0(const void* params, unsigned item, char* smem);
extern "C" __device__ void cermet_task_1(const void* params, unsigned item, char* smem);

extern "C" __global__ void __launch_bounds__(128, 2) cermet_task(const __grid_constant__ Params p, unsigned items) {
  extern __shared__ __align__(1024) char smem[];
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  for (unsigned item = blockIdx.x; item < items; item += gridDim.x) {
    if (item != blockIdx.x) __syncthreads();  // another task may have used the shared memory
    if (item < p.first[1]) cermet_task_0(p.params_0, item - p.first[0], smem);
    else cermet_task_1(p.params_1, item - p.first[1], smem);
  }
}
