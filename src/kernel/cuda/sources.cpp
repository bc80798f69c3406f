#include "kernel/cuda/sources.hpp"

#include <deque>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/env.hpp"
#include "base/error.hpp"

namespace cermet::cuda {

std::span<const SourceHeader> device_sources() {
  static const std::vector<SourceHeader> headers = [] {
    const std::string& tree = env::value(env::Name::CERMET_KERNEL_SOURCES);
    std::vector<SourceHeader> list(embedded_sources().begin(), embedded_sources().end());
    if (tree.empty()) return list;
    static std::deque<std::string> texts;
    for (SourceHeader& header : list) {
      std::ifstream file(tree + "/" + header.name);
      require(file.good(), "CERMET_KERNEL_SOURCES: expected {}/{}, found no such file", tree, header.name);
      texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
      header.text = texts.back().c_str();
    }
    return list;
  }();
  return headers;
}

}  // namespace cermet::cuda
