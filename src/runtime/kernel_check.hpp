// Checks and adds kernels from outside: their code runs in a process of its own (kernel_cases.hpp), so that one that is
// wrong, hangs or crashes is refused with the case that failed.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "foreign/check_record.hpp"
#include "foreign/store.hpp"

namespace cermet {

struct KernelCheckOptions {
  std::string device = {};  ///< as make_device() takes it; empty: the CPU, or the GPU if there is one
  int seconds = 60;         ///< for each run, and for what is compiled before a case
  std::string program =
      {};  ///< the command line; empty: CERMET_PROGRAM, the one beside the library, or the one in PATH
  void (*between)() = [] {};  ///< called now and then; what it throws ends the check
};

struct KernelCheck {
  foreign::CheckRecord record;
  bool has_run = false;      ///< false: on a device that does not compute; the code compiled, or failed to
  std::string first_reason;  ///< why the first case was declined; empty where none was
};

/// Checks the kernel of a manifest. Throws Error where no check can be made: no such device, no program.
KernelCheck check_kernel(const std::filesystem::path& manifest, const std::string& digest,
                         const KernelCheckOptions& options);

struct AddedKernel {
  foreign::StoredKernel kernel;
  std::optional<KernelCheck> check;  ///< none where there is nothing that could run it: `unchecked` says why
  std::string unchecked;
};

/// Copies a kernel into the user's folder, after a check wherever one can be made, and records the check. Throws Error,
/// and stores nothing, where the kernel fails.
AddedKernel add_kernel(const std::filesystem::path& manifest, bool replace, const KernelCheckOptions& options);

/// Checks one that was copied and is not to be added. Throws Error where it fails.
AddedKernel check_staged_kernel(const foreign::StagedKernel& staged, const KernelCheckOptions& options);

/// Checks one that was added, and records what came out. Throws Error where it fails.
AddedKernel check_stored_kernel(std::string_view name, const KernelCheckOptions& options);

/// Deletes one that was added, with the records of its checks. Throws Error where there is none, or where its folder is
/// only read.
void remove_stored_kernel(std::string_view name);

}  // namespace cermet
