#include "cli/ui/command_line.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "cermet/cermet.h"
#include "cli/ui/help_text.hpp"
#include "cli/ui/parse_error.hpp"
#include "cli/ui/suggest.hpp"

namespace cermet::cli {
namespace {

const std::string json_flag = "--json", quiet_flag = "--quiet", color_option = "--color";

/// The subcommand of this name, or null.
CLI::App* find_subcommand(CLI::App& app, const std::string& name) {
  const auto found = app.get_subcommands([&](CLI::App* sub) { return sub->get_name() == name; });
  return found.empty() ? nullptr : found.front();
}

/// A verb with its parser and, once declared, its action.
struct Entry {
  CLI::App* app = nullptr;
  Action action;
};

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    lines.emplace_back(line);
    begin = end + 1;
  }
  return lines;
}

CommandDoc described(std::string_view name, std::string_view summary, std::string_view heading) {
  CommandDoc command;
  command.name = name;
  command.summary = summary;
  command.heading = heading;
  return command;
}

}  // namespace

struct CommandLine::Parts {
  CLI::App app{"", "cermet"};
  std::vector<Entry> entries;
  std::vector<std::pair<const CLI::App*, CommandDoc*>> docs;
  std::string heading, color = "auto";
  bool json = false, quiet = false;

  CommandDoc& doc_of(const CLI::App& of) {
    for (const auto& [each, doc] : docs)
      if (each == &of) return *doc;
    CERMET_ASSERT(false);
    return *docs.front().second;
  }
  const CommandDoc& parsed() {
    const CLI::App* at = &app;
    while (!at->get_subcommands().empty()) at = at->get_subcommands().front();
    return doc_of(*at);
  }
  bool is_verb(const CLI::App& of) const { return std::ranges::find(entries, &of, &Entry::app) != entries.end(); }

  /// What every command takes; `with_results`: --json, too.
  void declare_general(CLI::App& of, CommandDoc& doc, bool with_results) {
    of.set_help_flag("-h,--help", "");
    of.set_help_all_flag("--help-all", "");
    of.formatter_fn([this](const CLI::App* which, const std::string&, CLI::AppFormatMode mode) {
      return help_text(doc_of(*which), {help_width(), mode == CLI::AppFormatMode::All, is_coloured(STDOUT_FILENO)});
    });
    const auto add = [&](std::vector<std::string> names, std::string metavar, std::string help) -> OptionDoc& {
      OptionDoc option;
      option.names = std::move(names);
      option.metavar = std::move(metavar);
      option.help = std::move(help);
      option.section = "General";
      return doc.options.emplace_back(std::move(option));
    };
    if (with_results) {
      of.add_flag(json_flag, json, "");
      add({json_flag}, "", "print one JSON value on standard output");
    }
    of.add_flag(quiet_flag, quiet, "");
    add({quiet_flag}, "", "no progress bars, summaries and notes on standard error");
    of.add_option(color_option, color, "")->check([](const std::string& text) {
      return text == "auto" || text == "always" || text == "never"
                 ? std::string()
                 : "expected auto, always or never, found " + quote(text);
    });
    OptionDoc& shown = add({color_option}, "<WHEN>", "colour help and messages; NO_COLOR switches it off, too");
    shown.values = {"auto", "always", "never"};
    shown.fallback = "auto";
    add({"-h", "--help"}, "", "print this help");
    if (std::ranges::any_of(doc.options, &OptionDoc::is_advanced))
      add({"--help-all"}, "", "print it with advanced options");
  }

  /// CLI11 would call an unknown command an unexpected argument. A group's verbs come after its name.
  void check_command(CLI::App& at_app, int argc, char** argv, int at = 1) {
    if (at < argc && argv[at][0] == '-') return;
    if (at >= argc && at == 1) return;  // the whole help is the answer
    if (at_app.get_subcommands([](CLI::App*) { return true; }).empty()) return;
    CLI::App* const found = at < argc ? find_subcommand(at_app, argv[at]) : nullptr;
    if (found && is_verb(at_app))
      for (CLI::Option* option : at_app.get_options()) option->required(false);  // what runs is a verb of its group
    if (found) return check_command(*found, argc, argv, at + 1);
    if (is_verb(at_app)) return;  // whose arguments these are
    const CommandDoc& doc = doc_of(at_app);
    const std::string help = spoken_name(doc) + " --help";
    std::vector<std::string> names;
    for (const CommandDoc* member : commands().members(doc.name))
      names.push_back(member->name.substr(member->name.find(' ') + 1));
    if (at >= argc)
      fail(Status::invalid_argument, "{}: expected a command ({}), found nothing (see `{}`)", doc.name,
           fmt::join(names, ", "), help);
    const std::string typed = is_plain(argv[at]) ? std::string(argv[at]) : quote(argv[at]);
    std::string hint = command_hint(argv[at], doc.name);
    if (hint.empty() && !doc.name.empty()) hint = fmt::format("; expected {}", fmt::join(names, ", "));
    fail(Status::invalid_argument, "no such command: {}{}{} (see `{}`)", doc.name.empty() ? "" : doc.name + " ", typed,
         hint, help);
  }
};

CommandLine::CommandLine() : parts_(std::make_unique<Parts>()) {
  CommandDoc& doc = commands().add(described("", "Cermet: transformers from operator to running model.", ""));
  doc.is_verb = false;
  parts_->docs.emplace_back(&parts_->app, &doc);
  doc.examples = {"cermet run models/demo -p \"The PostgreSQL server\"", "cermet run FILE.onnx --input x=x.npy",
                  "cermet help run"};
  parts_->app.set_version_flag("-V,--version", std::string("cermet ") + cermet_version());
  parts_->app.require_subcommand(0, 1);
  parts_->declare_general(parts_->app, doc, false);
  OptionDoc version;
  version.names = {"-V", "--version"};
  version.help = "print the version";
  version.section = "General";
  doc.options.push_back(std::move(version));
}

CommandLine::~CommandLine() = default;

void CommandLine::heading(std::string_view text) { parts_->heading = text; }

void CommandLine::group(std::string_view name, std::string_view summary) {
  CLI::App* const made = parts_->app.add_subcommand(std::string(name), "");
  made->require_subcommand(1);
  CommandDoc& doc = commands().add(described(name, summary, parts_->heading));
  doc.is_verb = false;
  parts_->docs.emplace_back(made, &doc);
  parts_->declare_general(*made, doc, false);
}

void CommandLine::declare(Verb verb) {
  const std::size_t space = verb.name.find(' ');
  CLI::App& parent = space == std::string_view::npos
                         ? parts_->app
                         : *parts_->app.get_subcommand(std::string(verb.name.substr(0, space)));
  CLI::App* const app = parent.add_subcommand(std::string(verb.name.substr(verb.name.find(' ') + 1)), "");
  CommandDoc& doc = commands().add(described(verb.name, verb.summary, parts_->heading));
  doc.examples = lines_of(verb.example);
  doc.is_internal = verb.is_internal;
  parts_->docs.emplace_back(app, &doc);
  Parser parser(*app, doc);
  Action action = verb.options(parser);
  parts_->declare_general(*app, doc, true);
  parts_->entries.push_back({app, std::move(action)});
}

Command CommandLine::parse(int argc, char** argv) {
  Parts& parts = *parts_;
  parts.check_command(parts.app, argc, argv);
  try {
    parts.app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return {.action = {}, .text = parts.app.help()};
  } catch (const CLI::CallForAllHelp&) {
    return {.action = {}, .text = parts.app.help("", CLI::AppFormatMode::All)};
  } catch (const CLI::CallForVersion&) {
    return {.action = {}, .text = parts.app.version() + "\n"};
  } catch (const CLI::ParseError& error) {
    fail(Status::invalid_argument, "{}", parse_error_text(parts.app, parts.parsed(), error, {argv + 1, argv + argc}));
  }
  for (Entry& entry : parts.entries)
    if (entry.app->parsed() && entry.app->get_subcommands().empty())
      return {.action = entry.action, .text = {}, .json = parts.json};
  return {.action = {}, .text = parts.app.help()};
}

bool read_early_options(int argc, char** argv) {
  bool json = false, quiet = false;
  std::string_view color = "auto";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word == "--") break;  // `launch`: what follows is another command's
    json |= word == json_flag;
    quiet |= word == quiet_flag;
    if (word == color_option && i + 1 < argc) color = argv[i + 1];
    if (word.starts_with(color_option + "=")) color = word.substr(color_option.size() + 1);
  }
  set_console({quiet, color == "always" ? Colour::always : color == "never" ? Colour::never : Colour::automatic});
  return json;
}

}  // namespace cermet::cli
