#include "base/env.hpp"
#include "base/env_check.hpp"

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
  constexpr std::array<std::string_view, 6> of_torchrun{"RANK",        "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                                        "MASTER_ADDR", "MASTER_PORT"};
  return std::ranges::find(of_torchrun, name) != of_torchrun.end() || name.starts_with("OMPI_") ||
         name.starts_with("PMI") || name.starts_with("SLURM_");
}

TEST(Env, TableIsDocumented) {
  for (const env::Variable& variable : env::all()) {
    EXPECT_TRUE(variable.name.starts_with("CERMET_") || is_of_launcher(variable.name)) << variable.name;
    EXPECT_FALSE(variable.meaning.empty()) << variable.name;
    EXPECT_TRUE(variable.is_set || variable.value == variable.fallback) << variable.name;
  }
  EXPECT_EQ(&env::value(env::Name::CERMET_THREADS),
            &env::all()[static_cast<std::size_t>(env::Name::CERMET_THREADS)].value);
}

/// Reads CERMET_THREADS with this value in a fresh process, because the table is read once; exits with 7 and the
/// message where that throws.
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
  EXPECT_EXIT(read_threads("two"), testing::ExitedWithCode(7),
              "environment variable CERMET_THREADS: expected a non-negative integer, found 'two'");
  EXPECT_EXIT(read_threads("-1"), testing::ExitedWithCode(7), "found '-1'");
  EXPECT_EXIT(read_threads(""), testing::ExitedWithCode(7), "found ''");
  EXPECT_EXIT(read_threads("4x"), testing::ExitedWithCode(7), "found '4x'");
  EXPECT_EXIT(read_threads("99999999999999999999"), testing::ExitedWithCode(7), "found '99999999999999999999'");
}

/// Exits with what is said of this variable: 7 where it is refused.
[[noreturn]] void check_environment(const char* name, const char* text) {
  setenv(name, text, 1);
  try {
    env::check();
    for (const std::string& sentence : env::unknown()) std::fputs(sentence.c_str(), stderr);
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::exit(7);
  }
  std::exit(0);
}

TEST(EnvDeathTest, ValuesThatNoUseTakesAreRefused) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto refused = testing::ExitedWithCode(7), taken = testing::ExitedWithCode(0);
  EXPECT_EXIT(check_environment("CERMET_LOG", "verbose"), refused,
              "environment variable CERMET_LOG: expected trace, debug, info, warn, error, off, found \"verbose\"");
  EXPECT_EXIT(check_environment("CERMET_LOG", "inof"), refused, "did you mean info\\?");
  EXPECT_EXIT(check_environment("CERMET_LOG", "debug"), taken, "^$");
  EXPECT_EXIT(check_environment("CERMET_AMX_PRODUCTS", "yes"), refused,
              "CERMET_AMX_PRODUCTS: expected auto, on, off, found \"yes\"");
  EXPECT_EXIT(check_environment("CERMET_COMM_BESIDE", "2"), refused, "CERMET_COMM_BESIDE: expected 0, 1, found \"2\"");
  EXPECT_EXIT(check_environment("CERMET_CACHE_BYTES", "2G"), refused,
              "CERMET_CACHE_BYTES: expected a non-negative integer, found '2G'");
  EXPECT_EXIT(check_environment("CERMET_THREADS", "1025"), refused,
              "CERMET_THREADS: expected at most 1024, found 1025");
}

TEST(EnvDeathTest, NamesThatAreNoneOfOursAreWarnedOf) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto taken = testing::ExitedWithCode(0);
  EXPECT_EXIT(check_environment("CERMET_THREAD", "1"), taken,
              "CERMET_THREAD: no such variable, so it changes nothing; did you mean CERMET_THREADS\\?$");
  EXPECT_EXIT(check_environment("CERMET_FAVOURITE_COLOUR", "1"), taken,
              "CERMET_FAVOURITE_COLOUR: no such variable.*; `cermet env` lists them$");
  EXPECT_EXIT(check_environment("CERMET_APPROVE", "0"), taken, "^$") << "of the tests";
  EXPECT_EXIT(check_environment("OTHER_THREAD", "1"), taken, "^$");
}

}  // namespace
}  // namespace cermet
