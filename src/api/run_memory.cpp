#include "api/run_memory.hpp"

#include <algorithm>

#include "device/cuda/plugin.hpp"

namespace cermet::api {

Stream* RunMemory::stream(const Context& context, void* native) {
  if (!context.stream()) return nullptr;
  if (!native) return context.stream();
  if (native != native_) {
    wrapped_ = cuda::plugin().wrap_stream(context.device(), native);
    native_ = native;
  }
  return wrapped_.get();
}

std::byte* RunMemory::scratch(const Context& context, std::int64_t bytes, Stream* stream) {
  if (bytes == 0) return nullptr;
  if (!stream) {
    if (host_.size() < bytes) host_ = AlignedBuffer(std::max(bytes, 2 * host_.size()));
    return host_.data();
  }
  if (device_.empty() || device_.back().size() < bytes) {
    const std::int64_t size =
        device_.empty() ? bytes : std::max(bytes, 2 * device_.back().size());  // all of them together: twice the last
    device_.push_back(context.device().allocate(size));
    stream->fill(
        device_.back().data(), 0,
        size);  // once: attention's flags may hold anything, but initcheck reports reads of uninitialized memory
  }
  return device_.back().data();
}

}  // namespace cermet::api
