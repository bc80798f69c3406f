#include "runtime/context.hpp"

#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/measure_limits.hpp"
#include "runtime/limits_store.hpp"

namespace cermet {
namespace {

constexpr int most_threads = 1024;

std::shared_ptr<ThreadPool> pool_for(const ContextOptions& options) {
  if (options.pool) return options.pool;
  require(options.threads >= 0 && options.threads <= most_threads, "threads: expected 0 to {}, found {}", most_threads,
          options.threads);
  return std::make_shared<ThreadPool>(options.threads);
}

}  // namespace

Context::Context(const ContextOptions& options) : shared_(std::make_shared<Shared>()) {
  shared_->spec = options.device;
  shared_->device = make_device(options.device);
  shared_->face = shared_->device.get();
  shared_->pool = pool_for(options);
  if (!target()) return;
  shared_->device->set_measured(stored_limits(*shared_->device));
  shared_->programs.emplace(*shared_->device);
  stream_ = shared_->device->make_stream();
}

Context::Context(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)), stream_(target() ? shared_->device->make_stream() : nullptr) {}

void Context::set_allocator(const DeviceAllocator& allocator) {
  shared_->face = shared_->device.get();
  if (!allocator.allocate) return;
  shared_->allocating.push_back(make_allocating_device(*shared_->device, allocator));
  shared_->face = shared_->allocating.back().get();
}

std::string Context::description() const {
  if (device().kind() != DeviceKind::cpu) return device().name();
  return fmt::format("cpu ({} threads, {})", pool().size(), cpu::name_of(cpu::active_isa()));
}

DeviceQueue Context::queue() const {
  if (!stream_) return {};
  return {&device(), stream_.get(), &*shared_->programs};
}

const DeviceLimits& Context::measure_limits(double seconds, void (*between)()) {
  if (!computes()) fail(Status::unsupported, "device {}: expected one that computes", device().name());
  shared_->limits = device_limits(measure_machine(seconds, between));
  return *shared_->limits;
}

MeasuredLimits Context::measure_machine(double seconds, void (*between)()) {
  if (target()) return measure_gpu_limits(seconds, between);
  return cpu::measure_limits(pool(), seconds, between);
}

cuda::Limits Context::measure_gpu_limits(double seconds, void (*between)()) {
  if (!target() || !computes()) fail(Status::unsupported, "device {}: expected a GPU that computes", device().name());
  const std::vector<cuda::LoadedProgram> programs = shared_->programs->get(cuda::limit_programs(*target()));
  return cuda::measure_limits(device(), *stream_, programs, seconds, between);
}

}  // namespace cermet
