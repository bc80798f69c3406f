// What every program must satisfy on every architecture, without a GPU: it compiles without a warning and does not
// spill.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "device/cuda/plugin.hpp"
#include "jit/jit.hpp"
#include "tests/jit/case_programs.hpp"

namespace cermet {

/// One of each generation, and one that runs PTX of compute_90.
inline constexpr int compute_capabilities[]{75, 80, 86, 89, 90, 100};

/// Whether the fast tests compile the i-th of several things for an architecture: everything for 9.0, which has most
/// code of its own, every second one for the oldest, and for each of the others every fourth, another one each. The
/// long tests compile everything for all.
inline bool in_share(int compute_capability, std::size_t i) {
  if (compute_capability == 75) return i % 2 == 0;
  constexpr int shared[]{80, 86, 89, 100};
  const auto* const at = std::find(std::begin(shared), std::end(shared), compute_capability);
  return at == std::end(shared) || i % std::size(shared) == static_cast<std::size_t>(at - std::begin(shared));
}

/// Why nothing can be compiled here; empty where it can. A build that has the plugin must be able to.
inline std::string no_toolchain() {
#if defined(CERMET_HAS_CUDA_PLUGIN)
  return "";
#else
  return "the CUDA toolkit was not found when this was configured";
#endif
}

/// Images stay below the build's folder from run to run, so that only what changed is compiled.
inline jit::DiskCache& test_cache() {
  static jit::DiskCache cache(CERMET_BINARY_DIR "/kernel_cache", std::int64_t{4} << 30);
  return cache;
}

/// Bytes of spill stores and loads in the assembler's report.
inline std::int64_t spilled_bytes(const std::string& log) {
  static const std::regex pattern(R"((\d+) bytes spill stores, (\d+) bytes spill loads)");
  std::int64_t bytes = 0;
  for (std::sregex_iterator at(log.begin(), log.end(), pattern), end; at != end; ++at)
    bytes += std::stoll((*at)[1]) + std::stoll((*at)[2]);
  return bytes;
}

/// Whether the assembler says that it makes asynchronous products wait for each other (C7510 to C7520, of which C7519
/// is an order of registers that costs nothing).
inline bool serializes_products(const std::string& log) {
  static const std::regex pattern(R"(\(C75(1[0-8]|20)\))");
  return std::regex_search(log, pattern);
}

/// Writes images where CERMET_DUMP_IMAGES names a folder, for tools/machine_code.py: one file for each program of a
/// test.
inline void dump_images(const std::vector<jit::Image>& images) {
  const char* folder = std::getenv("CERMET_DUMP_IMAGES");
  if (!folder) return;
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  std::string name = std::string(test.test_suite_name()) + "." + test.name();
  std::ranges::replace(name, '/', '_');
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < images.size(); ++i)
    std::ofstream(std::filesystem::path(folder) / (name + "." + std::to_string(i) + ".cubin"), std::ios::binary)
        .write(reinterpret_cast<const char*>(images[i].bytes.data()),
               static_cast<std::streamsize>(images[i].bytes.size()));
}

inline void expect_compiles(const std::vector<CaseProgram>& list, const Target& target) {
  std::vector<cuda::Program> programs;
  for (const CaseProgram& entry : list) {
    EXPECT_LE(entry.program.shared_bytes, target.shared_bytes) << entry.program.task << ", case " << entry.case_name;
    programs.push_back(entry.program);
  }
  jit::Options options;
  options.cache = &test_cache();
  std::vector<jit::Image> images;
  try {
    images = jit::build(programs, target.architecture(), nullptr, options);
  } catch (const Error& error) {
    FAIL() << target.name << ": " << error.what();
  }
  dump_images(images);
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::string what =
        target.name + ": " + list[i].program.task + ", case " + list[i].case_name + "\n" + images[i].log;
    EXPECT_FALSE(images[i].bytes.empty()) << what;
    EXPECT_EQ(images[i].log.find("warning"), std::string::npos) << what;
    EXPECT_TRUE(list[i].program.may_spill || spilled_bytes(images[i].log) == 0) << what;
    EXPECT_FALSE(serializes_products(images[i].log)) << what;
  }
}

}  // namespace cermet
