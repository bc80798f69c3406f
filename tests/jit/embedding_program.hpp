// A program to compile with a toolchain that compiles nothing, and what that makes of it.
#pragma once

#include <string>

#include "jit/jit.hpp"

namespace cermet::jit {

inline cuda::Program program_of(const std::string& task, int threads = 256) {
  return {.header = "kernel/cuda/device/movement/embedding.cuh", .task = task, .threads = threads};
}

inline std::string text_of(const Image& image) {
  return {reinterpret_cast<const char*>(image.bytes.data()), image.bytes.size()};
}

}  // namespace cermet::jit
