// A verb of the command line: one file each, listed in verbs.inc.
#pragma once

#include <functional>
#include <string_view>

#include "cli/ui/console.hpp"
#include "cli/ui/parser.hpp"

namespace cermet::cli {

/// What a verb does once its options are parsed. Throws Error for a user's mistake.
using Action = std::function<void(Console&)>;

struct Verb {
  std::string_view name;                   ///< "run"; a group and a verb of it where it has a space: "bench op"
  std::string_view summary;                ///< a phrase of at most 60 characters that stands alone
  std::string_view example;                ///< command lines that work, one a line, shown by --help
  std::function<Action(Parser&)> options;  ///< declares options and returns what runs with their values; --json and
                                           ///< --quiet are declared for every verb
  bool is_internal = false;                ///< for the program's own use: no help lists it
};

}  // namespace cermet::cli
