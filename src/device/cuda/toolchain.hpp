// What turns CUDA source into machine code at run time: NVRTC and nvJitLink, behind the plugin.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cermet::cuda {

/// A header that compilation finds by name, without a file system.
struct SourceHeader {
  const char* name;  ///< as in an include: "kernel/cuda/device/types.cuh"
  const char* text;
};

struct CompileRequest {
  std::string source;
  std::string name;                       ///< for messages
  std::span<const SourceHeader> headers;  ///< outlives the call
  std::vector<std::string> options;       ///< "-arch=sm_90a", "-std=c++20"
  enum class Form : unsigned char { cubin, lto_ir, ptx } form = Form::cubin;
};

struct CompileResult {
  std::vector<std::byte> image;
  std::string log;  ///< the compiler's report, with registers and spills where the options ask for it
};

class Toolchain {
 public:
  virtual ~Toolchain() = default;
  /// "libnvrtc.so.13 (109338064 bytes, build 65be0db3...)": part of the key of every cached image. The compiler is
  /// looked for, not opened; throws Error(unsupported) where there is none.
  virtual std::string version() const = 0;
  /// Thread-safe. Throws Error(internal) with the compiler's log where the source does not compile.
  virtual CompileResult compile(const CompileRequest& request) const = 0;
  /// Links pieces of LTO-IR to a cubin. Thread-safe.
  virtual CompileResult link(std::span<const std::vector<std::byte>> lto_pieces,
                             std::span<const std::string> options) const = 0;
};

}  // namespace cermet::cuda
