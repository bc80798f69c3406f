// nvJitLink: pieces of LTO-IR to one cubin, optimized together.
#include <nvJitLink.h>

#include "base/error.hpp"
#include "device/cuda/driver/nvjitlink.hpp"

namespace cermet::cuda {
namespace {

/// Owns a link.
class Link {
 public:
  explicit Link(std::span<const std::string> options) {
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    check(nvJitLinkCreate(&handle_, static_cast<std::uint32_t>(texts.size()), texts.data()), "its options");
  }
  ~Link() { nvJitLinkDestroy(&handle_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void add(const std::vector<std::byte>& piece, const std::string& name) {
    check(nvJitLinkAddData(handle_, NVJITLINK_INPUT_LTOIR, piece.data(), piece.size(), name.c_str()), "a piece");
  }
  CompileResult complete() {
    check(nvJitLinkComplete(handle_), "the link");
    CompileResult result{{}, text(nvJitLinkGetInfoLogSize, nvJitLinkGetInfoLog)};
    std::size_t bytes = 0;
    check(nvJitLinkGetLinkedCubinSize(handle_, &bytes), "the image");
    result.image.resize(bytes);
    check(nvJitLinkGetLinkedCubin(handle_, result.image.data()), "the image");
    return result;
  }

 private:
  void check(nvJitLinkResult result, const char* what) {
    if (result == NVJITLINK_SUCCESS) return;
    fail(Status::internal, "nvJitLink refuses {} (result {}):\n{}", what, static_cast<int>(result),
         handle_ ? text(nvJitLinkGetErrorLogSize, nvJitLinkGetErrorLog) : "");
  }
  template <class Size, class Get>
  std::string text(Size size, Get get) {
    std::size_t bytes = 0;
    if (size(handle_, &bytes) != NVJITLINK_SUCCESS || bytes == 0) return "";
    std::string log(bytes, '\0');
    if (get(handle_, log.data()) != NVJITLINK_SUCCESS) return "";
    log.resize(log.find_last_not_of(std::string_view("\0 \n", 3)) + 1);
    return log;
  }

  nvJitLinkHandle handle_ = nullptr;
};

}  // namespace

CompileResult link_lto(std::span<const std::vector<std::byte>> pieces, std::span<const std::string> options) {
  Link link(options);
  for (std::size_t i = 0; i < pieces.size(); ++i) link.add(pieces[i], fmt::format("piece {}", i));
  return link.complete();
}

}  // namespace cermet::cuda
