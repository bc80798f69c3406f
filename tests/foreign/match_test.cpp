// Which regions a manifest takes, in which configurations, and what it says of the others.
#include "foreign/match.hpp"

#include <gtest/gtest.h>

#include "device/device.hpp"
#include "tests/foreign/manifests.hpp"

namespace cermet::test {
namespace {

using foreign::Interval;

const Target& hopper() {
  static const std::unique_ptr<Device> device = make_null_device(90);
  return *device->target();
}

Problem rms_norm(DType dtype, Dims x, std::optional<Dims> weight, Attributes attributes = {},
                 const Target* target = &hopper()) {
  std::vector<std::optional<TensorType>> inputs{TensorType{dtype, std::move(x)}, std::nullopt};
  if (weight) inputs[1] = TensorType{dtype, *weight};
  Problem problem = make_problem(*find_operator("rms_norm"), std::move(inputs), attributes);
  problem.target = target;
  return problem;
}

std::string decline_of_manifest(const std::string& text, const Problem& problem) {
  const TestKernel made(text);
  return made.kernel.declines(problem).value_or("");
}

std::string decline(const Problem& problem) { return decline_of_manifest(good_manifest, problem); }

TEST(Match, TakesWhatTheManifestSays) {
  EXPECT_EQ(decline(rms_norm(DType::bf16, {5, 64}, Dims{64})), "");
  EXPECT_EQ(decline(rms_norm(DType::f32, {2, 3, 64}, std::nullopt)), "");
  EXPECT_EQ(decline(rms_norm(DType::f32, {64}, Dims{64}, {{"eps", 0.5}})), "");
}

TEST(Match, DeclinesAreSentences) {
  EXPECT_EQ(decline(rms_norm(DType::f16, {5, 64}, Dims{64})), "takes no x of f16");
  EXPECT_EQ(decline(rms_norm(DType::f32, {5, 65}, Dims{65})), "needs N % 8 == 0 with N = 65");
  EXPECT_EQ(decline(rms_norm(DType::f32, {5, 8192}, Dims{8192})), "needs N <= 4096 with N = 8192");
  EXPECT_EQ(decline(rms_norm(DType::f32, {5, 64}, Dims{64}, {{"weight_offset", 1.0}})), "takes no weight_offset = 1.0");
  EXPECT_EQ(decline(rms_norm(DType::f32, {3, 4, 8}, Dims{4, 8})), "takes weight of 1 dimensions, found 2");
  EXPECT_EQ(decline(rms_norm(DType::f32, {5, 64}, Dims{64}, {{"out_dtype", "bf16"}})),
            "takes y of f32 where others have that type, found bf16");
  EXPECT_EQ(decline_of_manifest(changed(", \"optional\": true", ""), rms_norm(DType::f32, {5, 64}, std::nullopt)),
            "needs weight");
  EXPECT_EQ(
      decline_of_manifest(changed("\"eps\": \"any\"", "\"eps\": [1e-5]"), rms_norm(DType::f32, {5, 64}, std::nullopt)),
      "takes no eps = 1e-06");
  EXPECT_EQ(decline_of_manifest(changed("[\"M...\", \"N\"], \"strides\"", "[7, \"N\"], \"strides\""),
                                rms_norm(DType::f32, {5, 64}, Dims{64})),
            "takes x with a dimension of 7, found 5");
  EXPECT_EQ(decline_of_manifest(changed("[\"N\"], \"optional\"", "[\"M\"], \"optional\""),
                                rms_norm(DType::f32, {5, 64}, Dims{64})),
            "takes weight with M = 5, as before, found 64");
  EXPECT_EQ(decline_of_manifest(changed("\"where\": [", "\"where\": [\"block == 7\", "),
                                rms_norm(DType::f32, {5, 64}, Dims{64})),
            "needs block == 7 with block = 128");
}

TEST(Match, AttributesThatAManifestDoesNotMentionAreAtTheirDefaults) {
  const std::string without =
      changed("\"attributes\": {\"eps\": \"any\"},", "", changed("{\"f32\": \"eps / 2\"}", "{\"f32\": 1}"));
  EXPECT_EQ(decline_of_manifest(without, rms_norm(DType::f32, {5, 64}, Dims{64})), "");
  EXPECT_EQ(decline_of_manifest(without, rms_norm(DType::f32, {5, 64}, Dims{64}, {{"eps", 0.5}})),
            "takes no eps = 0.5");
  const std::string read = changed("\"attributes\": {\"eps\": \"any\"},", "");
  EXPECT_EQ(decline_of_manifest(read, rms_norm(DType::f32, {5, 64}, Dims{64}, {{"eps", 0.5}})), "")
      << "a parameter reads it";
}

TEST(Match, DevicesThatCannotRunTheCodeAreDeclined) {
  const std::unique_ptr<Device> turing = make_null_device(75);
  EXPECT_EQ(decline(rms_norm(DType::f32, {5, 64}, Dims{64}, {}, turing->target())), "runs on compute_80, not on sm_75");
  EXPECT_EQ(decline(rms_norm(DType::f32, {5, 64}, Dims{64}, {}, nullptr)), "runs on a GPU");
  EXPECT_EQ(
      decline_of_manifest(changed("\"N * size(T)\"", "\"N * 1000\""), rms_norm(DType::f32, {5, 4096}, Dims{4096})),
      "needs 4096000 bytes of shared memory, of 232448");
  EXPECT_EQ(
      decline_of_manifest(changed("[\"block\", \"rows\"]", "[\"block\", 16]"), rms_norm(DType::f32, {5, 64}, Dims{64})),
      "has blocks of 2048 threads");
}

TEST(Match, SizesThatVaryMustFitAtEveryValue) {
  const Symbol t("T");
  Problem problem = rms_norm(DType::f32, {Dim(t), 64}, Dims{64});
  problem.maximum.set(t, 100);
  EXPECT_EQ(decline(problem), "");
  EXPECT_EQ(decline_of_manifest(changed("\"N % 8 == 0\"", "\"M <= 100\""), problem), "");
  EXPECT_EQ(decline_of_manifest(changed("\"N % 8 == 0\"", "\"M <= 99\""), problem),
            "needs M <= 99 with M from 0 to 100");
  EXPECT_EQ(decline_of_manifest(changed("\"N % 8 == 0\"", "\"M % 2 == 0\""), problem),
            "needs M % 2 == 0 with M from 0 to 100");
  EXPECT_EQ(decline_of_manifest(changed("[\"block\", \"rows\"]", "[\"min(M, 32) + 1\"]"), problem),
            "its block (min(M, 32) + 1) is not known before the first run: from 1 to 33");
  EXPECT_TRUE(decline_of_manifest(changed("ceil_div(M, rows)", "ceil_div(N, M)"), problem)
                  .starts_with("division: expected a divisor that is never 0"));
}

TEST(Match, ConfigurationsAreWhatTheConditionsAdmit) {
  const TestKernel made(good_manifest);
  const auto texts = [](const std::vector<Config>& configs) {
    std::vector<std::string> list;
    for (const Config& config : configs) list.push_back(config.to_string());
    return list;
  };
  const Problem problem = rms_norm(DType::f32, {5, 64}, Dims{64});
  EXPECT_EQ(texts(made.kernel.configs(problem)),
            (std::vector<std::string>{"block=128 rows=1", "block=128 rows=2", "block=256 rows=1"}));
  const TestKernel instances(changed(
      "\"file\": \"k.ptx\", \"entry\": \"k\"",
      R"("entry": "k", "instances": [{"tile": {"block": 256}, "file": "a.ptx"}, {"tile": {"block": 128, "rows": 2}, "file": "b.ptx"}])"));
  EXPECT_EQ(texts(instances.kernel.configs(problem)),
            (std::vector<std::string>{"block=128 rows=2", "block=256 rows=1"}));
}

TEST(Match, CodeRunsOnTheArchitecturesThatTakeIt) {
  const auto runs = [](std::vector<std::string> list, int capability) { return foreign::runs_on(list, capability); };
  EXPECT_TRUE(runs({"sm_80"}, 80));
  EXPECT_TRUE(runs({"sm_80"}, 86)) << "the same generation";
  EXPECT_FALSE(runs({"sm_86"}, 80));
  EXPECT_FALSE(runs({"sm_80"}, 90));
  EXPECT_TRUE(runs({"sm_90a"}, 90));
  EXPECT_FALSE(runs({"sm_90a"}, 100));
  EXPECT_TRUE(runs({"compute_80"}, 120));
  EXPECT_FALSE(runs({"compute_90"}, 89));
  EXPECT_FALSE(runs({"compute_90a"}, 100));
  EXPECT_TRUE(runs({"sm_75", "sm_90a"}, 90));
}

TEST(Match, AGateHasTheLastWord) {
  const ScratchFolder folder;
  const foreign::Manifest manifest = foreign::read_manifest(folder.file("m.json", good_manifest));
  folder.file("k.ptx", small_ptx);
  const Kernel kernel = foreign::make_kernel(
      manifest, std::make_shared<foreign::Code>(folder.path(), std::map<std::string, std::string>()),
      {.gate = [](const Target* target) -> Decline { return "not on " + target->name; }});
  EXPECT_EQ(kernel.declines(rms_norm(DType::f32, {5, 64}, Dims{64})), "not on null:sm_90");
  EXPECT_EQ(kernel.declines(rms_norm(DType::f32, {5, 65}, Dims{65})), "needs N % 8 == 0 with N = 65");
}

}  // namespace
}  // namespace cermet::test
