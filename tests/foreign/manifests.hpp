// A manifest that is right, and changes to it.
#pragma once

#include <string>

#include "foreign/kernel.hpp"
#include "foreign/manifest.hpp"
#include "tests/model/scratch.hpp"

namespace cermet::test {

/// Two element types, an optional operand, a tile, every kind of expression.
inline const std::string good_manifest = R"json({
  "cermet_kernel": 1,
  "name": "test.rms_norm",
  "operator": "rms_norm",
  "code": {"kind": "ptx", "file": "k.ptx", "entry": "k", "architectures": ["compute_80"]},
  "types": {"T": ["f32", "bf16"]},
  "operands": {
    "x": {"type": "T", "dims": ["M...", "N"], "strides": "any", "align": 16},
    "weight": {"type": "T", "dims": ["N"], "optional": true}
  },
  "results": {"y": {"type": "T", "dims": ["M...", "N"]}},
  "attributes": {"eps": "any"},
  "tile": {"block": [128, 256], "rows": [1, 2]},
  "where": ["N % 8 == 0", "N <= 4096", "rows * block <= 256"],
  "parameters": [
    {"pointer": "x"}, {"i32": "M"}, {"pointer": "weight"}, {"f32": "eps / 2"}, {"pointer": "y"}, {"i64": "stride(x, 0)"
}, {"u32": "has(weight)"},
    {"pointer": "workspace"}, {"i32": "size(T) + rows"}, {"f64": "1 / N"}, {"u64": "N"}
  ],
  "grid": ["ceil_div(M, rows)", 2],
  "block": ["block", "rows"],
  "shared_bytes": "N * size(T)",
  "workspace_bytes": "M * 4"
})json";

inline const std::string small_ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n";

/// The manifest with one piece of text in place of another, which must be there.
inline std::string changed(const std::string& from, const std::string& to, std::string text = good_manifest) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("no '" + from + "' in the manifest");
  return text.replace(at, from.size(), to);
}

inline foreign::Manifest manifest_of(const std::string& text) {
  const ScratchFolder folder;
  return foreign::read_manifest(folder.file("m.json", text));
}

/// The kernel of a manifest whose code is small_ptx, without a gate.
struct TestKernel {
  ScratchFolder folder;
  Kernel kernel;

  explicit TestKernel(const std::string& text, const std::string& code = small_ptx, bool falls_back = true) {
    const foreign::Manifest manifest = foreign::read_manifest(folder.file("m.json", text));
    for (const std::string& file : manifest.files()) folder.file(file, code);
    kernel = foreign::make_kernel(manifest,
                                  std::make_shared<foreign::Code>(folder.path(), std::map<std::string, std::string>()),
                                  {.falls_back = falls_back});
  }
};

}  // namespace cermet::test
