// What tests of the pipeline share: models, prompts and options of a run, and the files that it leaves.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "quant/pipeline.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet::test {

namespace fs = std::filesystem;

inline std::vector<std::vector<std::int32_t>> prompts_of(std::int64_t vocabulary, std::size_t count,
                                                         std::size_t length) {
  std::vector<std::vector<std::int32_t>> prompts(count);
  std::uint32_t state = 1;
  for (std::vector<std::int32_t>& prompt : prompts)
    for (std::size_t i = 0; i < length; ++i) {
      state = state * 1664525u + 1013904223u;
      prompt.push_back(static_cast<std::int32_t>((state >> 8) % static_cast<std::uint32_t>(vocabulary)));
    }
  return prompts;
}

inline QuantizeOptions options_for(const fs::path& model, const fs::path& out) {
  QuantizeOptions options;
  options.model = model;
  options.out = out;
  options.calibration = prompts_of(load_config(model).vocab_size, 10, 24);
  options.threads = 2;
  options.every_scheme = false;
  return options;
}

/// Name and bytes of every file but the state.
inline std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().filename() != "state.json") files[entry.path().filename().string()] = content_of(entry.path());
  return files;
}

}  // namespace cermet::test
