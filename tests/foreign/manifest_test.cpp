// Manifests: what is read of them, and every mistake by field, expected and found.
#include <gtest/gtest.h>

#include "foreign/cases.hpp"
#include "tests/foreign/manifests.hpp"

namespace cermet::test {
namespace {

using foreign::Manifest;

TEST(Manifest, IsReadWhole) {
  const Manifest m = manifest_of(good_manifest);
  EXPECT_EQ(m.name, "test.rms_norm");
  EXPECT_EQ(m.op->name, "rms_norm");
  EXPECT_EQ(m.kind, foreign::CodeKind::ptx);
  EXPECT_EQ(m.architectures, std::vector<std::string>{"compute_80"});
  EXPECT_EQ(m.dims, 2u);
  ASSERT_EQ(m.operands.size(), 3u);
  EXPECT_TRUE(m.operands[0].any_strides);
  EXPECT_EQ(m.operands[0].alignment, 16);
  EXPECT_TRUE(m.operands[0].dims[0].leading);
  EXPECT_TRUE(m.operands[1].optional);
  EXPECT_TRUE(m.operands[2].is_result);
  EXPECT_FALSE(m.operands[2].any_strides);
  EXPECT_EQ(m.parameters.size(), 11u);
  EXPECT_EQ(m.files(), std::vector<std::string>{"k.ptx"});
  EXPECT_EQ(m.cluster, 1);
  EXPECT_EQ(m.text, good_manifest);
}

struct Mistake {
  const char *from, *to, *message;
};

const Mistake mistakes[]{
    {"\"cermet_kernel\": 1", "\"cermet_kernel\": 2", "cermet_kernel: expected an integer from 1 to 1, found 2"},
    {"\"operator\":", "\"colour\": 3, \"operator\":", "colour: expected one of the keys"},
    {"\"name\": \"test.rms_norm\",", "", "name"},
    {"test.rms_norm", "rms_norm", "name: expected small letters, digits and underscores with a dot between words"},
    {"test.rms_norm", "../rms.norm", "name: expected small letters"},
    {"\"operator\": \"rms_norm\"", "\"operator\": \"rms\"",
     "operator: expected an operator, as `cermet ops` lists them, found \"rms\""},
    {"\"ptx\"", "\"elf\"", "code.kind: expected cuda, cubin, ptx, triton or shared_object, found \"elf\""},
    {"k.ptx", "../k.ptx", "code.file: expected the name of a file beside the manifest"},
    {"k.ptx", "manifest.json", "code.file: expected the name of a file beside the manifest"},
    {"\"entry\": \"k\"", "\"entry\": \"k()\"",
     "code.entry: expected a letter, then letters, digits and underscores, found \"k()\""},
    {"compute_80", "sm_80", "code.architectures[0]: expected compute_CC, as PTX is compiled for, found \"sm_80\""},
    {"compute_80", "hopper", "code.architectures[0]: expected sm_CC, sm_CCa or compute_CC, found \"hopper\""},
    {"[\"compute_80\"]", "[]", "code.architectures: expected 1 to 64 architectures"},
    {"\"entry\": \"k\",", "\"entry\": \"k\", \"options\": [\"-G\"],",
     "code.options: expected none in code of kind ptx, found one"},
    {"\"entry\": \"k\",", "\"entry\": \"k\", \"defines\": {},", "code.defines: expected none in code of kind ptx"},
    {"[\"f32\", \"bf16\"]", "[\"f32\", \"f32\"]", "types.T[1]: expected every element type once"},
    {"[\"f32\", \"bf16\"]", "[\"float\"]",
     "types.T[0]: expected an element type, such as f32 or bf16, found \"float\""},
    {"{\"T\": [", "{\"f16\": [", "types.f16: expected a name that is no element type's"},
    {"\"x\": {\"type\": \"T\"", "\"z\": {\"type\": \"T\"",
     "operands.z: expected an operand of rms_norm, found none of this name"},
    {"\"results\": {\"y\"", "\"results\": {\"z\"", "results.z: expected a result of rms_norm"},
    {"\"results\": {\"y\": {\"type\": \"T\", \"dims\": [\"M...\", \"N\"]}}", "\"results\": {}",
     "results: expected y, which rms_norm always has, found none"},
    {"\"type\": \"T\", \"dims\": [\"N\"]", "\"type\": \"U\", \"dims\": [\"N\"]",
     "operands.weight.type: expected an element type, or one of the manifest's types"},
    {"\"M...\", \"N\"], \"strides\"", "\"M\", \"N...\"], \"strides\"",
     "operands.x.dims[1]: expected dimensions that are taken together before all others"},
    {"[\"M...\", \"N\"], \"strides\"", "[-1, \"N\"], \"strides\"", "operands.x.dims[0]: expected an integer from 0"},
    {"\"align\": 16", "\"align\": 24", "operands.x.align: expected a power of 2, found 24"},
    {"\"any\", \"align\"", "\"loose\", \"align\"",
     "operands.x.strides: expected \"dense\" or \"any\", found \"loose\""},
    {"\"strides\": \"any\", \"align\": 16", "\"optional\": true",
     "operands.x.optional: expected true only of an optional operand of rms_norm"},
    {"\"eps\": \"any\"", "\"epsilon\": \"any\"", "attributes.epsilon: expected an attribute of rms_norm"},
    {"\"eps\": \"any\"", "\"eps\": [\"small\"]", "attributes.eps[0]: expected a number, found \"small\""},
    {"\"eps\": \"any\"", "\"eps\": \"all\"", "attributes.eps: expected \"any\", or a list of values, found \"all\""},
    {"\"rows\": [1, 2]", "\"rows\": [1, 1]", "tile.rows[1]: expected every value once"},
    {"\"rows\": [1, 2]", "\"N\": [1, 2]", "tile.N: expected a name that is no dimension's"},
    {"\"rows\": [1, 2]", "\"Rows\": [1, 2]", "tile.Rows: expected a name of small letters"},
    {"\"rows\": [1, 2]", "\"rows\": []", "tile.rows: expected 1 to 64 values"},
    {"\"N % 8 == 0\"", "\"K % 8 == 0\"", "where[0]: expected a name that the manifest declares"},
    {"{\"pointer\": \"y\"}", "{\"pointer\": \"z\"}",
     "parameters[4].pointer: expected an operand or a result of the manifest, found \"z\""},
    {"{\"i32\": \"M\"}", "{\"int\": \"M\"}", "parameters[1].int: expected pointer, i32, u32, i64, u64, f32 or f64"},
    {"{\"i32\": \"M\"}", "{\"i32\": \"M\", \"u32\": 1}", "parameters[1]: expected one key"},
    {"{\"i32\": \"M\"}", "{\"i32\": \"eps\"}", "parameters[1].i32: expected a name that the manifest declares"},
    {"stride(x, 0)", "stride(x, 2)", "expected a name that the manifest declares"},
    {"[\"ceil_div(M, rows)\", 2]", "[1, 1, 1, 1]", "grid: expected 1 to 3 expressions"},
    {"\"shared_bytes\": \"N * size(T)\"", "\"cluster\": 32", "cluster: expected an integer from 1 to 16, found 32"},
    {"\"grid\": [\"ceil_div(M, rows)\", 2],", "", "grid"},
    {"\"workspace_bytes\": \"M * 4\"", "\"cases\": [{\"M\": 3}]",
     "cases[0]: expected a size for each of 2 dimensions, found 1"},
    {"\"workspace_bytes\": \"M * 4\"", "\"cases\": [{\"M\": 3, \"rows\": 1}]",
     "cases[0].rows: expected a dimension of the operands"},
};

TEST(Manifest, MistakesNameTheField) {
  for (const Mistake& mistake : mistakes) {
    SCOPED_TRACE(mistake.to);
    expect_error(Status::invalid_file, {mistake.message}, [&] { manifest_of(changed(mistake.from, mistake.to)); });
  }
}

TEST(Manifest, EveryTruncationAndChangedByteIsHandled) {
  for (std::size_t size = 0; size < good_manifest.size(); size += 7)
    EXPECT_TRUE(error_of([&] { manifest_of(good_manifest.substr(0, size)); }).has_value()) << size;
  for (std::size_t at = 0; at < good_manifest.size(); at += 3) {
    std::string text = good_manifest;
    text[at] = static_cast<char>(text[at] ^ 0x15);
    try {
      manifest_of(text);  // either is right: a letter of a name may change
    } catch (const Error& error) {
      EXPECT_NE(error.status(), Status::internal) << error.what();
    }
  }
}

TEST(Manifest, SizesAreBounded) {
  std::string many = "\"where\": [\"1\"";
  for (int i = 0; i < 64; ++i) many += ", \"1\"";
  expect_error(Status::invalid_file, {"where: expected at most 64 conditions"},
               [&] { manifest_of(changed("\"where\": [\"N % 8 == 0\"", many)); });
  std::string fields = "\"rows\": [1, 2]";
  for (const char* name : {"a", "b", "c", "d"})
    fields += fmt::format(", \"{}\": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]", name);
  expect_error(Status::invalid_file, {"tile: expected at most 4096 combinations"},
               [&] { manifest_of(changed("\"rows\": [1, 2]", fields)); });
  expect_error(Status::invalid_file, {"m.json"}, [&] { manifest_of(good_manifest + std::string(2 << 20, ' ')); });
}

TEST(Manifest, OperatorsWithAnyNumberOfOperandsAreRefused) {
  const std::string text =
      R"({"cermet_kernel": 1, "name": "a.concat", "operator": "concat", "code": {"kind": "shared_object", "file": "a.so", "entry": "f"},
    "operands": {"inputs": {"type": "f32", "dims": ["N"]}}, "results": {"y": {"type": "f32", "dims": ["N"]}}, "parameters": [{"pointer": "y"}]})";
  const auto error = error_of([&] { manifest_of(text); });
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->status(), Status::invalid_file) << error->what();
}

TEST(Manifest, CasesTakeEverySizeAndElementType) {
  const Manifest m =
      manifest_of(changed("\"workspace_bytes\": \"M * 4\"", R"("cases": [{"M": 3, "N": 64}, {"M": 1, "N": 8}])"));
  const std::vector<Case> cases = foreign::cases_of(m), own = m.op->cases();
  ASSERT_EQ(cases.size(), own.size() + 4);
  EXPECT_EQ(cases[own.size()].name, "manifest_0_f32");
  EXPECT_EQ(cases[own.size()].inputs[0]->type.to_string(), "f32[3, 64]");
  EXPECT_EQ(cases[own.size() + 3].inputs[1]->type.to_string(), "bf16[8]");
}

const std::string triton_manifest = R"({
  "cermet_kernel": 1, "name": "test.triton", "operator": "rms_norm",
  "code": {"kind": "triton", "file": "k.cubin", "metadata": "k.json"},
  "operands": {"x": {"type": "bf16", "dims": ["M...", "N"]}},
  "results": {"y": {"type": "bf16", "dims": ["M...", "N"]}},
  "parameters": [{"pointer": "x"}, {"pointer": "y"}, {"i32": "N"}],
  "grid": "M"
})";
const std::string triton_metadata =
    R"({"name": "rms", "num_warps": 4, "shared": 32, "num_ctas": 1, "target": {"backend": "cuda", "arch": 90, "warp_size": 32}, "global_scratch_size": 0,
        "profile_scratch_size": 0, "other": null})";

Manifest triton(const std::string& manifest, const std::string& metadata) {
  const ScratchFolder folder;
  folder.file("k.json", metadata);
  return foreign::read_manifest(folder.file("m.json", manifest));
}

TEST(Manifest, TritonsMetadataSaysHowToLaunch) {
  const Manifest m = triton(triton_manifest, triton_metadata);
  ASSERT_EQ(m.instances.size(), 1u);
  EXPECT_EQ(m.instances[0].entry, "rms");
  EXPECT_EQ(m.instances[0].threads, 128);
  EXPECT_EQ(m.instances[0].shared_bytes, 32);
  EXPECT_EQ(m.instances[0].scratch_pointers, 2);
  EXPECT_EQ(m.architectures, std::vector<std::string>{"sm_90a"});
  EXPECT_EQ(m.files(), (std::vector<std::string>{"k.cubin", "k.json"}));
}

TEST(Manifest, MistakesInTritonsMetadataNameTheField) {
  const auto refused = [](const std::string& from, const std::string& to, std::string_view message) {
    expect_error(Status::invalid_file, {message, "k.json"},
                 [&] { triton(triton_manifest, changed(from, to, triton_metadata)); });
  };
  refused("\"backend\": \"cuda\"", "\"backend\": \"hip\"", "target.backend: expected \"cuda\", found \"hip\"");
  refused("\"global_scratch_size\": 0", "\"global_scratch_size\": 128",
          "global_scratch_size: expected 0: a kernel that takes no scratch memory");
  refused("\"num_warps\": 4", "\"num_warps\": 64", "num_warps: expected an integer from 1 to 32, found 64");
  refused("\"num_ctas\": 1", "\"num_ctas\": 2", "num_ctas");
  refused("\"name\": \"rms\", ", "", "name");
  expect_error(Status::invalid_file, {"block: expected none in a kernel of kind triton"}, [&] {
    triton(changed("\"grid\": \"M\"", "\"grid\": \"M\", \"block\": 128", triton_manifest), triton_metadata);
  });
}

}  // namespace
}  // namespace cermet::test
