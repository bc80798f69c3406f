// Bodies of tasks know their team and nothing of the block, the grid or other tasks: only then can they be linked with
// others.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "kernel/cuda/sources.hpp"

namespace cermet {
namespace {

/// What a body must not say. Shared memory is what its caller hands in.
constexpr std::array<std::string_view, 9> forbidden{"threadIdx",     "blockIdx",      "blockDim",
                                                    "gridDim",       "__syncthreads", "cooperative",
                                                    "named_barrier", "bar.sync",      "__shared__"};

/// Files that implement teams and the entry of tasks.
constexpr std::array<std::string_view, 5> implement{"team.cuh", "entry.cuh", "overlap.cuh", "walk.cuh",
                                                    "ptx/barrier.cuh"};

/// "file: line N: word" for each use in a text, comments included.
std::vector<std::string> uses_in(std::string_view file, std::string_view text) {
  std::vector<std::string> found;
  for (const std::string_view word : forbidden)
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
      found.push_back(fmt::format("{}: line {}: {}", file,
                                  1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'),
                                  word));
  return found;
}

TEST(Teams, AUseIsFound) {
  EXPECT_EQ(uses_in("a.cuh", "int a;\nint b = threadIdx.x;\n"), (std::vector<std::string>{"a.cuh: line 2: threadIdx"}));
  EXPECT_TRUE(uses_in("a.cuh", "team.sync();").empty());
}

TEST(Teams, BodiesKnowNothingOfTheBlockAndTheGrid) {
  constexpr std::string_view folder = "kernel/cuda/device/";
  std::vector<std::string> found;
  std::size_t files = 0;
  for (const cuda::SourceHeader& header : cuda::embedded_sources()) {
    std::string_view name = header.name;
    if (!name.starts_with(folder)) continue;
    name.remove_prefix(folder.size());
    if (std::ranges::find(implement, name) != implement.end()) continue;
    ++files;
    for (std::string& use : uses_in(name, header.text)) found.push_back(std::move(use));
  }
  EXPECT_GT(files, 90u);
  EXPECT_EQ(fmt::format("{}", fmt::join(found, "\n")), "");
}

/// Files that set up barriers which nothing has to end: a walk's own live as long as it does, and what else is here
/// never joins one (declines_walk).
constexpr std::array<std::string_view, 10> keep_barriers{"ptx/mbarrier.cuh",
                                                         "walk.cuh",
                                                         "limits/stream.cuh",
                                                         "attention/batched_short.cuh",
                                                         "attention/decode_cluster.cuh",
                                                         "attention/decode_tma.cuh",
                                                         "attention/prefill_tma.cuh",
                                                         "attention/prefill_wide_copy.cuh",
                                                         "rowwise/reduce_row.cuh",
                                                         "rowwise/group_norm_staged.cuh"};

/// Whether a text that sets up barriers in shared memory ends them, too.
bool ends_its_barriers(std::string_view text) {
  const auto has = [&](std::string_view word) { return text.find(word) != text.npos; };
  return (!has("mbarrier_init(") || has("end_barriers(")) && (!has("init_ring<") || has("end_ring<"));
}

TEST(Teams, ABarrierWithoutAnEndIsFound) {
  EXPECT_FALSE(ends_its_barriers("ptx::mbarrier_init(full, 1);"));
  EXPECT_TRUE(ends_its_barriers("ptx::mbarrier_init(full, 1); ptx::end_barriers(team, full, 1);"));
  EXPECT_FALSE(ends_its_barriers("init_ring<Body>(smem, at);"));
}

// Other tasks use the memory next, and the words of a barrier that was not ended may come back there.
TEST(Teams, TasksEndTheBarriersThatTheySetUp) {
  constexpr std::string_view folder = "kernel/cuda/device/";
  std::vector<std::string_view> found;
  int ending = 0;
  for (const cuda::SourceHeader& header : cuda::embedded_sources()) {
    std::string_view name = header.name;
    if (!name.starts_with(folder)) continue;
    name.remove_prefix(folder.size());
    if (std::ranges::find(keep_barriers, name) != keep_barriers.end()) continue;
    if (!ends_its_barriers(header.text)) found.push_back(name);
    if (std::string_view(header.text).find("ptx::end_barriers(") != std::string_view::npos) ++ending;
  }
  EXPECT_EQ(fmt::format("{}", fmt::join(found, ", ")), "");
  EXPECT_EQ(ending, 3) << "gemm/hopper.cuh, gemm/stream.cuh, gemv/pipeline.cuh";
}

}  // namespace
}  // namespace cermet
