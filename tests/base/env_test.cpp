#include "base/env.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"

namespace cermet {
namespace {

/// What torchrun, Open MPI and others that start processes tell them; all other variables have our name before them.
bool is_of_launcher(std::string_view name) {
  constexpr std::array<std::string_view, 6> of_torchrun{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
  return std::ranges::find(of_torchrun, name) != of_torchrun.end() || name.starts_with("OMPI_") || name.starts_with("PMI") || name.starts_with("SLURM_");
}

TEST(Env, TableIsDocumented) {
  for (const env::Variable& variable : env::all()) {
    EXPECT_TRUE(variable.name.starts_with("CERMET_") || is_of_launcher(variable.name)) << variable.name;
    EXPECT_FALSE(variable.meaning.empty()) << variable.name;
    EXPECT_TRUE(variable.is_set || variable.value == variable.fallback) << variable.name;
  }
  EXPECT_EQ(&env::value(env::Name::CERMET_THREADS), &env::all()[static_cast<std::size_t>(env::Name::CERMET_THREADS)].value);
}

/// Reads CERMET_THREADS with this value in a fresh process, because the table is read once; exits with 7 and the message where that throws.
[[noreturn]] void read_threads(const char* text) {
  setenv("CERMET_THREADS", text, 1);
  try {
    std::fprintf(stderr, "read %ld", env::integer(env::Name::CERMET_THREADS));
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::exit(7);
  }
  std::exit(0);
}

TEST(EnvDeathTest, IntegersAreChecked) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(read_threads("12"), testing::ExitedWithCode(0), "read 12");
  EXPECT_EXIT(read_threads("two"), testing::ExitedWithCode(7), "environment variable CERMET_THREADS: expected a non-negative integer, found 'two'");
  EXPECT_EXIT(read_threads("-1"), testing::ExitedWithCode(7), "found '-1'");
  EXPECT_EXIT(read_threads(""), testing::ExitedWithCode(7), "found ''");
  EXPECT_EXIT(read_threads("4x"), testing::ExitedWithCode(7), "found '4x'");
  EXPECT_EXIT(read_threads("99999999999999999999"), testing::ExitedWithCode(7), "found '99999999999999999999'");
}

}  // namespace
}  // namespace cermet
