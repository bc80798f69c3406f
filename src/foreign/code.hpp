// The files behind a manifest: read once, when they are needed, and compared with what was stored.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "foreign/cpu_call.hpp"
#include "foreign/manifest.hpp"

namespace cermet::foreign {

class Code {
 public:
  /// Digests by file; none are compared where there are none.
  Code(std::filesystem::path folder, std::map<std::string, std::string> digests)
      : folder_(std::move(folder)), digests_(std::move(digests)) {}

  const std::filesystem::path& folder() const { return folder_; }
  /// The bytes of a file. Throws Error where it cannot be read or is not what was stored. Thread-safe.
  std::shared_ptr<const std::string> bytes(const std::string& file);
  /// The function of a shared object, which stays loaded for the life of the process. Throws Error with the loader's
  /// message. Thread-safe.
  CpuEntry function(const std::string& file, const std::string& entry);

 private:
  std::filesystem::path folder_;
  std::map<std::string, std::string> digests_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const std::string>> read_;
  std::map<std::string, void*> loaded_;
};

/// Throws Error unless a file's content is code of this kind, and, of machine code, has the function: what is known
/// without running it.
void check_code(CodeKind kind, const std::string& content, const std::string& entry, const std::string& file);

}  // namespace cermet::foreign
