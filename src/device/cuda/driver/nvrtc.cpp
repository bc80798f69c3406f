// NVRTC: CUDA source, with headers that are found in memory, to a cubin, PTX or LTO-IR.
#include <cuda.h>
#include <nvrtc.h>

#include "base/error.hpp"
#include "device/cuda/driver/nvjitlink.hpp"
#include "device/cuda/driver/toolchain.hpp"
#include "device/late_library.hpp"

namespace cermet::cuda {
namespace {

LateLibrary& library() {
  static LateLibrary found("NVRTC", fmt::format("libnvrtc.so.{}", CUDA_VERSION / 1000));
  return found;
}

/// The functions used, by name.
struct Nvrtc {
#define X(name, symbol) decltype(&::symbol) name = nullptr;
#include "device/cuda/driver/nvrtc_functions.inc"
#undef X
};

const Nvrtc& nvrtc() {
  static const Nvrtc opened = [] {
    Nvrtc n;
#define X(name, symbol) library().find(#symbol, n.name);
#include "device/cuda/driver/nvrtc_functions.inc"
#undef X
    return n;
  }();
  return opened;
}

void check(nvrtcResult result, const char* what, const std::string& name) {
  if (result != NVRTC_SUCCESS)
    fail(Status::internal, "NVRTC, {} of {}: {}", what, name, nvrtc().get_error_string(result));
}

/// Owns a program.
class Source {
 public:
  explicit Source(const CompileRequest& request) {
    std::vector<const char*> names, texts;
    for (const SourceHeader& header : request.headers) {
      names.push_back(header.name);
      texts.push_back(header.text);
    }
    check(nvrtc().create_program(&program_, request.source.c_str(), "generated.cu", static_cast<int>(names.size()),
                                 texts.data(), names.data()),
          "creation", request.name);
  }
  ~Source() { nvrtc().destroy_program(&program_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  nvrtcProgram get() const { return program_; }

 private:
  nvrtcProgram program_{};
};

std::string log_of(nvrtcProgram program, const std::string& name) {
  std::size_t bytes = 0;
  check(nvrtc().get_log_size(program, &bytes), "log", name);
  std::string log(bytes, '\0');
  if (bytes) check(nvrtc().get_log(program, log.data()), "log", name);
  log.resize(log.find_last_not_of(std::string_view("\0 \n", 3)) + 1);
  return log;
}

using SizeGetter = nvrtcResult (*)(nvrtcProgram, std::size_t*);
using Getter = nvrtcResult (*)(nvrtcProgram, char*);

std::vector<std::byte> image_of(nvrtcProgram program, CompileRequest::Form form, const std::string& name) {
  const Nvrtc& n = nvrtc();
  const SizeGetter size = form == CompileRequest::Form::cubin ? n.get_cubin_size
                          : form == CompileRequest::Form::ptx ? n.get_ptx_size
                                                              : n.get_lto_ir_size;
  const Getter get = form == CompileRequest::Form::cubin ? n.get_cubin
                     : form == CompileRequest::Form::ptx ? n.get_ptx
                                                         : n.get_lto_ir;
  std::size_t bytes = 0;
  check(size(program, &bytes), "image", name);
  std::vector<std::byte> image(bytes);
  check(get(program, reinterpret_cast<char*>(image.data())), "image", name);
  return image;
}

class NvidiaToolchain final : public Toolchain {
 public:
  /// The interface gives no more than "13.0", and a call would open the library.
  std::string version() const override {
    const std::filesystem::path file = library().file();
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(file, error);
    return fmt::format("{} ({} bytes, build {})", file.filename().string(), error ? 0 : bytes, build_id_of(file));
  }

  CompileResult compile(const CompileRequest& request) const override {
    const Source source(request);
    std::vector<const char*> options;
    for (const std::string& option : request.options) options.push_back(option.c_str());
    if (request.form == CompileRequest::Form::lto_ir) options.push_back("-dlto");
    options.push_back("--no-cache");  // where there is a driver, NVRTC would answer from the driver's cache, without
                                      // the assembler's report
    const nvrtcResult result = nvrtc().compile_program(source.get(), static_cast<int>(options.size()), options.data());
    CompileResult compiled{{}, log_of(source.get(), request.name)};
    if (result != NVRTC_SUCCESS)
      fail(Status::internal, "GPU code {} does not compile ({}):\n{}", request.name, nvrtc().get_error_string(result),
           compiled.log);
    compiled.image = image_of(source.get(), request.form, request.name);
    return compiled;
  }

  CompileResult link(std::span<const std::vector<std::byte>> lto_pieces,
                     std::span<const std::string> options) const override {
    return link_lto(lto_pieces, options);
  }
};

}  // namespace

std::unique_ptr<Toolchain> make_toolchain() { return std::make_unique<NvidiaToolchain>(); }

}  // namespace cermet::cuda
