// nvJitLink: pieces of LTO-IR to one cubin, optimized together.
#include <cuda.h>
#include <nvJitLink.h>

#include "base/error.hpp"
#include "device/cuda/driver/nvjitlink.hpp"
#include "device/late_library.hpp"

namespace cermet::cuda {
namespace {

/// The functions used, by name.
struct NvJitLink {
#define X(name, symbol) decltype(&::symbol) name = nullptr;
#include "device/cuda/driver/nvjitlink_functions.inc"
#undef X
};

const NvJitLink& nvjitlink() {
  static const NvJitLink opened = [] {
    LateLibrary library("nvJitLink", fmt::format("libnvJitLink.so.{}", CUDA_VERSION / 1000));
    NvJitLink n;
#define X(name, symbol) library.find(#symbol, n.name);
#include "device/cuda/driver/nvjitlink_functions.inc"
#undef X
    return n;
  }();
  return opened;
}

/// Owns a link.
class Link {
 public:
  explicit Link(std::span<const std::string> options) {
    std::vector<const char*> texts;
    for (const std::string& option : options) texts.push_back(option.c_str());
    check(nvjitlink().create(&handle_, static_cast<std::uint32_t>(texts.size()), texts.data()), "its options");
  }
  ~Link() { nvjitlink().destroy(&handle_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  void add(const std::vector<std::byte>& piece, const std::string& name) {
    check(nvjitlink().add_data(handle_, NVJITLINK_INPUT_LTOIR, piece.data(), piece.size(), name.c_str()), "a piece");
  }
  CompileResult complete() {
    check(nvjitlink().complete(handle_), "the link");
    CompileResult result{{}, text(nvjitlink().get_info_log_size, nvjitlink().get_info_log)};
    std::size_t bytes = 0;
    check(nvjitlink().get_cubin_size(handle_, &bytes), "the image");
    result.image.resize(bytes);
    check(nvjitlink().get_cubin(handle_, result.image.data()), "the image");
    return result;
  }

 private:
  void check(nvJitLinkResult result, const char* what) {
    if (result == NVJITLINK_SUCCESS) return;
    fail(Status::internal, "nvJitLink refuses {} (result {}):\n{}", what, static_cast<int>(result),
         handle_ ? text(nvjitlink().get_error_log_size, nvjitlink().get_error_log) : "");
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
