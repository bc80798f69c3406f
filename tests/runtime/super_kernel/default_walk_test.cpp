// Regions that are linked on a GPU without an option that asks for it: branches side by side, which must give the same
// bits in less time.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "tests/runtime/super_kernel/walked_step.hpp"

namespace cermet {
namespace {

/// Of one of many runs in a row.
double seconds_of_runs(Step& step) {
  constexpr int runs = 500;
  const auto begin = std::chrono::steady_clock::now();
  for (int run = 0; run < runs; ++run) step.session.run();
  step.context.stream()->synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / runs;
}

TEST_F(DeviceStep, BranchesAreLinkedByDefaultWhereThatIsFaster) {
  for (const int branches : {1, 2, 3, 4}) {
    SCOPED_TRACE(fmt::format("{} branches", branches));
    const std::string text = branches_step(branches, 4, 4096);
    Step plain("cuda", "", "", text), marked("cuda", "decode", "", text);
    const std::vector<std::byte> expected = plain.run();
    for (int run = 0; run < 100; ++run) ASSERT_EQ(marked.run(), expected) << "run " << run;
    const std::size_t linked = marked.session.executable().linked_regions().size();
    EXPECT_EQ(linked, branches >= 4 ? 1u : 0u);
    const std::array forms{&plain, &marked};
    std::array<double, 2> least{1, 1};
    for (std::size_t turn = 0; turn < 12; ++turn) {
      const std::size_t form = (turn + turn / 2) % 2;  // plain, marked, marked, plain, ..
      least[form] = std::min(least[form], seconds_of_runs(*forms[form]));
    }
    RecordProperty(fmt::format("us_{}", branches), fmt::format("{:.2f} {:.2f}", least[0] * 1e6, least[1] * 1e6));
    EXPECT_LE(least[1], least[0] * (linked > 0 ? 1.0 : 1.1))
        << "what is not linked may take longer with its values elsewhere in memory";
  }
}

}  // namespace
}  // namespace cermet
