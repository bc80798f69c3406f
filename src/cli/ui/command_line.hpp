// All verbs with their parsers. CLI11 parses the command line.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/verb.hpp"

namespace cermet::cli {

/// What a command line asks for.
struct Command {
  Action action;  ///< of the verb; empty where only `text` is wanted: --help, --version
  std::string text;
  bool json = false;
};

class CommandLine {
 public:
  CommandLine();
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  /// Verbs and groups that follow stand under this heading.
  void heading(std::string_view text);
  /// A group that is no verb itself.
  void group(std::string_view name, std::string_view summary);
  void declare(Verb verb);
  /// Throws Error for a mistake: what was expected, what was found.
  Command parse(int argc, char** argv);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// --json, --quiet and --color, which decide how a mistake in the other options is reported. Returns whether --json is
/// there.
bool read_early_options(int argc, char** argv);

}  // namespace cermet::cli
