// `cermet explain op`: which kernel computes a call, and why.
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

TEST(ExplainOp, ExplainsCandidatesCostAndWorkspace) {
  const auto json = run_cermet("explain op rms_norm --shape 'x=bf16[8,2048] weight=f32[2048] eps=1e-5' --json").json();
  EXPECT_EQ(json["problem"], "rms_norm(bf16[8, 2048], f32[2048]) {eps = 1e-05, out_dtype = \"\", weight_offset = 0.0}");
  EXPECT_EQ(json["outputs"]["y"], "bf16[8, 2048]");
  EXPECT_EQ(json["bytes"], 8 * 2048 * 2 * 2 + 2048 * 4);
  EXPECT_EQ(json["operations"], 4 * 8 * 2048);
  EXPECT_EQ(json["kernel"], "rowwise.rms_norm");
  EXPECT_TRUE(json.contains("workspace_bytes"));
}

TEST(ExplainOp, OperandsInOrderAndSymbolsWorkToo) {
  const auto json = run_cermet("explain op rms_norm --shape 'bf16[T,64] - out_dtype=f32' --tokens 16 --json").json();
  EXPECT_EQ(json["outputs"]["y"], "f32[T, 64]");
  EXPECT_EQ(json["bytes"], 16 * 64 * 6);
}

TEST(ExplainOp, ADeclineNamesItsReason) {
  const CommandResult result =
      run_cermet("explain op rms_norm --shape 'f32[2,8]'", "", "CERMET_DISABLE_KERNELS=rowwise.rms_norm");
  EXPECT_EQ(result.code, 0);
  EXPECT_NE(result.out.find("declines: switched off by CERMET_DISABLE_KERNELS"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("no kernel takes this call"), std::string::npos) << result.out;
}

/// A kernel that chooses others for its parts heeds the same switch as selection.
TEST(ExplainOp, PartsOfAMixtureHeedDisabledKernels) {
  const std::string call =
      "explain op moe --json --device null:sm_90 --tokens 512 --shape "
      "'x=bf16[T,64] router=bf16[8,64] gate_up=bf16[8,64,64] down=bf16[8,64,32] k=2'";
  const auto programs = [&](const std::string& disabled) {
    const CommandResult result = run_cermet(call, "", "CERMET_DISABLE_KERNELS=" + disabled);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.json()["programs"].dump();
  };
  EXPECT_NE(programs("").find("gemm/hopper"), std::string::npos) << programs("");
  EXPECT_EQ(programs("gemm.linear.hopper,gemm.grouped_linear.hopper").find("gemm/hopper"), std::string::npos);
  EXPECT_NE(programs("gemm.linear.hopper,gemm.grouped_linear.hopper").find("gemm/general"), std::string::npos);
  const CommandResult none = run_cermet(call, "", "CERMET_DISABLE_KERNELS=moe.unpermute");
  EXPECT_NE(none.out.find("no kernel takes moe_unpermute"), std::string::npos) << none.out;
}

TEST(ExplainOp, FallbacksOfAKernelAreListed) {
  const std::string call = "explain op linear --device null:sm_90 --shape 'x=bf16[512,64] w=bf16[64,64]'";
  const auto json = run_cermet(call + " --json").json();
  EXPECT_EQ(json["kernel"], "gemm.linear.hopper");
  EXPECT_EQ(json["fallbacks"], nlohmann::json::array({"gemm/general"}));
  EXPECT_NE(run_cermet(call).out.find("fallbacks  gemm/general"), std::string::npos) << run_cermet(call).out;
}

TEST(ExplainOp, EveryConfigurationOfACandidateIsListedWithItsModelledTime) {
  const std::string call = "explain op linear --device null:sm_90 --shape 'x=bf16[1,4096] w=bf16[6144,4096]'";
  const auto json = run_cermet(call + " --json").json();
  EXPECT_EQ(json["kernel"], "gemv.linear");
  EXPECT_EQ(json["config"], "default");
  EXPECT_EQ(json["limits"], "data sheet of H200");
  for (const auto& candidate : json["candidates"]) {
    if (candidate["kernel"] == "gemv.linear") {
      ASSERT_EQ(candidate["configs"].size(), 4u);
      EXPECT_EQ(candidate["configs"][1]["config"], "stream=0");
      EXPECT_GT(candidate["configs"][1]["modelled_seconds"].get<double>(), 11e-6);
    }
    if (candidate["kernel"] == "gemm.linear.hopper") {
      EXPECT_EQ(candidate["fallbacks"], nlohmann::json::array({"gemm/general"}));
      EXPECT_GT(candidate["configs"].size(), 8u);
    }
  }
  const std::string text = run_cermet(call).out;
  EXPECT_NE(text.find("unaligned launches fall back on gemm/general"), std::string::npos) << text;
  EXPECT_NE(text.find("stream=1"), std::string::npos) << text;
}

TEST(ExplainOp, AVariableForcesAConfiguration) {
  const std::string call = "explain op linear --device null:sm_90 --shape 'x=bf16[64,4096] w=bf16[4096,4096]' --json";
  const auto forced = run_cermet(call, "", "CERMET_CONFIG='gemv.linear: stream=0; gemm.linear.tensor: tile=64'").json();
  EXPECT_EQ(forced["kernel"], "gemm.linear.tensor") << "gemv declines 64 rows";
  EXPECT_EQ(forced["config"], "tile=64");
  const CommandResult unknown = run_cermet(call, "", "CERMET_CONFIG='gemm.linear.tensor: tile=65'");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.err.find("CERMET_CONFIG: gemm.linear.tensor: tile: expected one of 64, 128, found 65"),
            std::string::npos)
      << unknown.err;
  const CommandResult nameless = run_cermet(call, "", "CERMET_CONFIG=tile=64");
  EXPECT_EQ(nameless.code, 2);
  EXPECT_NE(nameless.err.find("CERMET_CONFIG"), std::string::npos) << nameless.err;
}

TEST(ExplainOp, ARegionInPlaceOfACall) {
  const std::string region =
      "'{n0 = rms_norm($0: f32[1, 4096], $1: f32[4096]); n1 = linear(strict n0, $2: bf16[6144, 4096])} anchor n1 -> "
      "n1'";
  const auto json = run_cermet("explain op --device null:sm_90 --json " + region).json();
  EXPECT_EQ(json["kernel"], "gemv.norm_linear");
  EXPECT_EQ(json["constants"], nlohmann::json::array({"$2"}));
  EXPECT_EQ(json["outputs"]["n1.0"], "f32[1, 6144]");
  EXPECT_EQ(json["bytes"], 2 * 6144 * 4096 + 4 * (2 * 4096 + 6144)) << "the normalized row moves nowhere";
  for (const auto& candidate : json["candidates"]) {
    if (candidate["kernel"] == "gemv.norm_linear") {
      EXPECT_EQ(candidate["configs"].size(), 4u);
      EXPECT_GT(candidate["configs"][0]["modelled_seconds"].get<double>(), 11e-6);
    } else {
      EXPECT_TRUE(candidate["decline"].is_string()) << candidate;
      if (candidate["kernel"] == "gemv.linear") {
        EXPECT_EQ(candidate["decline"], "computes nothing before the product");
      }
    }
  }
  EXPECT_TRUE(
      run_cermet("explain op --device null:sm_90 --json --constant none " + region).json()["constants"].empty());
  const auto symbolic = run_cermet("explain op --json --tokens 16 'silu(f32[T, 4])'").json();
  EXPECT_EQ(symbolic["bytes"], 2 * 16 * 4 * 4);
  expect_mistake("explain op '{n0 = silu($0: f32[2])} anchor n1 -> n0'",
                 {"region", "n0, the only node before", "column 32"});
  expect_mistake("explain op linear --constant '$9' --shape 'x=bf16[2,4] w=bf16[8,4]'",
                 {"linear", "constant operands", "\"$9\""});
}

TEST(ExplainOp, MistakesAreNamed) {
  expect_mistake("explain op rmsnorm --shape 'f32[2]'", {"operator", "rms_norm", "\"rmsnorm\""});
  expect_mistake("explain op --shape 'f32[2]'", {"NAME: expected a value, found none"});
  expect_mistake("explain op rms_norm --shape 'f32[2,8] f32[7]'",
                 {"rms_norm", "operand 1 (weight)", "expected", "8", "f32[7]"});
  expect_mistake("explain op rms_norm --shape 'i8[2,8]'", {"rms_norm", "operand 0 (x)", "i8"});
  expect_mistake("explain op rms_norm --shape 'f99[2,8]'", {"f99", "element type"});
  expect_mistake("explain op rms_norm --shape 'f32[2,8'", {"f32[2,8", "']'"});
  expect_mistake("explain op rms_norm --shape 'x=f32[2,8] x=f32[2,8]'", {"operand 0 (x)", "twice"});
  expect_mistake("explain op rms_norm --shape 'f32[2,8] f32[8] f32[8]'", {"at most 2 operands", "f32[8]"});
  expect_mistake("explain op rms_norm --shape 'f32[2,8] epsilon=1'", {"eps", "weight_offset", "\"epsilon\""});
  expect_mistake("explain op rms_norm --shape 'f32[2,8] eps=small'", {"small"});
  expect_mistake("explain op rms_norm --shape 'f32[2,8] out_dtype=i8'", {"out_dtype", "i8"});
  expect_mistake("explain op rms_norm --shape 'f32[-2,8]'", {"f32[-2,8]"});
  expect_mistake("explain op rms_norm --shape 'f32[4294967296,4294967296]'", {"2^63"});
  expect_mistake("explain op rms_norm --shape 'f32[2,8]' --constant gamma", {"constant", "\"gamma\""});
  expect_mistake("explain op rms_norm --shape 'f32[2,8]' --threads -1", {"--threads"});
  expect_mistake("explain op rms_norm --shape 'f32[T,8]' --tokens 0", {"--tokens"});
}

}  // namespace
}  // namespace cermet::test
