#include "tests/emulator/emulated_device.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "base/buffer.hpp"
#include "tests/emulator/tensor_map.hpp"

namespace cermet::emulator {
namespace {

/// Memory of the device, which buffers keep.
struct Heap {
  Memory memory;
  std::int64_t held = 0;
};

class EmulatedStream final : public Stream {
 public:
  EmulatedStream(std::shared_ptr<Heap> heap, const Mode& mode) : heap_(std::move(heap)), mode_(mode) {}

  void upload(void* device, const void* host, std::int64_t bytes) override { copy(device, host, bytes); }
  void download(void* host, const void* device, std::int64_t bytes) override { copy(host, device, bytes); }
  void copy(void* to, const void* from, std::int64_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
  void fill(void* device, unsigned char value, std::int64_t bytes) override {
    if (bytes > 0) std::memset(device, value, static_cast<std::size_t>(bytes));
  }
  void synchronize() override {}

  void launch(const LaunchShape& shape, DeviceFunction function, void** parameters) override {
    const auto& program = *static_cast<const Program*>(function.handle);
    std::vector<std::byte> bytes(program.parameter_bytes);
    for (std::size_t i = 0; i < program.parameter_offsets.size(); ++i)
      std::memcpy(bytes.data() + program.parameter_offsets[i], parameters[i], program.parameter_sizes[i]);
    run_launch(program,
               {shape.blocks, shape.threads, shape.shared_bytes, shape.cluster, shape.blocks_y, shape.blocks_z,
                shape.threads_y, shape.threads_z},
               bytes, heap_->memory, mode_);
  }
  void multiply(const MatrixProduct&) override {
    fail(Status::unsupported, "emulated device: expected kernels of Cermet, found a product of the vendor's library");
  }
  void begin_capture() override { fail(Status::unsupported, "emulated device: expected launches, found a capture"); }
  std::unique_ptr<CapturedGraph> end_capture() override { return nullptr; }
  void abandon_capture() noexcept override {}
  void replay(const CapturedGraph&) override {}
  std::unique_ptr<DeviceEvent> make_event() override { return std::make_unique<DeviceEvent>(); }
  void record(DeviceEvent&) override {}
  void wait(const DeviceEvent&) override {}
  void synchronize_event(const DeviceEvent&) override {}
  double seconds_between(const DeviceEvent&, const DeviceEvent&) override { return 0; }

 private:
  std::shared_ptr<Heap> heap_;
  Mode mode_;
};

class EmulatedDevice final : public Device {
 public:
  EmulatedDevice(const Mode& mode, int compute_capability)
      : mode_(mode), target_(*make_null_device(compute_capability)->target()) {
    target_.name = fmt::format("emulated:sm_{}", compute_capability);
  }
  DeviceKind kind() const override { return DeviceKind::null; }
  std::string name() const override { return target_.name; }
  const Target* target() const override { return &target_; }
  bool computes() const override { return true; }
  void set_compact_weights(bool compact) override { target_.compact_weights = compact; }
  std::unique_ptr<Stream> make_stream() override { return std::make_unique<EmulatedStream>(heap_, mode_); }
  TensorMap tensor_map(const TensorMapShape& shape) override { return encode_tensor_map(shape); }
  std::int64_t free_bytes() const override { return target_.memory_bytes; }
  std::int64_t held_bytes() const override { return heap_->held; }

  /// Of exactly these bytes, whose first values are not numbers.
  DeviceBuffer allocate(std::int64_t bytes) override {
    if (bytes == 0) return {};
    constexpr std::size_t alignment = 256;
    const auto size = static_cast<std::size_t>(bytes);
    auto* const data =
        static_cast<std::byte*>(std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment));
    if (!data) fail(Status::out_of_memory, "memory: expected room for {} bytes, found none", bytes);
    std::memset(data, 0xff, size);
    heap_->memory.add(data, size);
    heap_->held += bytes;
    return {std::shared_ptr<std::byte>(data,
                                       [heap = heap_, bytes](std::byte* p) {
                                         heap->memory.remove(p);
                                         heap->held -= bytes;
                                         std::free(p);
                                       }),
            bytes};
  }

  LoadedFunction load(std::span<const std::byte> image, const char* function, int threads,
                      std::int64_t shared_bytes) override {
    const auto* const text = reinterpret_cast<const char*>(image.data());
    std::shared_ptr<Program> program = decode(std::string(text, image.size()), function);
    LoadedFunction loaded;
    loaded.function.handle = program.get();
    constexpr std::int64_t shared_of_multiprocessor = 228 << 10, reserved = 1024, most_threads = 2048;
    const std::int64_t fit = std::min(shared_of_multiprocessor / (shared_bytes + reserved), most_threads / threads);
    loaded.blocks_per_multiprocessor = static_cast<int>(std::min<std::int64_t>(program->min_blocks, fit));
    loaded.owner = std::move(program);
    return loaded;
  }

 private:
  Mode mode_;
  Target target_;
  std::shared_ptr<Heap> heap_ = std::make_shared<Heap>();
};

}  // namespace

std::unique_ptr<Device> make_emulated_device(const Mode& mode, int compute_capability) {
  return std::make_unique<EmulatedDevice>(mode, compute_capability);
}

std::optional<Mode> mode_from_environment() {
  const char* const value = std::getenv("CERMET_EMULATE");
  if (!value || !*value) return {};
  Mode mode;
  std::string_view rest = value;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(rest.size(), end + 1));
    if (word == "1") continue;
    if (word == "late") {
      mode.late = true;
    } else if (word.starts_with("seed=")) {
      std::uint64_t seed = 0;
      std::from_chars(word.data() + 5, word.data() + word.size(), seed);
      mode.seed = seed;
    } else {
      fail(Status::invalid_argument, "CERMET_EMULATE: expected 1, late or seed=N, found '{}'", word);
    }
  }
  return mode;
}

}  // namespace cermet::emulator
