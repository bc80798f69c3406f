// NVRTC: CUDA source, with headers that are found in memory, to a cubin, PTX or LTO-IR.
#include <dlfcn.h>
#include <nvrtc.h>

#include <filesystem>

#include "base/error.hpp"
#include "device/cuda/driver/nvjitlink.hpp"
#include "device/cuda/driver/toolchain.hpp"

namespace cermet::cuda {
namespace {

void check(nvrtcResult result, const char* what, const std::string& name) {
  if (result != NVRTC_SUCCESS) fail(Status::internal, "NVRTC, {} of {}: {}", what, name, nvrtcGetErrorString(result));
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
    check(nvrtcCreateProgram(&program_, request.source.c_str(), "generated.cu", static_cast<int>(names.size()), texts.data(), names.data()), "creation",
          request.name);
  }
  ~Source() { nvrtcDestroyProgram(&program_); }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  nvrtcProgram get() const { return program_; }

 private:
  nvrtcProgram program_{};
};

std::string log_of(nvrtcProgram program, const std::string& name) {
  std::size_t bytes = 0;
  check(nvrtcGetProgramLogSize(program, &bytes), "log", name);
  std::string log(bytes, '\0');
  if (bytes) check(nvrtcGetProgramLog(program, log.data()), "log", name);
  log.resize(log.find_last_not_of(std::string_view("\0 \n", 3)) + 1);
  return log;
}

using SizeGetter = nvrtcResult (*)(nvrtcProgram, std::size_t*);
using Getter = nvrtcResult (*)(nvrtcProgram, char*);

std::vector<std::byte> image_of(nvrtcProgram program, CompileRequest::Form form, const std::string& name) {
  const SizeGetter size = form == CompileRequest::Form::cubin ? nvrtcGetCUBINSize : form == CompileRequest::Form::ptx ? nvrtcGetPTXSize : nvrtcGetLTOIRSize;
  const Getter get = form == CompileRequest::Form::cubin ? nvrtcGetCUBIN : form == CompileRequest::Form::ptx ? nvrtcGetPTX : nvrtcGetLTOIR;
  std::size_t bytes = 0;
  check(size(program, &bytes), "image", name);
  std::vector<std::byte> image(bytes);
  check(get(program, reinterpret_cast<char*>(image.data())), "image", name);
  return image;
}

class NvidiaToolchain final : public Toolchain {
 public:
  /// The interface tells releases apart ("13.0"), the library's file their updates.
  std::string version() const override {
    int major = 0, minor = 0;
    check(nvrtcVersion(&major, &minor), "version", "the library");
    Dl_info library{};
    std::error_code error;
    if (!dladdr(reinterpret_cast<const void*>(&nvrtcVersion), &library)) return fmt::format("{}.{}", major, minor);
    const std::filesystem::path file = std::filesystem::canonical(library.dli_fname, error);
    const std::uintmax_t bytes = error ? 0 : std::filesystem::file_size(file, error);
    return fmt::format("{}.{} ({}, {} bytes)", major, minor, file.filename().string(), error ? 0 : bytes);
  }

  CompileResult compile(const CompileRequest& request) const override {
    const Source source(request);
    std::vector<const char*> options;
    for (const std::string& option : request.options) options.push_back(option.c_str());
    if (request.form == CompileRequest::Form::lto_ir) options.push_back("-dlto");
    options.push_back("--no-cache");  // where there is a driver, NVRTC would answer from the driver's cache, without the assembler's report
    const nvrtcResult result = nvrtcCompileProgram(source.get(), static_cast<int>(options.size()), options.data());
    CompileResult compiled{{}, log_of(source.get(), request.name)};
    if (result != NVRTC_SUCCESS) fail(Status::internal, "GPU code {} does not compile ({}):\n{}", request.name, nvrtcGetErrorString(result), compiled.log);
    compiled.image = image_of(source.get(), request.form, request.name);
    return compiled;
  }

  CompileResult link(std::span<const std::vector<std::byte>> lto_pieces, std::span<const std::string> options) const override {
    return link_lto(lto_pieces, options);
  }
};

}  // namespace

std::unique_ptr<Toolchain> make_toolchain() { return std::make_unique<NvidiaToolchain>(); }

}  // namespace cermet::cuda
