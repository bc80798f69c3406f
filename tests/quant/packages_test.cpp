// Independent readers: the Python packages that define the formats read what the export writes. Skipped where they are not installed; CERMET_TEST_PYTHON names
// an interpreter that has them.
#include <sys/wait.h>

#include <cstdlib>

#include "tests/model/scratch.hpp"
#include "tests/quant/rounded_layers.hpp"

namespace cermet::test {
namespace {

const std::filesystem::path references = CERMET_SOURCE_DIR "/tests/model/data/reference";

/// Runs the script on a folder; skips the test where the packages are absent.
void read_with_packages(const ScratchFolder& scratch, const std::filesystem::path& folder, const std::string& options = "") {
  const char* python = std::getenv("CERMET_TEST_PYTHON");
  const std::string command = fmt::format("{} {}/tests/quant/read_with_packages.py {} {} >{} 2>&1", python ? python : "python3", CERMET_SOURCE_DIR,
                                          folder.string(), options, (scratch / "log").string());
  const int status = std::system(command.c_str());
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const std::string log = content_of(scratch / "log");
  if (code == 77 || code == 127) GTEST_SKIP() << log;
  EXPECT_EQ(code, 0) << log;
}

TEST(Packages, DecompressToTheSameValues) {
  const ScratchFolder scratch;
  round_checkpoint(references / "qwen3moe-bf16", scratch / "mixed", Policy::standard());
  read_with_packages(scratch, scratch / "mixed");
}

TEST(Packages, EverySchemeAtOnce) {
  const ScratchFolder scratch;
  const Policy policy = Policy::parse(
      "*.0.self_attn.o_proj = w8a16\n*.0.self_attn.* = w8a8_static\n*.0.mlp.down_proj = fp8_static\n*.0.* = w8a8_dynamic\n"
      "*.1.self_attn.* = fp8_dynamic\n*.1.mlp.down_proj = fp8_weight_only\nlm_head = 16bit\n",
      "p");
  round_checkpoint(references / "llama-bias-mha-f16", scratch / "out", policy);
  read_with_packages(scratch, scratch / "out");
}

TEST(Packages, TransformersLoadsIt) {
  for (const char* scheme : {"w8a16", "w8a8_dynamic"}) {
    const ScratchFolder scratch;
    round_checkpoint(references / "llama-gqa-f32", scratch / "out", Policy::uniform(*scheme_named(scheme)));
    read_with_packages(scratch, scratch / "out", "--transformers");
    if (IsSkipped()) return;
  }
}

}  // namespace
}  // namespace cermet::test
