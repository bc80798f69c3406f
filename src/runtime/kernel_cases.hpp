// The part of a kernel's check that runs its code: in a process of its own, because the code may crash, hang or write
// anywhere.
#pragma once

#include <filesystem>
#include <string>

namespace cermet {

/// Runs the kernel of a manifest over all of its cases on a device and writes lines to the descriptor `report` as it
/// goes:
///   device KEY<tab>DRIVER   where it runs
///   at TEXT                 what it does next
///   failed TEXT             what was wrong; nothing follows
///   done TAKEN DECLINED RUNS FIRST-REASON   the last line of one that was right wherever it took a case
/// Returns whether the last line is written. What is wrong with the manifest or the device is reported as a failure,
/// too.
bool run_kernel_cases(const std::filesystem::path& manifest, const std::string& device, int report);

}  // namespace cermet
