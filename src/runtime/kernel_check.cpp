#include "runtime/kernel_check.hpp"

#include <charconv>
#include <chrono>

#include "device/cuda/plugin.hpp"
#include "foreign/match.hpp"
#include "foreign/registry.hpp"
#include "runtime/case_process.hpp"

namespace cermet {
namespace {

std::int64_t now_seconds() { return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count(); }

/// "12 3 36 reason".
void read_counts(std::string_view text, KernelCheck& check) {
  for (std::int64_t* count : {&check.record.taken, &check.record.declined, &check.record.runs}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *count);
    if (error != std::errc()) fail(Status::internal, "check of {}: expected three counts, found '{}'", check.record.kernel, text);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  check.first_reason = text;
}

/// Why this machine cannot run the kernel at all; empty where it can.
std::string no_device_for(const foreign::Manifest& manifest) {
  if (!foreign::is_gpu(manifest.kind)) return "";
  if (std::string reason = cuda::unavailable_reason(); !reason.empty()) return reason;
  const std::unique_ptr<Device> device = make_device("cuda");
  const int capability = device->target()->compute_capability;
  if (foreign::runs_on(manifest.architectures, capability)) return "";
  return fmt::format("{}: expected a GPU of {}, found compute capability {}.{}", device->name(), fmt::join(manifest.architectures, ", "), capability / 10,
                     capability % 10);
}

[[noreturn]] void refuse(const foreign::CheckRecord& record) {
  fail(Status::invalid_file, "kernel {} on {}: {}", record.kernel, record.device.empty() ? "this machine" : record.device, record.failure);
}

/// The check that can be made here; none, with a reason, where none can.
AddedKernel checked(const foreign::StoredKernel& kernel, const std::filesystem::path& manifest_file, const KernelCheckOptions& options) {
  AddedKernel added{kernel, std::nullopt, {}};
  KernelCheckOptions with_device = options;
  if (options.device.empty()) {
    added.unchecked = no_device_for(*kernel.manifest);
    if (!added.unchecked.empty()) return added;
    with_device.device = foreign::is_gpu(kernel.manifest->kind) ? "cuda" : "cpu";
  }
  added.check = check_kernel(manifest_file, kernel.digest, with_device);
  if (added.check->record.passed() && !added.check->has_run)
    added.unchecked = fmt::format("device {}: expected one that computes, found one that only compiles", with_device.device);
  return added;
}

}  // namespace

KernelCheck check_kernel(const std::filesystem::path& manifest, const std::string& digest, const KernelCheckOptions& options) {
  KernelCheck check;
  foreign::CheckRecord& record = check.record;
  record.kernel = foreign::read_manifest(manifest).name;
  record.digest = digest;
  record.library = foreign::library_version();
  record.date = foreign::time_text(now_seconds());
  const CaseProcessResult result = run_case_process(manifest, options);
  const std::size_t tab = std::min(result.device.find('\t'), result.device.size());
  record.device = result.device.substr(0, tab);
  record.driver = result.device.substr(std::min(tab + 1, result.device.size()));
  record.failure = result.failure;
  if (!record.passed()) return check;
  read_counts(result.counts, check);
  if (record.taken == 0)
    record.failure = fmt::format("expected at least one of {} cases to be taken, found that all are declined, the first because it {}", record.declined,
                                 check.first_reason.empty() ? "is not there" : check.first_reason.substr(check.first_reason.find(": ") + 2));
  check.has_run = record.runs > 0;
  return check;
}

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
