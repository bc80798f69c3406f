// The process in which a kernel's cases run, seen from the one that waits for it.
#pragma once

#include <filesystem>
#include <string>

#include "runtime/kernel_check.hpp"

namespace cermet {

struct CaseProcessResult {
  std::string device;   ///< what it reported: the device, and after a tab the driver's version
  std::string counts;   ///< of its last line, where it ended well
  std::string failure;  ///< what was wrong: an answer, a crash, or no answer in time; empty where it ended well
};

/// Starts the program's verb `kernel cases` and reads what it reports; kills it where it says nothing for so many
/// seconds. Throws Error where it cannot be started.
CaseProcessResult run_case_process(const std::filesystem::path& manifest, const KernelCheckOptions& options);

}  // namespace cermet
