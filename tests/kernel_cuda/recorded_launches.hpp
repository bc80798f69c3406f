// What kernels launch: a stream that records every launch and forwards it, and launches on the null device, where
// nothing is compiled.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/checked.hpp"
#include "device/device.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"

namespace cermet {

/// A launch of a program: "gemm/hopper".
struct RecordedLaunch {
  std::string program;
  bool fallback = false;
  std::int64_t items = 0, blocks = 0;
  std::size_t index = 0;  ///< of the program among the kernel's
  /// How many items the busiest thread block takes.
  std::int64_t rounds() const { return div_up(items, blocks); }
};

/// Records the launches of `programs`, which `loaded` distinguishes by their functions.
class RecordingStream final : public Stream {
 public:
  RecordingStream(Stream& inner, std::vector<cuda::Program> programs, std::vector<cuda::LoadedProgram> loaded)
      : inner_(inner), programs_(std::move(programs)), loaded_(std::move(loaded)) {}

  std::vector<RecordedLaunch> launches;
  std::function<void(const void* params)> on_params;  ///< sees the parameters of each

  void launch(const LaunchShape& shape, DeviceFunction function, void** parameters) override {
    const auto found = std::ranges::find_if(
        loaded_, [&](const cuda::LoadedProgram& p) { return p.loaded.function.handle == function.handle; });
    CERMET_ASSERT(found != loaded_.end());
    const auto index = static_cast<std::size_t>(found - loaded_.begin());
    const cuda::Program& program = programs_[index];
    launches.push_back({std::string(short_name(program)), program.fallback,
                        *static_cast<const std::uint32_t*>(parameters[1]), shape.blocks, index});
    if (on_params) on_params(parameters[0]);
    inner_.launch(shape, function, parameters);
  }
  void multiply(const MatrixProduct& product) override {
    launches.push_back({"cublaslt", false, 1, 1, 0});
    inner_.multiply(product);
  }

  void upload(void* device, const void* host, std::int64_t bytes) override { inner_.upload(device, host, bytes); }
  void download(void* host, const void* device, std::int64_t bytes) override { inner_.download(host, device, bytes); }
  void copy(void* to, const void* from, std::int64_t bytes) override { inner_.copy(to, from, bytes); }
  void fill(void* device, unsigned char value, std::int64_t bytes) override { inner_.fill(device, value, bytes); }
  void synchronize() override { inner_.synchronize(); }
  void begin_capture() override { inner_.begin_capture(); }
  std::unique_ptr<CapturedGraph> end_capture() override { return inner_.end_capture(); }
  void abandon_capture() noexcept override { inner_.abandon_capture(); }
  void replay(const CapturedGraph& graph) override { inner_.replay(graph); }
  std::unique_ptr<DeviceEvent> make_event() override { return inner_.make_event(); }
  void record(DeviceEvent& event) override { inner_.record(event); }
  void wait(const DeviceEvent& event) override { inner_.wait(event); }
  void synchronize_event(const DeviceEvent& event) override { inner_.synchronize_event(event); }
  double seconds_between(const DeviceEvent& start, const DeviceEvent& end) override {
    return inner_.seconds_between(start, end);
  }

 private:
  Stream& inner_;
  std::vector<cuda::Program> programs_;
  std::vector<cuda::LoadedProgram> loaded_;
};

/// What changes when any program does: FNV-1a of all of their fields.
inline std::uint64_t digest_of(std::span<const cuda::Program> programs) {
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const cuda::Program& p : programs)
    for (const char c : fmt::format("{}{} {} {} {} {} {} {} {} {};", p.header, p.prelude, p.task, p.threads,
                                    p.shared_bytes, p.min_blocks, p.cluster, p.may_spill, p.alternates, p.fallback))
      digest = (digest ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return digest;
}

/// "gemm/hopper 96 items in 96 blocks; programs 0123456789abcdef".
inline std::string launches_text(std::span<const RecordedLaunch> launches, std::span<const cuda::Program> programs) {
  std::string text;
  for (const RecordedLaunch& l : launches)
    text += fmt::format("{} {} items in {} blocks{}; ", l.program, l.items, l.blocks, l.fallback ? " (fallback)" : "");
  return text + fmt::format("programs {:016x}", digest_of(programs));
}

/// A kernel bound to a region on a null device like an H200: what its launches take, with no GPU and no compiler.
class NullLaunches {
 public:
  NullLaunches(Region region, const Kernel& kernel, Config config = {})
      : device_(make_null_device(90)),
        inner_(device_->make_stream()),
        region_(std::move(region)),
        kernel_(&kernel),
        config_(std::move(config)) {
    region_.set_target(device_->target());
    std::vector<cuda::Program> programs = kernel.programs(region_, config_);
    for (const cuda::Program& program : programs) {
      handles_.push_back(std::make_unique<char>());
      LoadedFunction function;
      function.function.handle = handles_.back().get();
      function.blocks_per_multiprocessor = program.min_blocks;
      loaded_.push_back({std::move(function), program.threads, program.cluster, program.shared_bytes,
                         program.alternates, program.fallback});
    }
    stream.emplace(*inner_, std::move(programs), loaded_);
    workspace_bytes_ = kernel.workspace(region_, config_, 1);
    workspace_ = device_->allocate(workspace_bytes_);
  }

  std::optional<RecordingStream> stream;

  const Problem& problem() const { return region_.problem(); }
  Decline decline() const { return kernel_->declines(region_); }
  /// Memory for a tensor whose rows are `padding` elements longer and which begins `offset` elements after an aligned
  /// address.
  TensorView view(const TensorType& type, std::int64_t padding = 0, std::int64_t offset = 0) {
    const Shape shape = cermet::bind(type.dims, region_.maximum());
    Shape padded = shape;
    if (padded.rank() > 0) padded[padded.rank() - 1] += padding;
    const auto bytes = byte_size(type.dtype);
    memory_.push_back(device_->allocate(dense_bytes(type.dtype, padded) + offset * bytes));
    return TensorView(memory_.back().data() + offset * bytes, type.dtype, shape, dense_strides(padded));
  }
  /// Dense operands and results with aligned addresses.
  std::vector<TensorView> inputs() {
    std::vector<TensorView> list;
    for (std::size_t i = 0; i < region_.operands.size(); ++i)
      list.push_back(region_.has(i) ? view(region_.operand_type(i)) : TensorView());
    return list;
  }
  std::vector<TensorView> outputs(std::int64_t padding = 0) {
    std::vector<TensorView> list;
    for (std::size_t r = 0; r < region_.results.size(); ++r) list.push_back(view(region_.result_type(r), padding));
    return list;
  }
  /// Launches of one call; its fallbacks are counted in `fallbacks`.
  std::vector<RecordedLaunch> launch(std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
    stream->launches.clear();
    plan_.clear();
    plan_.want_ranges(true);
    add_to(plan_, inputs, outputs);
    plan_.enqueue(*stream);
    fallbacks = plan_.fallbacks();
    return stream->launches;
  }
  /// The same after what is in a plan.
  void add_to(Plan& plan, std::span<const TensorView> inputs, std::span<const TensorView> outputs) const {
    const cuda::TaskQueue queue(*device_, plan, loaded_);
    kernel_->bind(region_, config_)({inputs, outputs, workspace_.data(), nullptr, &queue});
  }
  std::int64_t fallbacks = 0;
  const Plan& plan() const { return plan_; }
  ByteRange workspace() const { return {workspace_.data(), workspace_bytes_}; }

 private:
  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> inner_;
  Region region_;
  const Kernel* kernel_;
  Config config_;
  std::vector<std::unique_ptr<char>> handles_;
  std::vector<cuda::LoadedProgram> loaded_;
  std::vector<DeviceBuffer> memory_;
  DeviceBuffer workspace_;
  std::int64_t workspace_bytes_ = 0;
  Plan plan_;
};

}  // namespace cermet
