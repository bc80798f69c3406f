// Faults that tests put into a linked walk: another body in place of one of its launches.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/runtime/super_kernel/walked_step.hpp"

namespace cermet {

/// A launch whose body streams no weights and leaves no numbers to other items, after the first one.
inline std::size_t seeded_launch(const Step& step) {
  const auto found = std::ranges::find_if(
      step.programs, [&](const cuda::Program& p) { return !p.walk && &p != &step.programs.front(); });
  EXPECT_NE(found, step.programs.end());
  return static_cast<std::size_t>(found - step.programs.begin());
}

/// Gives a program a body of its own: what `static __device__ run(const Params&, uint32_t item, Team team, char* smem)`
/// does.
inline void seed_body(cuda::Program& program, const std::string& name, const std::string& body) {
  program.prelude = fmt::format(
      "namespace {} {{\nstruct Task {{\n  struct Params {{\n    unsigned words[4];\n  }};\n  template <class Team>\n"
      "  static CERMET_DEVICE void run(const Params&, [[maybe_unused]] uint32_t item, [[maybe_unused]] Team team, "
      "[[maybe_unused]] char* smem) "
      "{{\n"
      "{}  }}\n}};\n}}  // namespace {}\n",
      name, body, name);
  program.task = name + "::Task";
}

}  // namespace cermet
