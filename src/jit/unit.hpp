// One compilation: a generated source with its options, and the key under which its image is cached.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/cuda/toolchain.hpp"
#include "jit/jit.hpp"

namespace cermet::jit {

struct Unit {
  std::string name;  ///< for messages and the cache's listing
  std::string key;   ///< everything that determines the image, including the source
  std::function<cuda::CompileResult()> compile;
};

/// A task's type without the namespace that all share: "rms_norm::Task<rms_norm::Config{.hidden = 4096}>".
std::string display_name(std::string task);

/// A source compiled for an architecture ("sm_90a", "compute_90") with options beside the usual ones. The toolchain
/// must outlive the unit.
Unit source_unit(const cuda::Toolchain& toolchain, std::string name, std::string source,
                 const std::string& architecture, cuda::CompileRequest::Form form,
                 std::span<const std::string> options = {});

/// Images of units, in their order, from the cache or compiled in parallel. Throws the first unit's error of those that
/// fail.
std::vector<Image> build_units(std::span<const Unit> units, Report& report, const Options& options);

/// The same of LTO-IR, linked to a cubin for a native architecture. The last unit calls the others, which count as
/// programs. `report` may be null.
Image build_linked(const cuda::Toolchain& toolchain, std::string name, std::span<const Unit> units,
                   const std::string& architecture, Report* report, const Options& options);

/// Names of headers that a source includes, directly or not, sorted: those among the device headers.
std::vector<std::string> included_headers(const std::string& source);

}  // namespace cermet::jit
