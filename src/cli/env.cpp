// cermet env: what this build and this machine are, and every environment variable.
#include "base/env.hpp"

#include <fmt/core.h>
#include <hwy/highway.h>
#include <spdlog/version.h>

#include <CLI/Version.hpp>
#include <nlohmann/json_fwd.hpp>

#include "base/cores.hpp"
#include "cermet/cermet.h"
#include "cli/verb.hpp"
#include "device/cuda/plugin.hpp"
#include "io/sqlite.hpp"
#include "jit/jit.hpp"
#include "kernel/cpu/isa.hpp"
#include "kernel/cpu/kernels.hpp"
#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"

namespace cermet::cli::env_verb {
namespace {

Json versions() {
  return {{"cermet", cermet_version()},
          {"compiler", __VERSION__},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
          {"spdlog", fmt::format("{}.{}.{}", SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH)},
          {"highway", fmt::format("{}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH)},
          {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                        NLOHMANN_JSON_VERSION_PATCH)},
          {"cli11", CLI11_VERSION},
          {"sqlite", SqliteConnection::version()}};
}

Json instruction_sets() {
  Json list = Json::array();
  for (const cpu::Isa isa : cpu::supported_isas()) list.push_back(cpu::name_of(isa));
  return list;
}

/// What make_device takes here.
Json devices(const std::string& no_cuda) {
  Json list{"cpu", "null"};
  if (no_cuda.empty())
    for (int i = 0; i < cuda::plugin().device_count(); ++i) list.push_back(fmt::format("cuda:{}", i));
  return list;
}

/// What compiles kernels for GPUs, which needs none; or why nothing does.
Json gpu_compiler() {
  try {
    return {{"version", jit::toolchain().version()}, {"problem", nullptr}};
  } catch (const Error& error) {
    return {{"version", nullptr}, {"problem", error.what()}};
  }
}

Json kernel_cache() {
  const jit::DiskCache& cache = jit::DiskCache::process();
  std::int64_t bytes = 0;
  const std::vector<jit::DiskCache::Entry> entries = cache.entries(false);
  for (const jit::DiskCache::Entry& entry : entries) bytes += entry.bytes;
  return {{"folder", cache.folder().string()},
          {"entries", entries.size()},
          {"bytes", bytes},
          {"max_bytes", cache.max_bytes()},
          {"problem", cache.problem().empty() ? Json() : Json(cache.problem())}};
}

Json variables() {
  Json list = Json::array();
  for (const env::Variable& v : env::all())
    list.push_back(
        {{"name", v.name}, {"value", v.value}, {"default", v.fallback}, {"set", v.is_set}, {"meaning", v.meaning}});
  return list;
}

void print_text(Console& console, const Json& all) {
  Table table;
  for (const auto& [name, version] : all["versions"].items()) table.row({name, version.get<std::string>()});
  console.print("versions\n{}", table.to_string());
  Table machine;
  machine.row({"instruction sets",
               fmt::format("{} (in use: {})", fmt::join(all["instruction_sets"].get<std::vector<std::string>>(), ", "),
                           all["instruction_set"].get<std::string>())});
  machine.row({"cores", fmt::format("{}", all["cores"].get<int>())});
  machine.row({"devices", fmt::format("{}", fmt::join(all["devices"].get<std::vector<std::string>>(), ", "))});
  if (!all["cuda_problem"].is_null()) machine.row({"no CUDA device", one_line(all["cuda_problem"].get<std::string>())});
  const Json &compiler = all["gpu_compiler"], &cache = all["kernel_cache"];
  machine.row({"GPU compiler", compiler["version"].is_null()
                                   ? "none: " + one_line(compiler["problem"].get<std::string>())
                                   : "NVRTC " + compiler["version"].get<std::string>()});
  const std::string folder = cache["folder"].get<std::string>();
  if (!cache["problem"].is_null())
    machine.row({"compiled kernels", fmt::format("{}{}none kept: {}", folder, folder.empty() ? "" : ", ",
                                                 cache["problem"].get<std::string>())});
  else
    machine.row({"compiled kernels",
                 fmt::format("{} in {}, {} of at most {}", cache["entries"].get<std::size_t>(), folder,
                             bytes_text(cache["bytes"].get<double>()), bytes_text(cache["max_bytes"].get<double>()))});
  machine.row(
      {"operators", fmt::format("{}, CPU kernels {}, CUDA kernels {}", all["operators"].get<std::size_t>(),
                                all["cpu_kernels"].get<std::size_t>(), all["cuda_kernels"].get<std::size_t>())});
  console.print("machine\n{}", machine.to_string());
  Table variables;
  for (const Json& v : all["variables"])
    variables.row({v["name"].get<std::string>(),
                   fmt::format("\"{}\"{}", v["value"].get<std::string>(), v["set"].get<bool>() ? "" : " (default)"),
                   v["meaning"].get<std::string>()});
  console.print("environment variables\n{}", variables.to_string());
}

void show(Console& console) {
  const std::string no_cuda = cuda::unavailable_reason();
  const Json all{{"versions", versions()},
                 {"instruction_sets", instruction_sets()},
                 {"instruction_set", cpu::name_of(cpu::active_isa())},
                 {"cores", usable_cores()},
                 {"devices", devices(no_cuda)},
                 {"cuda_problem", no_cuda.empty() ? Json() : Json(no_cuda)},
                 {"gpu_compiler", gpu_compiler()},
                 {"kernel_cache", kernel_cache()},
                 {"operators", all_operators().size()},
                 {"cpu_kernels", cpu::all_kernels().size()},
                 {"cuda_kernels", cuda::all_kernels().size()},
                 {"variables", variables()}};
  if (console.json()) console.write_json(all);
  else print_text(console, all);
}

}  // namespace

Verb verb() {
  return {"env", "show versions, devices, caches and environment variables",
          "  cermet env\n  CERMET_CPU_ISA=avx2 cermet env --json", [](Parser&) -> Action { return show; }};
}

}  // namespace cermet::cli::env_verb
