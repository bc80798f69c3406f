#include "device/cuda/driver/peer_memory.hpp"

#include <cstring>

#include "device/cuda/driver/cuda_device.hpp"

namespace cermet::cuda {
namespace {

static_assert(sizeof(SharedMemoryHandle) == sizeof(CUipcMemHandle));

}  // namespace

GpuIdentity identify(const Device& device) {
  const std::shared_ptr<Context> context = context_of(device);
  CUuuid uuid{};
  driver().check(driver().device_get_uuid(&uuid, context->device()), "identity of a device");
  GpuIdentity identity;
  static_assert(sizeof(uuid.bytes) == sizeof(identity.uuid));
  std::memcpy(identity.uuid.data(), uuid.bytes, sizeof(uuid.bytes));
  int count = 0;
  driver().check(driver().device_get_count(&count), "devices");
  for (int i = 0; i < count; ++i) {
    CUdevice each = 0;
    driver().check(driver().device_get(&each, i), "device");
    if (each == context->device()) identity.index = i;
  }
  return identity;
}

SharedMemoryHandle share_memory(Device& device, const DeviceBuffer& memory) {
  const CurrentContext current(context_of(device)->handle());
  CUipcMemHandle handle{};
  driver().check(driver().ipc_get_mem_handle(&handle, reinterpret_cast<CUdeviceptr>(memory.data())),
                 "memory for other processes");
  SharedMemoryHandle shared{};
  std::memcpy(shared.data(), &handle, sizeof(handle));
  return shared;
}

DeviceBuffer open_memory(Device& device, const SharedMemoryHandle& handle, std::int64_t bytes) {
  const std::shared_ptr<Context> context = context_of(device);
  const CurrentContext current(context->handle());
  CUipcMemHandle given{};
  std::memcpy(&given, handle.data(), sizeof(given));
  CUdeviceptr pointer = 0;
  driver().check(driver().ipc_open_mem_handle(&pointer, given, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
                 "memory of another process");
  return {std::shared_ptr<std::byte>(reinterpret_cast<std::byte*>(pointer),
                                     [context](std::byte* p) {
                                       const CurrentContext own(context->handle());
                                       driver().ipc_close_mem_handle(reinterpret_cast<CUdeviceptr>(p));
                                     }),
          bytes};
}

void reach_device(Device& device, int index) {
  const std::shared_ptr<Context> context = context_of(device);
  const Context other(index);
  if (other.device() == context->device()) return;
  int can = 0;
  driver().check(driver().device_can_access_peer(&can, context->device(), other.device()), "access to another GPU");
  if (can == 0)
    fail(Status::unsupported, "{}: expected access to the memory of cuda:{}, found no link that gives it",
         device.name(), index);
  const CurrentContext current(context->handle());
  const CUresult result = driver().ctx_enable_peer_access(other.handle(), 0);
  if (result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) driver().check(result, "access to another GPU");
}

}  // namespace cermet::cuda
