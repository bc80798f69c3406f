// cermet completion: scripts that complete commands, options and values in a shell.
#include "cli/ui/completion_text.hpp"
#include "cli/verb.hpp"

namespace cermet::cli {

CompletionKind completion_kind(const OptionDoc& option) {
  if (!option.values.empty()) return CompletionKind::words;
  const auto is = [&](std::string_view part) { return option.metavar.find(part) != std::string::npos; };
  if (is("FILE") || is("MODEL") || is("MANIFEST") || is("KERNEL")) return CompletionKind::file;
  return is("DIR") ? CompletionKind::folder : CompletionKind::other;
}

std::string short_help(const OptionDoc& option) {
  const std::size_t end = option.help.find_first_of(";:");
  return option.help.substr(0, end);
}

namespace completion_verb {
namespace {

std::string script_for(const std::string& shell) {
  return shell == "bash" ? bash_completion() : shell == "zsh" ? zsh_completion() : fish_completion();
}

}  // namespace

Verb verb() {
  return {"completion", "print a completion script for bash, zsh or fish",
          "  cermet completion bash > ~/.local/share/bash-completion/completions/cermet\n"
          "  cermet completion zsh > ~/.zfunc/_cermet\n"
          "  cermet completion fish > ~/.config/fish/completions/cermet.fish",
          [](Parser& parser) -> Action {
            const auto shell = std::make_shared<std::string>();
            parser.option("SHELL", *shell, "the shell").required().values({"bash", "zsh", "fish"});
            return [shell](Console& console) {
              const std::string script = script_for(*shell);
              if (console.json()) console.write_json({{"shell", *shell}, {"script", script}});
              else console.write(script);
            };
          }};
}

}  // namespace completion_verb
}  // namespace cermet::cli
