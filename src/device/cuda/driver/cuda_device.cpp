#include "device/cuda/driver/cuda_device.hpp"

#include <array>
#include <atomic>
#include <cstring>

namespace cermet::cuda {
namespace {

CUtensorMapDataType map_type(DType dtype) {
  switch (dtype) {
    case DType::i8:
    case DType::u8:
    case DType::f8_e4m3:
    case DType::f8_e5m2: return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    case DType::bf16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DType::f16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DType::f32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DType::i32: return CU_TENSOR_MAP_DATA_TYPE_INT32;
    default:
      fail(Status::unsupported, "bulk tensor copy: expected i8, u8, f8, bf16, f16, f32 or i32, found {}",
           name_of(dtype));
  }
}

CUtensorMapSwizzle map_swizzle(std::uint32_t bytes) {
  switch (bytes) {
    case 0: return CU_TENSOR_MAP_SWIZZLE_NONE;
    case 32: return CU_TENSOR_MAP_SWIZZLE_32B;
    case 64: return CU_TENSOR_MAP_SWIZZLE_64B;
    default: return CU_TENSOR_MAP_SWIZZLE_128B;
  }
}

TensorMap stored(const CUtensorMap& map) {
  TensorMap result;
  static_assert(sizeof(result) == sizeof(map));
  std::memcpy(&result, &map, sizeof(map));
  return result;
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index) : context_(std::make_shared<Context>(index)) {
    const Driver& d = driver();
    std::array<char, 256> text{};
    d.check(d.device_get_name(text.data(), static_cast<int>(text.size()), context_->device()), "device name");
    std::size_t memory = 0;
    d.check(d.device_total_mem(&memory, context_->device()), "device memory");
    target_ = {text.data(),
               context_->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
                   context_->attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
               context_->attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
               context_->attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
               context_->attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
               static_cast<std::int64_t>(memory)};
    if (target_.compute_capability < 75)
      fail(Status::unsupported, "device cuda:{} ({}): expected compute capability 7.5 or later, found {}.{}", index,
           target_.name, target_.compute_capability / 10, target_.compute_capability % 10);
    name_ = fmt::format("cuda:{} ({}, {} SMs, {:.0f} GiB)", index, target_.name, target_.multiprocessors,
                        static_cast<double>(memory) / (1 << 30));
  }

  DeviceKind kind() const override { return DeviceKind::cuda; }
  std::string name() const override { return name_; }
  bool computes() const override { return true; }
  const Target* target() const override { return &target_; }
  std::string driver_version() const override { return version_of_driver(); }
  void set_measured(const std::shared_ptr<const DeviceLimits>& limits) override { target_.measured = limits; }
  void set_compact_weights(bool compact) override { target_.compact_weights = compact; }
  std::unique_ptr<Stream> make_stream() override { return make_cuda_stream(context_); }

  DeviceBuffer allocate(std::int64_t bytes) override {
    if (bytes == 0) return {};
    require(bytes > 0, "memory: expected a non-negative size, found {} bytes", bytes);
    const CurrentContext current(context_->handle());
    CUdeviceptr pointer = 0;
    const CUresult result = driver().mem_alloc(&pointer, static_cast<std::size_t>(bytes));
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
      fail(Status::out_of_memory, "memory of {}: expected room for {} bytes, found {} bytes free", name_, bytes,
           free_bytes());
    driver().check(result, "memory");
    auto* data = reinterpret_cast<std::byte*>(pointer);
    held_->fetch_add(bytes, std::memory_order_relaxed);
    return {std::shared_ptr<std::byte>(data,
                                       [context = context_, held = held_, bytes](std::byte* p) {
                                         const CurrentContext own(context->handle());
                                         driver().mem_free(reinterpret_cast<CUdeviceptr>(p));
                                         held->fetch_sub(bytes, std::memory_order_relaxed);
                                       }),
            bytes};
  }

  DeviceBuffer allocate_host(std::int64_t bytes) override {
    if (bytes == 0) return {};
    const CurrentContext current(context_->handle());
    void* pointer = nullptr;
    const CUresult result =
        driver().mem_host_alloc(&pointer, static_cast<std::size_t>(bytes), CU_MEMHOSTALLOC_PORTABLE);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
      fail(Status::out_of_memory, "memory: expected room for {} pinned bytes, found none", bytes);
    driver().check(result, "pinned memory");
    return {std::shared_ptr<std::byte>(static_cast<std::byte*>(pointer),
                                       [context = context_](std::byte* p) {
                                         const CurrentContext own(context->handle());
                                         driver().mem_free_host(p);
                                       }),
            bytes};
  }

  LoadedFunction load(std::span<const std::byte> image, const char* function, int threads,
                      std::int64_t shared_bytes) override {
    const Driver& d = driver();
    const CurrentContext current(context_->handle());
    CUmodule module = nullptr;
    d.check(d.module_load_data(&module, image.data(), 0, nullptr, nullptr), "loading a kernel");
    LoadedFunction loaded;
    loaded.owner = std::shared_ptr<void>(module, [context = context_](void* m) {
      const CurrentContext own(context->handle());
      driver().module_unload(static_cast<CUmodule>(m));
    });
    CUfunction handle = nullptr;
    d.check(d.module_get_function(&handle, module, function), "finding a kernel");
    loaded.function.handle = handle;
    const auto shared = static_cast<int>(shared_bytes);
    if (shared > 48 << 10) {
      const auto most = static_cast<int>(target_.shared_bytes);  // a launch may take more than its blocks use
      d.check(d.func_set_attribute(handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most),
              "shared memory of a kernel");
      // Otherwise an idle SM's carve-out would fit this kernel alone, and the next one, which is to run concurrently,
      // would not fit.
      d.check(d.func_set_attribute(handle, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                   CU_SHAREDMEM_CARVEOUT_MAX_SHARED),
              "shared memory of a kernel");
    }
    int local = 0;
    d.check(d.func_get_attribute(&loaded.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, handle), "registers of a kernel");
    d.check(d.func_get_attribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, handle), "local memory of a kernel");
    loaded.local_bytes = local;
    d.check(d.occupancy(&loaded.blocks_per_multiprocessor, handle, threads, static_cast<std::size_t>(shared_bytes)),
            "occupancy of a kernel");
    return loaded;
  }

  std::vector<std::uint32_t> parameter_bytes(const DeviceFunction& function) override {
    const Driver& d = driver();
    const CurrentContext current(context_->handle());
    std::vector<std::uint32_t> list;
    std::size_t offset = 0, bytes = 0;
    for (std::size_t i = 0; d.func_get_param_info && d.func_get_param_info(static_cast<CUfunction>(function.handle), i,
                                                                           &offset, &bytes) == CUDA_SUCCESS;
         ++i)
      list.push_back(static_cast<std::uint32_t>(bytes));
    return list;
  }

  TensorMap tensor_map(const TensorMapShape& shape) override {
    const CurrentContext current(context_->handle());
    CUtensorMap map{};
    const auto element = static_cast<std::uint64_t>(size_of(shape.dtype));
    std::array<cuuint64_t, 4> dims{static_cast<cuuint64_t>(shape.columns), static_cast<cuuint64_t>(shape.rows)};
    std::array<cuuint64_t, 3> strides{static_cast<cuuint64_t>(shape.row_stride) * element};
    std::array<cuuint32_t, 4> box{shape.box_columns, shape.box_rows};
    const std::array<cuuint32_t, 4> steps{1, 1, 1, 1};
    for (std::size_t i = 0; i < static_cast<std::size_t>(shape.outer_axes); ++i) {
      dims[2 + i] = static_cast<cuuint64_t>(shape.outer[i].size);
      strides[1 + i] = static_cast<cuuint64_t>(shape.outer[i].stride) * element;
      box[2 + i] = shape.outer[i].box;
    }
    driver().check(
        driver().tensor_map_encode_tiled(&map, map_type(shape.dtype), static_cast<cuuint32_t>(2 + shape.outer_axes),
                                         shape.data, dims.data(), strides.data(), box.data(), steps.data(),
                                         CU_TENSOR_MAP_INTERLEAVE_NONE, map_swizzle(shape.swizzle_bytes),
                                         CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "bulk tensor copy");
    return stored(map);
  }

  const std::shared_ptr<Context>& context() const { return context_; }

  std::int64_t free_bytes() const override {
    const CurrentContext current(context_->handle());
    std::size_t free = 0, total = 0;
    driver().check(driver().mem_get_info(&free, &total), "free memory");
    return static_cast<std::int64_t>(free);
  }

  std::int64_t held_bytes() const override { return held_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<std::atomic<std::int64_t>> held_ =
      std::make_shared<std::atomic<std::int64_t>>(0);  ///< buffers may outlive the device
  Target target_;
  std::string name_;
};

}  // namespace

Context::Context(int index) {
  const Driver& d = driver();
  int count = 0;
  d.check(d.device_get_count(&count), "devices");
  require(index >= 0 && index < count, "device 'cuda:{}': expected an index below {}, the number of CUDA devices",
          index, count);
  d.check(d.device_get(&device_, index), "device");
  d.check(d.primary_ctx_retain(&context_, device_), "context");
}

Context::~Context() { driver().primary_ctx_release(device_); }

int Context::attribute(CUdevice_attribute which) const {
  int value = 0;
  driver().check(driver().device_get_attribute(&value, which, device_), "device attribute");
  return value;
}

std::shared_ptr<Context> context_of(const Device& device) {
  CERMET_ASSERT(device.kind() == DeviceKind::cuda);
  return static_cast<const CudaDevice&>(device).context();
}

std::unique_ptr<Stream> wrap_cuda_stream(Device& device, void* stream) {
  return wrap_cuda_stream(context_of(device), static_cast<CUstream>(stream));
}

std::string version_of_driver() {
  int version = 0;  // 1000 * major + 10 * minor
  driver().check(driver().driver_get_version(&version), "driver version");
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::unique_ptr<Device> make_cuda_device(int index) { return std::make_unique<CudaDevice>(index); }

TensorMap encode_windows(const Device& device, const WindowMapShape& shape) {
  const CurrentContext current(context_of(device)->handle());
  CUtensorMap map{};
  const auto element = byte_size(shape.dtype);
  const auto bytes = [&](std::int64_t elements) { return static_cast<cuuint64_t>(elements * element); };
  const auto size = [](std::int64_t count) { return static_cast<cuuint64_t>(count); };
  // From the innermost axis on: channels, columns, rows, samples.
  const std::array<cuuint64_t, 4> dims{size(shape.channels), size(shape.width), size(shape.height),
                                       size(shape.samples)};
  const std::array<cuuint64_t, 3> strides{bytes(shape.column_stride), bytes(shape.row_stride),
                                          bytes(shape.sample_stride)};
  const std::array<int, 2> lower{shape.first_w, shape.first_h}, upper{shape.last_w, shape.last_h};
  const std::array<cuuint32_t, 4> steps{1, static_cast<cuuint32_t>(shape.stride_w),
                                        static_cast<cuuint32_t>(shape.stride_h), 1};
  driver().check(driver().tensor_map_encode_im2col(
                     &map, map_type(shape.dtype), 4, shape.data, dims.data(), strides.data(), lower.data(),
                     upper.data(), shape.box_channels, shape.box_pixels, steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
                     CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                 "bulk copy of windows");
  return stored(map);
}

}  // namespace cermet::cuda
