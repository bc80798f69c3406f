// cermet man-page: the manual page, which the build writes as cermet.1.
#include "base/env.hpp"
#include "cermet/cermet.h"
#include "cli/ui/help_text.hpp"
#include "cli/verb.hpp"

namespace cermet::cli::man_page_verb {
namespace {

/// Text that roff prints as it is.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') out += "\\e";
    else if (c == '-') out += "\\-";
    else if (c == '\'' || (c == '.' && (out.empty() || out.back() == '\n'))) out += std::string("\\&") + c;
    else out += c;
  }
  return out;
}

std::string title_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

std::string option_text(const OptionDoc& option) {
  std::string names;
  for (const std::string& name : option.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", roff(name));
  if (option.is_positional) names = fmt::format("\\fI{}\\fR", roff(option.metavar));
  else if (!option.metavar.empty()) names += fmt::format(" \\fI{}\\fR", roff(option.metavar));
  std::string help = option.help;
  if (!option.fallback.empty()) help += fmt::format(" [default: {}]", option.fallback);
  if (!option.values.empty()) help += fmt::format(" [possible values: {}]", fmt::join(option.values, ", "));
  return fmt::format(".TP\n{}\n{}\n", names, roff(help));
}

std::string command_text(const CommandDoc& command) {
  std::string text = fmt::format(".SS {}\n{}.\n", roff(spoken_name(command)), roff(command.summary));
  if (!command.is_verb) return text;
  text += fmt::format(".PP\n{}\n", roff(usage_of(command)));
  if (!command.examples.empty()) {
    text += ".PP\n.nf\n";
    for (const std::string& example : command.examples) text += roff(example) + "\n";
    text += ".fi\n";
  }
  for (const OptionDoc& option : command.options)
    if (option.section != "General") text += option_text(option);
  return text;
}

std::string page() {
  std::string text = fmt::format(
      ".\\\" Written by `cermet man-page`.\n.TH CERMET 1 \"\" \"cermet {}\" \"User Commands\"\n"
      ".SH NAME\ncermet \\- transformers from operator to running model\n"
      ".SH SYNOPSIS\n.B cermet\n\\fICOMMAND\\fR [\\fIOPTIONS\\fR] [\\fIARGUMENTS\\fR]\n"
      ".SH DESCRIPTION\nCermet runs language models (a folder with config.json and safetensors files) and ONNX models "
      "on CPUs and NVIDIA GPUs.\n",
      cermet_version());
  std::string heading;
  for (const auto& command : commands().all()) {
    if (command->is_internal || command->name.empty()) continue;
    if (command->heading != heading) text += fmt::format(".SH {}\n", title_case(heading = command->heading));
    text += command_text(*command);
  }
  text += ".SH OPTIONS OF EVERY COMMAND\n";
  for (const OptionDoc& option : commands().find("version")->options) text += option_text(option);
  text += ".SH ENVIRONMENT\n";
  for (const env::Variable& variable : env::all())
    text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(variable.name), roff(variable.meaning));
  text += ".TP\n\\fBNO_COLOR\\fR\nany value: messages and help are not coloured\n";
  text += ".SH EXIT STATUS\n.nf\n" + roff(exit_codes_text()) + ".fi\n";
  return text;
}

}  // namespace

Verb verb() {
  return {"man-page", "print the manual page", "  cermet man-page > cermet.1",
          [](Parser&) -> Action {
            return [](Console& console) {
              if (console.json()) console.write_json({{"page", page()}});
              else console.write(page());
            };
          },
          true};
}

}  // namespace cermet::cli::man_page_verb
