// Runs the built command line as a user would, and what to expect of every mistake: one line, exit code 2, at once.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tests/model/scratch.hpp"

namespace cermet::test {

inline const std::string tiny = "tests/model/data/reference/llama-gqa-f32";  // has no tokenizer.json

struct CommandResult {
  int code = -1;  ///< exit code; 128 + signal where it was killed
  std::string out, err;
  double seconds = 0;

  nlohmann::json json() const { return nlohmann::json::parse(out); }
};

/// Runs `cermet ARGUMENTS` in a shell in the source's folder, with `input` on standard input. Redirections in
/// `arguments` win. `before` may set environment variables: "CERMET_THREADS=1". What was measured on this machine is
/// not asked, unless the test has a cache folder of its own.
inline CommandResult run_cermet(const std::string& arguments, std::string_view input = "",
                                const std::string& before = "") {
  const ScratchFolder folder;
  const auto in = folder.file("in", input);
  const std::string tuning =
      before.find("CERMET_CACHE_DIR=") == std::string::npos ? "CERMET_TUNING=off " : "CERMET_TUNING= ";
  const std::string command = "cd " CERMET_SOURCE_DIR "; " + tuning + before + " " CERMET_BINARY_DIR "/bin/cermet <" +
                              in.string() + " >" + (folder / "out").string() + " 2>" + (folder / "err").string() + " " +
                              arguments;
  const auto begin = std::chrono::steady_clock::now();
  const int status = std::system(command.c_str());
  CommandResult result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = content_of(folder / "out");
  result.err = content_of(folder / "err");
  return result;
}

/// Expects a user's mistake to be reported: exit code 2 within a second (ten under a sanitizer), nothing on standard
/// output, and one line on standard error that contains every fragment. The same command with --json also prints
/// {"error": ...}.
inline void expect_mistake(const std::string& arguments, std::initializer_list<std::string_view> fragments,
                           std::string_view input = "") {
  const CommandResult plain = run_cermet(arguments, input);
  EXPECT_EQ(plain.code, 2) << arguments << "\n" << plain.err;
  EXPECT_EQ(plain.out, "") << arguments;
  EXPECT_EQ(plain.err.rfind("cermet: error: ", 0), 0u) << arguments << "\n" << plain.err;
  EXPECT_EQ(plain.err.find('\n'), plain.err.size() - 1) << arguments << "\n" << plain.err;
  for (const std::string_view fragment : fragments)
    EXPECT_NE(plain.err.find(fragment), std::string::npos)
        << arguments << "\nexpected \"" << fragment << "\" in: " << plain.err;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr double longest = 10;
#else
  constexpr double longest = 1;
#endif
  EXPECT_LT(plain.seconds, longest) << arguments;
  const std::size_t program = arguments.find(" -- ");  // what comes after is another program's
  const CommandResult json = run_cermet(
      arguments.substr(0, program) + " --json" + (program == std::string::npos ? "" : arguments.substr(program)),
      input);
  EXPECT_EQ(json.code, 2) << arguments;
  const nlohmann::json value = nlohmann::json::parse(json.out, nullptr, false);
  ASSERT_TRUE(value.is_object() && value.contains("error")) << arguments << "\n" << json.out;
  EXPECT_EQ("cermet: error: " + value["error"].get<std::string>() + "\n", json.err) << arguments;
}

}  // namespace cermet::test
