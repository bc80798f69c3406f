// The command line: finds the verb, runs it, and turns what it throws into one line and an exit code.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>

#include "base/env_check.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "cli/model_options.hpp"
#include "cli/ui/command_line.hpp"
#include "cli/ui/interrupt.hpp"
#include "cli/verb.hpp"

namespace cermet::cli {

#define X(name)           \
  namespace name##_verb { \
    Verb verb();          \
  }
#include "cli/verbs.inc"
#undef X

namespace {

enum ExitCode { exit_ok = 0, exit_internal = 1, exit_user = 2, exit_interrupted = 130 };

void declare_verbs(CommandLine& line) {
#define HEADING(text) line.heading(text);
#define GROUP(name, summary) line.group(name, summary);
#define X(name) line.declare(name##_verb::verb());
#include "cli/verbs.inc"
#undef X
}

int report(int code, const std::string& message, bool json) {
  const std::string line = one_line(message);
  print_diagnostic("error", line);
  if (json) fmt::print("{}\n", Json{{"error", line}}.dump());
  return code;
}

int exit_code_of(Status status) {
  if (status == Status::cancelled) return exit_interrupted;
  return status == Status::internal ? exit_internal : exit_user;
}

int run(CommandLine& line, int argc, char** argv) {
  const Command command = line.parse(argc, argv);
  Console console(command.json);
  if (!command.action) {
    console.write(command.text);
  } else {
    catch_interrupts(command.json);
    env::check();
    for (const std::string& sentence : env::unknown()) log().warn("{}", sentence);
    try {
      command.action(console);
    } catch (const EndOfRank&) {
    }
  }
  console.flush();
  return exit_ok;
}

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that outgrows `ulimit -f` makes the write fail, which is reported, instead
                                  // of raising a signal
  const bool json = read_early_options(argc, argv);
  try {
    CommandLine line;
    declare_verbs(line);
    return run(line, argc, argv);
  } catch (const Error& error) {
    return report(exit_code_of(error.status()), error.what(), json);
  } catch (const std::bad_alloc&) {
    return report(exit_user, "memory: expected room for what was asked, found none", json);
  } catch (const std::filesystem::filesystem_error& error) {
    return report(exit_user, fmt::format("{}: {}", error.path1().string(), error.code().message()), json);
  } catch (const std::exception& error) {
    return report(exit_internal, fmt::format("internal error: {}; please report it", error.what()), json);
  }
}

}  // namespace
}  // namespace cermet::cli

int main(int argc, char** argv) { return cermet::cli::main(argc, argv); }
