// cermet launch: the processes of one run on this host.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"
#include "base/own_file.hpp"
#include "cli/verb.hpp"
#include "comm/launch.hpp"

namespace cermet::cli::launch_verb {
namespace {

/// Every verb of the command line, by its name alone.
bool is_verb(const std::string& word) {
  static const std::vector<std::string_view> verbs{
#define X(name) #name,
#include "cli/verbs.inc"
#undef X
  };
  std::string name = word;
  std::ranges::replace(name, '-', '_');
  return std::ranges::any_of(
      verbs, [&](std::string_view verb) { return verb == name || verb.substr(0, verb.find('_')) == word; });
}

void launch(Console& console, comm::LaunchOptions options) {
  require(!options.command.empty(), "COMMAND: expected a verb of cermet or a program after --, found nothing");
  if (is_verb(options.command[0])) options.command.insert(options.command.begin(), own_file().string());
  console.flush();
  const comm::LaunchResult result = comm::launch(options);
  if (result.passed_on != 0) {
    if (!result.reported)
      console.note(fmt::format("cermet: error: the run was stopped by signal {} ({})\n", result.passed_on,
                               strsignal(result.passed_on)));
    std::exit(128 + result.passed_on);
  }
  if (result.rank < 0) return;
  // Rank 0 has said why, also as JSON; a second value would break what reads it.
  if (result.reported && result.rank == 0) std::exit(result.code);
  const std::string how = result.signal
                              ? fmt::format("was killed by signal {} ({})", result.signal, strsignal(result.signal))
                              : fmt::format("ended with exit code {}", result.code);
  if (result.reported) {
    print_diagnostic("error", fmt::format("rank {} {}", result.rank, how));
    std::exit(result.code > 0 ? result.code : 2);
  }
  fail(result.code == 130 ? Status::cancelled
       : result.code == 1 ? Status::internal
                          : Status::io,
       "rank {} {}", result.rank, how);
}

}  // namespace

Verb verb() {
  return {"launch", "run a command as several processes that communicate",
          "  cermet launch -n 2 -- bench comm\n"
          "  cermet launch -n 4 -- bench comm --check --json\n"
          "  cermet launch -n 2 -- python3 train.py",
          [](Parser& parser) -> Action {
            const auto options = std::make_shared<comm::LaunchOptions>();
            parser.option("-n,--ranks", options->ranks, "number of processes").required().range(1, 1024);
            parser
                .option("--grace <SECONDS>", options->grace,
                        "seconds that the others have to end by themselves once one has failed")
                .range(0.0, 60.0)
                .show_default();
            parser.option("COMMAND", options->command, "after --: a verb of cermet with its options, or a program")
                .required();
            return [options](Console& console) { launch(console, *options); };
          }};
}

}  // namespace cermet::cli::launch_verb
