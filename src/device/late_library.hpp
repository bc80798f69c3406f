// A shared library that is opened when something first calls it. Those of a backend have 100 MB and more, and take 5 to
// 40 ms to open.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <utility>

namespace cermet {

/// Thread-safe.
class LateLibrary {
 public:
  /// `product` is for messages, `name` what the loader takes: "NVRTC", "libnvrtc.so.13".
  LateLibrary(std::string product, std::string name) : product_(std::move(product)), name_(std::move(name)) {}
  LateLibrary(const LateLibrary&) = delete;
  LateLibrary& operator=(const LateLibrary&) = delete;

  /// The file that is open or would be: what the process has opened by this name, else what the search path of this
  /// code's own library has. One that the loader's cache alone knows is opened for the answer. Throws
  /// Error(unsupported) where there is none.
  std::filesystem::path file();
  /// Why it cannot be called, as far as is known without opening it; empty where nothing is known.
  std::string problem();
  /// Sets a pointer to a function of the library, which is opened and stays open. Throws Error(unsupported).
  template <class Function>
  void find(const char* symbol, Function*& function) {
    function = reinterpret_cast<Function*>(address(symbol));
  }

 private:
  void open(const std::string& place);
  void* address(const char* symbol);

  std::string product_, name_;
  std::mutex mutex_;
  std::filesystem::path file_;
  void* handle_ = nullptr;
};

/// What the linker gave a file to tell builds apart (NT_GNU_BUILD_ID of 64-bit ELF), in hexadecimal digits; empty where
/// there is none.
std::string build_id_of(const std::filesystem::path& path);

}  // namespace cermet
