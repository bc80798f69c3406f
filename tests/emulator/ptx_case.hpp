// Small functions of PTX that tests run.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/emulator/emulated_device.hpp"

namespace cermet::emulator {

/// A function whose threads each store %r0 at their place of the result; %rd0 is the address of `input`, %r1 the
/// thread's number, and shared memory begins at `smem`.
struct PtxCase {
  std::string body;
  std::uint32_t threads = 32, blocks = 1, cluster = 1;
  std::vector<std::uint32_t> input = {};
  Mode mode = {};
  std::uint32_t shared_bytes = 4096;

  std::string text() const {
    return R"(
.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.visible .entry test(.param .u64 result, .param .u64 input)
{
  .reg .pred %p<8>;
  .reg .b16 %h<8>;
  .reg .b32 %r<32>;
  .reg .f32 %f<32>;
  .reg .b64 %rd<32>;
  ld.param.u64 %rd0, [input];
  mov.u32 %r1, %tid.x;
)" + body + R"(
  ld.param.u64 %rd30, [result];
  mov.u32 %r30, %ctaid.x;
  mov.u32 %r29, %ntid.x;
  mad.lo.s32 %r30, %r30, %r29, %r1;
  mul.wide.u32 %rd31, %r30, 4;
  add.s64 %rd30, %rd30, %rd31;
  st.global.u32 [%rd30], %r0;
  ret;
}
)";
  }

  /// What the threads stored; an error's text is thrown.
  std::vector<std::uint32_t> run() const {
    const std::unique_ptr<Program> program = decode(text(), "test");
    std::vector<std::uint32_t> result(std::size_t{threads} * blocks), copy = input;
    copy.resize(std::max<std::size_t>(copy.size(), 1));
    Memory memory;
    memory.add(result.data(), result.size() * 4);
    memory.add(copy.data(), copy.size() * 4);
    const void* const parameters[] = {result.data(), copy.data()};
    run_launch(*program, {.blocks = blocks, .threads = threads, .shared_bytes = shared_bytes, .cluster = cluster},
               std::as_bytes(std::span(parameters)), memory, mode);
    return result;
  }
  std::uint32_t first() const { return run().at(0); }
  std::string error() const {
    try {
      run();
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
};

}  // namespace cermet::emulator
