// Independent readers: the Python packages that define the formats read what the export writes.
#include "tests/python/python.hpp"
#include "tests/quant/rounded_layers.hpp"

namespace cermet::test {
namespace {

const std::filesystem::path references = CERMET_SOURCE_DIR "/tests/model/data/reference";

/// Runs the script on a folder.
void read_with_packages(const std::filesystem::path& folder, const std::string& options = "") {
  expect_python(CERMET_SOURCE_DIR "/tests/python/read_with_packages.py " + folder.string() + " " + options);
}

TEST(Packages, DecompressToTheSameValues) {
  const ScratchFolder scratch;
  round_checkpoint(references / "qwen3moe-bf16", scratch / "mixed", Policy::standard());
  read_with_packages(scratch / "mixed");
}

TEST(Packages, EverySchemeAtOnce) {
  const ScratchFolder scratch;
  const Policy policy = Policy::parse(
      "*.0.self_attn.o_proj = w8a16\n*.0.self_attn.* = w8a8_static\n*.0.mlp.down_proj = fp8_static\n*.0.* = "
      "w8a8_dynamic\n"
      "*.1.self_attn.* = fp8_dynamic\n*.1.mlp.down_proj = fp8_weight_only\nlm_head = 16bit\n",
      "p");
  round_checkpoint(references / "llama-bias-mha-f16", scratch / "out", policy);
  read_with_packages(scratch / "out");
}

TEST(Packages, TransformersLoadsIt) {
  for (const char* scheme : {"w8a16", "w8a8_dynamic"}) {
    const ScratchFolder scratch;
    round_checkpoint(references / "llama-gqa-f32", scratch / "out", Policy::uniform(*scheme_named(scheme)));
    read_with_packages(scratch / "out", "--transformers");
  }
}

TEST(Packages, TransformersLoadsMixtures) {
  for (const char* model : {"qwen3moe-bf16", "mixtral-bf16"})
    for (const char* scheme : {"w8a16", "w8a8_dynamic", "fp8_weight_only", "fp8_dynamic"}) {
      SCOPED_TRACE(fmt::format("{} {}", model, scheme));
      const ScratchFolder scratch;
      round_checkpoint(references / model, scratch / "out", Policy::uniform(*scheme_named(scheme)));
      read_with_packages(scratch / "out", "--transformers");
    }
  const ScratchFolder scratch;
  round_checkpoint(references / "qwen3moe-mixed-f32", scratch / "out", Policy::standard());
  read_with_packages(scratch / "out", "--transformers");
}

}  // namespace
}  // namespace cermet::test
