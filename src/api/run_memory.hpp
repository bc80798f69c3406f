// What runs that come one after the other share: scratch memory and the caller's stream.
#pragma once

#include <memory>
#include <vector>

#include "base/buffer.hpp"
#include "runtime/context.hpp"

namespace cermet::api {

class RunMemory {
 public:
  /// The caller's stream, or where it is null the context's own; null on the CPU.
  Stream* stream(const Context& context, void* native);
  /// Memory of the device that the stream belongs to, or of the host; null for 0 bytes. Grows. What launches may still
  /// be using stays until the end.
  std::byte* scratch(const Context& context, std::int64_t bytes, Stream* stream);

 private:
  AlignedBuffer host_;
  std::vector<DeviceBuffer> device_;  ///< the largest last
  void* native_ = nullptr;            ///< what `wrapped_` stands for
  std::unique_ptr<Stream> wrapped_;
};

}  // namespace cermet::api
