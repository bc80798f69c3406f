#include "quant/check.hpp"

#include <fmt/ranges.h>

#include <cmath>
#include <functional>

#include "model/checkpoint/modelslim.hpp"
#include "tests/model/scratch.hpp"
#include "tests/quant/rounded_layers.hpp"
#include "tests/support/models.hpp"

namespace cermet::test {
namespace {

QuantizedCheck check(const std::filesystem::path& folder) {
  ThreadPool pool(2);
  return check_quantized(folder, pool);
}

/// Expects exactly one violation, containing every fragment.
void expect_violation(const std::filesystem::path& folder, const std::vector<std::string>& fragments) {
  const QuantizedCheck result = check(folder);
  ASSERT_EQ(result.violations.size(), 1u) << fmt::format("{}", fmt::join(result.violations, "\n"));
  for (const std::string& fragment : fragments)
    EXPECT_NE(result.violations[0].find(fragment), std::string::npos) << result.violations[0];
}

/// Rewrites model.safetensors after `change` had its way with the tensors.
void rewrite(const std::filesystem::path& folder, const std::function<void(std::vector<OutputTensor>&)>& change) {
  std::filesystem::rename(folder / "model.safetensors", folder / "old");
  {
    const SafetensorsFile file = SafetensorsFile::open(folder / "old");
    std::vector<OutputTensor> tensors;
    for (const StoredTensor& stored : file.tensors()) {
      tensors.push_back(
          {.spec = {stored.name, stored.dtype, stored.shape}, .file = nullptr, .stored = nullptr, .bytes = {}});
      tensors.back().bytes.resize(static_cast<std::size_t>(stored.bytes()));
      file.read(stored, 0, tensors.back().bytes);
    }
    change(tensors);
    write_shards(folder, tensors, {});
  }
  std::filesystem::remove(folder / "old");
}

OutputTensor& named(std::vector<OutputTensor>& tensors, const std::string& name) {
  return *std::find_if(tensors.begin(), tensors.end(),
                       [&](const OutputTensor& tensor) { return tensor.spec.name == name; });
}

void set(OutputTensor& tensor, std::int64_t index, double value) {
  format::store_element(tensor.bytes.data(), tensor.spec.dtype, index, value);
}

TEST(Check, PassesWhatTheExportWrites) {
  for (const char* scheme : {"w8a8_dynamic", "w8a16", "fp8_dynamic", "fp8_weight_only"}) {
    const ScratchFolder scratch;
    round_checkpoint(small_mixture, scratch / "out", Policy::uniform(*scheme_named(scheme)));
    const QuantizedCheck result = check(scratch / "out");
    EXPECT_TRUE(result.ok()) << scheme << ": " << fmt::format("{}", fmt::join(result.violations, "\n"));
    EXPECT_GT(result.quantized, 0);
  }
  const ScratchFolder scratch;
  ExportOptions options;
  options.shards.max_file_bytes = 60'000;
  round_checkpoint(small_mixture, scratch / "out", Policy::standard(), options);
  EXPECT_TRUE(check(scratch / "out").ok());
  options.format = ExportFormat::modelslim;
  round_checkpoint(small_mixture, scratch / "slim", Policy::standard(), options);
  const QuantizedCheck slim = check(scratch / "slim");
  EXPECT_TRUE(slim.ok()) << fmt::format("{}", fmt::join(slim.violations, "\n"));
}

TEST(Check, NamesEveryViolation) {
  const std::string q = "model.layers.1.self_attn.q_proj", v = "model.layers.1.self_attn.v_proj",
                    expert = "model.layers.0.mlp.experts.1.up_proj";
  struct Case {
    std::function<void(std::vector<OutputTensor>&)> change;
    std::vector<std::string> fragments;
  };
  const Case cases[] = {
      {[&](auto& t) { set(named(t, v + ".input_scale"), 0, 0.125); },
       {"v_proj.input_scale", "q_proj", "0.125", "0.0625"}},
      {[&](auto& t) { set(named(t, expert + ".weight_scale"), 3, -1); }, {expert, "finite scales above 0", "-1"}},
      {[&](auto& t) { set(named(t, expert + ".weight_scale"), 3, 0); }, {expert, "finite scales above 0", "found 0"}},
      {[&](auto& t) { set(named(t, "model.norm.weight"), 0, std::nan("")); }, {"model.norm.weight", "finite values"}},
      {[&](auto& t) { std::erase_if(t, [&](const OutputTensor& x) { return x.spec.name == q + ".weight_scale"; }); },
       {q + ".weight_scale"}},
      {[&](auto& t) {
         t.push_back(
             {.spec = {"extra.weight", DType::u8, {1}}, .file = nullptr, .stored = nullptr, .bytes = {std::byte{1}}});
       },
       {"extra.weight", "no such tensor"}},
      {[&](auto& t) { named(t, q + ".weight").spec.dtype = DType::u8; }, {q + ".weight", "i8", "u8"}},
      {[&](auto& t) {
         std::swap(named(t, expert + ".weight_packed").spec.shape[0],
                   named(t, expert + ".weight_packed").spec.shape[1]);
       },
       {expert + ".weight_packed", "["}},
  };
  for (const Case& c : cases) {
    const ScratchFolder scratch;
    round_checkpoint(small_mixture, scratch / "out", Policy::standard());
    rewrite(scratch / "out", c.change);
    expect_violation(scratch / "out", c.fragments);
  }
}

TEST(Check, HoldsTheDescriptorToThePolicy) {
  const ScratchFolder scratch;
  round_checkpoint(small_mixture, scratch / "out", Policy::uniform(*scheme_named("w8a8_dynamic")));
  QuantizationRecord record = *QuantizationRecord::read(scratch / "out");
  record.policy = "model.layers.0.self_attn.o_proj = w8a16\n" + record.policy;
  write_file_atomically(scratch / "out/cermet_quantization.json", record.to_json());
  expect_violation(scratch / "out", {"model.layers.0.self_attn.o_proj", "w8a16 (policy)", "w8a8_dynamic"});
  std::filesystem::remove(scratch /
                          "out/cermet_quantization.json");  // a foreign checkpoint: its descriptor is the policy
  EXPECT_TRUE(check(scratch / "out").ok());
}

TEST(Check, CodesKeepToTheRangeOfTheScales) {
  const ScratchFolder scratch;
  ExportOptions options;
  round_checkpoint(small_mixture, scratch / "out", Policy::standard(), options);
  QuantizationRecord record = *QuantizationRecord::read(scratch / "out");
  record.range = 127;
  write_file_atomically(scratch / "out/cermet_quantization.json", record.to_json());
  rewrite(scratch / "out", [](auto& tensors) {
    for (OutputTensor& tensor : tensors) {
      const bool packed = tensor.spec.name.ends_with(".weight_packed");  // each value + 128
      if (tensor.spec.dtype != DType::i8 && !packed) continue;
      for (std::byte& code : tensor.bytes)
        if (code == (packed ? std::byte{0} : std::byte{0x80})) code |= std::byte{1};
    }
    named(tensors, "model.layers.0.mlp.experts.1.up_proj.weight_packed").bytes[5] = std::byte{0};
  });
  expect_violation(scratch / "out", {"model.layers.0.mlp.experts.1.up_proj.weight", "-127 to 127", "-128"});
}

TEST(Check, RefusesWhatIsNotQuantized) {
  expect_error(Status::invalid_argument, {"expected a quantized checkpoint"}, [] { check(small_mixture); });
}

}  // namespace
}  // namespace cermet::test
