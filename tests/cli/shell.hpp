// Runs a command line of its own in a shell, in any folder: `cermet` as PATH finds it.
#pragma once

#include "tests/cli/command.hpp"

namespace cermet::test {

inline const std::string demo_onnx = CERMET_SOURCE_DIR "/models/demo_onnx/classifier.onnx";
inline const std::string program = CERMET_BINARY_DIR "/bin/cermet";

/// Runs `script` by bash in `folder`, with `bin` first in PATH.
inline CommandResult run_shell(const std::string& script, const std::filesystem::path& folder,
                               const std::string& bin = CERMET_BINARY_DIR "/bin") {
  const ScratchFolder scratch;
  const auto file = scratch.file("script", "cd '" + folder.string() + "'\nexport CERMET_TUNING=off PATH='" + bin +
                                               "':\"$PATH\"\n" + script + "\n");
  const std::string command =
      "bash " + file.string() + " </dev/null >" + (scratch / "out").string() + " 2>" + (scratch / "err").string();
  const int status = std::system(command.c_str());
  CommandResult result;
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = content_of(scratch / "out");
  result.err = content_of(scratch / "err");
  return result;
}

}  // namespace cermet::test
