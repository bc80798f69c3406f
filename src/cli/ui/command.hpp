// The command line as data: what help, completion, the man page and suggestions are made from. Parser fills it while
// verbs declare their options.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cermet::cli {

/// An option, or a positional argument.
struct OptionDoc {
  std::vector<std::string> names;    ///< "-n", "--new-tokens"; of a positional argument its name alone
  std::vector<std::string> aliases;  ///< other spellings, which no help shows
  std::string metavar;               ///< "<N>"; empty for a flag
  std::string help, fallback;        ///< the default, or nothing
  std::vector<std::string> values;   ///< that it takes, where they can be listed
  std::string section;               ///< heading in the verb's help
  bool is_positional = false, is_required = false, is_repeated = false;
  bool is_advanced = false;  ///< shown by --help-all alone

  /// "--new-tokens".
  const std::string& name() const { return names.back(); }
};

/// A verb, or a group of verbs such as `bench`.
struct CommandDoc {
  std::string name;  ///< "run", "bench op"; empty for cermet itself
  std::string summary, heading;
  std::vector<std::string> examples;  ///< command lines
  std::vector<OptionDoc> options;
  bool is_verb = true;       ///< false for a group that is none itself
  bool is_internal = false;  ///< for the program's own use: nothing lists it
};

/// All of them in the order of help, cermet itself first.
class CommandTable {
 public:
  CommandDoc& add(CommandDoc command);
  /// Null where there is none of this name.
  const CommandDoc* find(std::string_view name) const;
  CommandDoc* find(std::string_view name);
  /// Commands one word below `name`, but internal ones.
  std::vector<const CommandDoc*> members(std::string_view name) const;
  const std::vector<std::unique_ptr<CommandDoc>>& all() const { return commands_; }

 private:
  std::vector<std::unique_ptr<CommandDoc>> commands_;  ///< parsers keep references
};

/// The table of this process.
CommandTable& commands();

/// "cermet bench op".
std::string spoken_name(const CommandDoc& command);
/// "cermet run [OPTIONS] <MODEL>".
std::string usage_of(const CommandDoc& command);

}  // namespace cermet::cli
