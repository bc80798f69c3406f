// The command line: finds the verb, runs it, and turns what it throws into one line and an exit code.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "base/env_check.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cermet/cermet.h"
#include "cli/interrupt.hpp"
#include "cli/model_options.hpp"
#include "cli/parse_error.hpp"
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
constexpr std::string_view exit_codes =
    "Exit codes: 0 done; 1 internal error; 2 the input is at fault (one line on standard error says what was expected and found; with --json also\n"
    "{\"error\": ...} on standard output); 130 stopped by Ctrl-C.";

std::vector<Verb> all_verbs() {
  return {
#define X(name) name##_verb::verb(),
#include "cli/verbs.inc"
#undef X
  };
}

/// The subcommand of this name, or null.
const CLI::App* find_subcommand(const CLI::App& app, std::string_view name) {
  const auto found = app.get_subcommands([&](const CLI::App* sub) { return sub->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

/// A verb with its parser and, once declared, its action.
struct Entry {
  Verb verb;
  CLI::App* app = nullptr;
  Action action;
};

struct CommandLine {
  CLI::App app{"Cermet: transformers from operator to running model.", "cermet"};
  std::vector<Entry> entries;
  bool json = false;

  CommandLine() {
    app.set_version_flag("--version", std::string("cermet ") + cermet_version());
    app.require_subcommand(0, 1);
    app.footer("`cermet VERB --help` describes a verb, with examples.\n\n" + std::string(exit_codes));
    for (Verb& verb : all_verbs()) declare(std::move(verb));
  }

  /// The group's parser for "bench op", the top one otherwise. A group may be a verb itself, as `explain` is.
  CLI::App& parent_of(const Verb& verb) {
    const std::size_t space = verb.name.find(' ');
    if (space == std::string_view::npos) return app;
    const std::string group(verb.name.substr(0, space));
    if (find_subcommand(app, group)) return *app.get_subcommand(group);
    CLI::App* made = app.add_subcommand(group, "");
    made->require_subcommand(1);
    return *made;
  }

  bool is_verb(const CLI::App& of) const { return std::ranges::find(entries, &of, &Entry::app) != entries.end(); }

  void declare(Verb verb) {
    CLI::App& parent = parent_of(verb);
    const std::string name(verb.name.substr(verb.name.find(' ') + 1));
    CLI::App* app_of_verb = parent.add_subcommand(name, std::string(verb.summary));
    app_of_verb->add_flag("--json", json, "print one JSON value on standard output");
    app_of_verb->footer("Example:\n" + std::string(verb.example) + "\n\n" + std::string(exit_codes));
    if (verb.is_internal) app_of_verb->group("");
    else if (&parent != &app) parent.description(parent.get_description() + (parent.get_description().empty() ? "" : "; ") + std::string(verb.summary));
    Parser parser(*app_of_verb);
    Action action = verb.options(parser);
    entries.push_back({std::move(verb), app_of_verb, std::move(action)});
  }
};

int report(int code, const std::string& message, bool json) {
  const std::string line = one_line(message);
  fmt::print(stderr, "cermet: error: {}\n", line);
  if (json) fmt::print("{}\n", Json{{"error", line}}.dump());
  return code;
}

int exit_code_of(Status status) {
  if (status == Status::cancelled) return exit_interrupted;
  return status == Status::internal ? exit_internal : exit_user;
}

int report_parse_error(const CommandLine& line, const CLI::ParseError& error, bool json) {
  if (error.get_exit_code() == 0) return line.app.exit(error);  // --help and --version
  return report(exit_user, text_of(line.app, error), json);
}

/// CLI11 would call an unknown verb an unexpected argument; the reader wants to know which verbs there are. A group's verbs come after its name.
void check_verb(const CommandLine& line, CLI::App& app, int argc, char** argv, int at = 1) {
  if (at < argc && argv[at][0] == '-') return;
  if (at >= argc && at == 1) return;  // the whole help is the answer
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({}))
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  if (names.empty()) return;
  CLI::App* const found = at < argc && find_subcommand(app, argv[at]) ? app.get_subcommand(argv[at]) : nullptr;
  if (found && line.is_verb(app))
    for (CLI::Option* option : app.get_options()) option->required(false);  // what runs is a verb of its group
  if (found) return check_verb(line, *found, argc, argv, at + 1);
  if (line.is_verb(app)) return;  // whose arguments these are
  fail(Status::invalid_argument, "verb: expected one of {}, found {}", fmt::join(names, ", "), at < argc ? quote(argv[at]) : "nothing");
}

int run(CommandLine& line, int argc, char** argv) {
  check_verb(line, line.app, argc, argv);
  line.app.parse(argc, argv);
  Console console(line.json);
  for (const Entry& entry : line.entries) {
    if (!entry.app->parsed() || !entry.app->get_subcommands().empty()) continue;
    catch_interrupts(line.json);
    env::check();
    for (const std::string& sentence : env::unknown()) log().warn("{}", sentence);
    try {
      entry.action(console);
    } catch (const EndOfRank&) {
    }
    console.flush();
    return exit_ok;
  }
  console.write(line.app.help());
  console.flush();
  return exit_ok;
}

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that outgrows `ulimit -f` makes the write fail, which is reported, instead of raising a signal
  bool json = false;              // known before parsing, so that a mistake in the other options is reported the same way
  for (int i = 1; i < argc; ++i) json |= std::string_view(argv[i]) == "--json";
  try {
    CommandLine line;
    try {
      return run(line, argc, argv);
    } catch (const CLI::ParseError& error) {
      return report_parse_error(line, error, json);
    }
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
