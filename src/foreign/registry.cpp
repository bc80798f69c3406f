#include "foreign/registry.hpp"

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>

#include "base/log.hpp"
#include "foreign/check_record.hpp"
#include "foreign/kernel.hpp"
#include "foreign/own_names.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"

namespace cermet::foreign {
namespace {

/// What the folders held at one time.
struct Snapshot {
  std::deque<Kernel> kernels;
  std::vector<const Kernel*> all;
  std::vector<std::vector<const Kernel*>> on_cpu, on_gpu;  ///< by operator, with our own first; empty: our own alone
};

Decline decline_by(const std::vector<CheckRecord>& checks, const std::string& name, const Target* target) {
  const std::string device = device_key(target);
  for (const CheckRecord& record : checks) {
    if (record.device != device) continue;
    if (record.passed()) return std::nullopt;
    return fmt::format("failed its check on {}: {}", device, record.failure);
  }
  return fmt::format("is not checked on {}; `cermet kernel check {}` does that", device, name);
}

void add(Snapshot& snapshot, const StoredKernel& stored) {
  const Manifest& manifest = *stored.manifest;
  KernelOptions options;
  options.gate = [checks = stored_checks(stored.digest), name = stored.name](const Target* target) {
    return decline_by(checks, name, target);
  };
  const Kernel& kernel = snapshot.kernels.emplace_back(
      make_kernel(manifest, std::make_shared<Code>(stored.folder, stored.digests), std::move(options)));
  snapshot.all.push_back(&kernel);
  std::vector<std::vector<const Kernel*>>& lists = is_gpu(manifest.kind) ? snapshot.on_gpu : snapshot.on_cpu;
  lists.resize(all_operators().size());
  std::vector<const Kernel*>& list = lists[static_cast<std::size_t>(kernel.op)];
  if (list.empty()) {
    const auto own = is_gpu(manifest.kind) ? cuda::kernels_of(kernel.op) : cpu::kernels_of(kernel.op);
    list.assign(own.begin(), own.end());
  }
  list.push_back(&kernel);
}

std::unique_ptr<const Snapshot> read_folders() {
  auto snapshot = std::make_unique<Snapshot>();
  for (const StoredKernel& stored : stored_kernels()) {
    if (!stored.manifest) log().warn("the kernel in {} is not used: {}", stored.folder.string(), stored.problem);
    else if (is_own_kernel(stored.name))
      log().warn("the kernel in {} is not used: {} is one of Cermet's own", stored.folder.string(), stored.name);
    else add(*snapshot, stored);
  }
  return snapshot;
}

/// Snapshots are kept, because what was chosen points into them.
const Snapshot& snapshot(bool again = false) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<const Snapshot>> kept;
  static std::atomic<const Snapshot*> present{nullptr};
  if (const Snapshot* found = present.load(std::memory_order_acquire); found && !again) return *found;
  const std::lock_guard lock(mutex);
  if (const Snapshot* found = present.load(std::memory_order_acquire); found && !again) return *found;
  kept.push_back(read_folders());
  present.store(kept.back().get(), std::memory_order_release);
  return *kept.back();
}

}  // namespace

std::span<const Kernel* const> candidates(OpKind anchor, bool on_gpu) {
  const Snapshot& now = snapshot();
  const auto& lists = on_gpu ? now.on_gpu : now.on_cpu;
  const auto op = static_cast<std::size_t>(anchor);
  if (op < lists.size() && !lists[op].empty()) return lists[op];
  return on_gpu ? cuda::kernels_of(anchor) : cpu::kernels_of(anchor);
}

std::span<const Kernel* const> foreign_kernels() { return snapshot().all; }
void reload() { snapshot(true); }
Decline check_decline(const StoredKernel& kernel, const Target* target) {
  return decline_by(stored_checks(kernel.digest), kernel.name, target);
}

}  // namespace cermet::foreign
