// Help as newcomers read it: groups, widths, sections, defaults; what is suggested for names that there are not;
// completion scripts.
#include <algorithm>
#include <sstream>

#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& line : lines_of(text))
    if (!line.starts_with("  cermet ") && !line.starts_with("  mpirun "))
      longest = std::max(longest, line.size());  // examples are copied, not wrapped
  return longest;
}

/// The text with line breaks and runs of spaces as one space.
std::string joined(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string word; in >> word;) out += (out.empty() ? "" : " ") + word;
  return out;
}

/// Every command that help lists, by its JSON.
std::vector<std::string> every_command(const std::string& name = "") {
  std::vector<std::string> list;
  const nlohmann::json members = run_cermet("help " + name + " --json").json()["commands"];
  for (const auto& member : members) {
    list.push_back(member);
    if (name.empty())
      for (const std::string& below : every_command(list.back())) list.push_back(below);
  }
  return list;
}

TEST(Help, ListsCommandsInGroupsWithAPhraseEach) {
  const std::string help = run_cermet("--help").out;
  std::size_t at = 0;
  for (const char* heading :
       {"Run:", "Models:", "ONNX and graphs:", "Operators:", "Speed:", "System:", "Exit codes:"}) {
    const std::size_t found = help.find(std::string("\n") + heading + "\n");
    ASSERT_NE(found, std::string::npos) << heading << "\n" << help;
    EXPECT_GT(found, at) << heading;
    at = found;
  }
  for (const char* verb : {"run", "eval", "quantize", "bench", "tune", "completion", "help", "version"})
    EXPECT_NE(help.find(std::string("\n  ") + verb + " "), std::string::npos) << verb;
  EXPECT_EQ(help.find("man-page"), std::string::npos);
}

TEST(Help, SummariesAreShortAndLinesAreWrapped) {
  const std::vector<std::string> commands = every_command();
  EXPECT_GT(commands.size(), 40u);
  for (const std::string& command : commands) {
    const auto json = run_cermet("help " + command + " --json").json();
    EXPECT_LE(json["summary"].get<std::string>().size(), 60u) << command;
    EXPECT_EQ(json["summary"].get<std::string>().find(';'), std::string::npos) << command;
    EXPECT_LE(longest_line(run_cermet("help " + command + " --all").out), 100u) << command;
    EXPECT_LE(longest_line(run_cermet("help " + command, "", "COLUMNS=72").out), 72u) << command;
    for (const auto& option : json["options"]) {
      EXPECT_FALSE(option["help"].get<std::string>().empty()) << command << " " << option;
      EXPECT_NE(option["help"].get<std::string>().substr(0, 3), "of ") << command << " " << option;
    }
  }
}

TEST(Help, StartsWithExamplesAndHasSections) {
  const std::string help = run_cermet("run --help").out;
  std::size_t at = 0;
  for (const char* part :
       {"Usage: cermet run [OPTIONS] <MODEL>", "Examples:", "Arguments:", "Prompt:", "Sampling:", "Model and memory:",
        "Device:", "Many devices:", "ONNX and graphs:", "General:", "--help-all"}) {
    const std::size_t found = help.find(part, at);
    ASSERT_NE(found, std::string::npos) << part << "\n" << help;
    at = found;
  }
  EXPECT_EQ(help.find("--super-kernel"), std::string::npos) << "advanced";
  EXPECT_NE(run_cermet("run --help-all").out.find("--super-kernel"), std::string::npos);
  for (const char* part : {"-n, --new-tokens <N>", "[default: 128]", "[possible values: f32, bf16, f16]",
                           "--prompts <FILE.jsonl>", "-o, --output <DIR>"})
    EXPECT_NE(joined(help).find(part), std::string::npos) << part << "\n" << help;
  for (const char* type : {"INT", "TEXT:", "FLOAT", "UINT"}) EXPECT_EQ(help.find(type), std::string::npos) << type;
}

TEST(Help, AVerbHasItsOwnOptionsAlone) {
  for (const char* verb : {"eval", "logits", "explain", "tune model"}) {
    const std::string help = run_cermet(std::string(verb) + " --help-all").out;
    for (const char* option : {"--data-parallel", "--expert-exchange", "--overlap-experts", "--prompts"})
      EXPECT_EQ(help.find(option), std::string::npos) << verb;
  }
  for (const char* verb : {"eval", "logits"}) {
    const std::string help = run_cermet(std::string(verb) + " --help-all").out;
    for (const char* option : {"--steps-per-launch", "ONNX", "--input"})
      EXPECT_EQ(help.find(option), std::string::npos) << verb << " " << option;
  }
}

TEST(Help, IsAlsoAVerb) {
  EXPECT_EQ(run_cermet("help").out, run_cermet("--help").out);
  EXPECT_EQ(run_cermet("help bench op").out, run_cermet("bench op --help").out);
  EXPECT_EQ(run_cermet("help explain op").out, run_cermet("explain op -h").out);
  for (const char* spelling : {"version", "-V", "--version"})
    EXPECT_EQ(run_cermet(spelling).out, run_cermet("--version").out) << spelling;
  EXPECT_EQ("cermet " + run_cermet("version --json").json()["version"].get<std::string>() + "\n", run_cermet("-V").out);
  expect_mistake("help rnu", {"no such command: rnu; did you mean run?"});
}

TEST(Help, AFullDiskIsTold) {
  for (const char* arguments : {"--help", "run --help", "help run", "--version", "completion bash"}) {
    const CommandResult result = run_cermet(std::string(arguments) + " >/dev/full");
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_NE(result.err.find("standard output"), std::string::npos) << arguments << result.err;
  }
}

TEST(Help, IsColouredWhereAsked) {
  EXPECT_EQ(run_cermet("run --help").out.find('\x1b'), std::string::npos);
  EXPECT_NE(run_cermet("run --help --color=always").out.find("\x1b[1m"), std::string::npos);
  EXPECT_NE(run_cermet("run --color always").err.find("\x1b[1;31merror:"), std::string::npos);
  EXPECT_EQ(run_cermet("run --color never").err.find('\x1b'), std::string::npos);
  expect_mistake("env --color blue", {"--color: expected auto, always or never, found \"blue\""});
}

TEST(Suggestions, NameTheNearestVerbAndOption) {
  for (const auto& [typed, meant] : {std::pair("rnu", "run"),
                                     {"quantise", "quantize"},
                                     {"serve", "run"},
                                     {"chat", "run"},
                                     {"benchmark", "bench"},
                                     {"tokenise", "tokenize"}})
    expect_mistake(typed, {std::string("no such command: ") + typed, std::string("did you mean ") + meant + "?"});
  expect_mistake("bench modle x",
                 {"no such command: bench modle; did you mean bench model? (see `cermet bench --help`)"});
  expect_mistake("xyzzy", {"no such command: xyzzy (see `cermet --help`)"});
  for (const auto& [typed, meant] : {std::pair("--new-token 4", "--new-tokens"),
                                     {"--max-tokens 4", "--new-tokens"},
                                     {"--max-new-tokens=4", "--new-tokens"},
                                     {"--n-predict 4", "--new-tokens"},
                                     {"--prompt-file x", "--prompts"},
                                     {"--temp 1", "--temperature"},
                                     {"-ngl 99", "--device"},
                                     {"--tensor-parallel-size 2", "--tensor-parallel"},
                                     {"--top_k 3", "--top-k"},
                                     {"--inputs x", "--input"}})
    expect_mistake(
        std::string("run models/demo -p a ") + typed,
        {"unexpected argument '", std::string("; did you mean '") + meant + "'? (usage: cermet run [OPTIONS] <MODEL>"});
  expect_mistake("run --new-token 4", {"unexpected argument '--new-token'"});
  expect_mistake("eval models/demo --text x --top-k 3", {"it is an option of `cermet run`"});
  expect_mistake("run models/demo -p a --\xff", {"unexpected argument \"--\\xff\""});
}

TEST(Completion, KnowsCommandsOptionsAndValues) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const CommandResult result = run_cermet(std::string("completion ") + shell);
    ASSERT_EQ(result.code, 0) << result.err;
    for (const char* part : {"bench", "new-tokens", "bf16", "quantize"})
      EXPECT_NE(result.out.find(part), std::string::npos) << shell << " " << part;
  }
  expect_mistake("completion powershell", {"SHELL: expected bash, zsh or fish, found \"powershell\""});
}

}  // namespace
}  // namespace cermet::test
