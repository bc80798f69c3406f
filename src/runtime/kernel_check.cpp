#include "runtime/kernel_check.hpp"

#include <charconv>
#include <chrono>

#include "runtime/case_process.hpp"

namespace cermet {
namespace {

std::int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// "12 3 36 reason".
void read_counts(std::string_view text, KernelCheck& check) {
  for (std::int64_t* count : {&check.record.taken, &check.record.declined, &check.record.runs}) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *count);
    if (error != std::errc())
      fail(Status::internal, "check of {}: expected three counts, found '{}'", check.record.kernel, text);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(' ')) text.remove_prefix(1);
  }
  check.first_reason = text;
}

}  // namespace

KernelCheck check_kernel(const std::filesystem::path& manifest, const std::string& digest,
                         const KernelCheckOptions& options) {
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
    record.failure = fmt::format(
        "expected at least one of {} cases to be taken, found that all are declined, the first because it {}",
        record.declined,
        check.first_reason.empty() ? "is not there" : check.first_reason.substr(check.first_reason.find(": ") + 2));
  check.has_run = record.runs > 0;
  return check;
}

}  // namespace cermet
