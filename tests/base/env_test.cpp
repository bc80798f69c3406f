#include "base/env.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"

namespace cermet {
namespace {

TEST(Env, TableIsDocumented) {
  for (const env::Variable& variable : env::all()) {
    EXPECT_EQ(variable.name.substr(0, 7), "CERMET_");
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
