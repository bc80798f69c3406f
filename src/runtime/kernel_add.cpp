// Kernels from outside that are added, checked again and removed.
#include "device/cuda/plugin.hpp"
#include "foreign/match.hpp"
#include "foreign/registry.hpp"
#include "runtime/kernel_check.hpp"

namespace cermet {
namespace {

/// Why this machine cannot run the kernel at all; empty where it can.
std::string no_device_for(const foreign::Manifest& manifest) {
  if (!foreign::is_gpu(manifest.kind)) return "";
  if (std::string reason = cuda::unavailable_reason(); !reason.empty()) return reason;
  const std::unique_ptr<Device> device = make_device("cuda");
  const int capability = device->target()->compute_capability;
  if (foreign::runs_on(manifest.architectures, capability)) return "";
  return fmt::format("{}: expected a GPU of {}, found compute capability {}.{}", device->name(),
                     fmt::join(manifest.architectures, ", "), capability / 10, capability % 10);
}

[[noreturn]] void refuse(const foreign::CheckRecord& record) {
  fail(Status::invalid_file, "kernel {} on {}: {}", record.kernel,
       record.device.empty() ? "this machine" : record.device, record.failure);
}

/// The check that can be made here; none, with a reason, where none can.
AddedKernel checked(const foreign::StoredKernel& kernel, const std::filesystem::path& manifest_file,
                    const KernelCheckOptions& options) {
  AddedKernel added{kernel, std::nullopt, {}};
  KernelCheckOptions with_device = options;
  if (options.device.empty()) {
    added.unchecked = no_device_for(*kernel.manifest);
    if (!added.unchecked.empty()) return added;
    with_device.device = foreign::is_gpu(kernel.manifest->kind) ? "cuda" : "cpu";
  }
  added.check = check_kernel(manifest_file, kernel.digest, with_device);
  if (added.check->record.passed() && !added.check->has_run)
    added.unchecked =
        fmt::format("device {}: expected one that computes, found one that only compiles", with_device.device);
  return added;
}

}  // namespace

AddedKernel check_staged_kernel(const foreign::StagedKernel& staged, const KernelCheckOptions& options) {
  AddedKernel added = checked(staged.kernel(), staged.manifest_file(), options);
  if (added.check && !added.check->record.passed()) refuse(added.check->record);
  return added;
}

AddedKernel add_kernel(const std::filesystem::path& manifest, bool replace, const KernelCheckOptions& options) {
  foreign::StagedKernel staged(manifest, replace);
  AddedKernel added = check_staged_kernel(staged, options);
  if (added.check && added.check->has_run) foreign::store_check(added.check->record);
  staged.commit();
  added.kernel = staged.kernel();
  foreign::reload();
  return added;
}

void remove_stored_kernel(std::string_view name) {
  const foreign::StoredKernel kernel = foreign::stored_kernel(name);
  foreign::remove_kernel(name);
  if (!kernel.digest.empty()) foreign::remove_checks(kernel.digest);
  foreign::reload();
}

AddedKernel check_stored_kernel(std::string_view name, const KernelCheckOptions& options) {
  const foreign::StoredKernel kernel = foreign::stored_kernel(name);
  if (!kernel.manifest) fail(Status::invalid_file, "kernel {}: {}", name, kernel.problem);
  AddedKernel added = checked(kernel, kernel.folder / "manifest.json", options);
  if (!added.check) return added;
  const foreign::CheckRecord& record = added.check->record;
  if (!record.device.empty() && (added.check->has_run || !record.passed())) foreign::store_check(record);
  foreign::reload();
  if (!record.passed()) refuse(record);
  return added;
}

}  // namespace cermet
