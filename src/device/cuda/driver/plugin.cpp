// What the plugin exports.
#include "device/cuda/plugin.hpp"

#include "device/cuda/driver/blas.hpp"
#include "device/cuda/driver/cuda_device.hpp"
#include "device/cuda/driver/nccl.hpp"
#include "device/cuda/driver/peer_memory.hpp"
#include "device/cuda/driver/toolchain.hpp"

namespace cermet::cuda {
namespace {

int count_devices() {
  int count = 0;
  driver().check(driver().device_get_count(&count), "devices");
  return count;
}

}  // namespace
}  // namespace cermet::cuda

extern "C" const cermet::cuda::PluginInterface* cermet_cuda_plugin() {
  static const cermet::cuda::PluginInterface interface {
    cermet::cuda::build_id(), cermet::cuda::make_cuda_device, cermet::cuda::wrap_cuda_stream,
        cermet::cuda::make_toolchain, cermet::cuda::count_devices, cermet::cuda::cublaslt_problem,
        cermet::cuda::encode_windows, cermet::cuda::version_of_driver, cermet::cuda::nccl_problem,
        cermet::cuda::make_group_identity, cermet::cuda::join_device_group, cermet::cuda::identify,
        cermet::cuda::share_memory, cermet::cuda::open_memory, cermet::cuda::reach_device
  };
  return &interface;
}
