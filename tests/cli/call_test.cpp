// cermet call: results, files and mistakes.
#include "io/npy.hpp"
#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

class Call : public testing::Test {
 protected:
  template <class T>
  std::string file(const char* name, DType dtype, const Shape& shape, const std::vector<T>& elements) {
    OwnedTensor tensor(dtype, shape);
    std::memcpy(tensor.view.data, elements.data(), elements.size() * sizeof(T));
    write_npy(folder / name, tensor.view);
    return (folder / name).string();
  }
  std::string out(const char* name) const { return (folder / name).string(); }
  template <class T>
  std::vector<T> elements(const char* name, DType dtype) {
    const OwnedTensor tensor = read_npy(folder / name);
    EXPECT_EQ(tensor.view.dtype, dtype);
    return {tensor.view.as<T>(), tensor.view.as<T>() + tensor.view.elements()};
  }

  ScratchFolder folder;
  const std::string a = file<float>("a.npy", DType::f32, {2, 3}, {1, 2, 3, 4, 5, 6}),
                    b = file<float>("b.npy", DType::f32, {3, 2}, {1, 0, 0, 1, 1, 1}),
                    w = file<float>("w.npy", DType::f32, {3}, {1, 10, 100});
};

TEST_F(Call, WritesAndPrintsResults) {
  const CommandResult result = run_cermet("call matmul --input " + a + " --input " + b + " --json -o " + out("y.npy"));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.json()["outputs"][0]["type"], "f32[2, 2]");
  EXPECT_TRUE(result.json()["kernel"].is_string());
  EXPECT_EQ(elements<float>("y.npy", DType::f32), (std::vector<float>{4, 5, 10, 11}));
  const CommandResult text = run_cermet("call matmul --input b=" + b + " --input a=" + a);
  EXPECT_NE(text.out.find("4, 5, 10, 11"), std::string::npos) << text.out << text.err;
}

TEST_F(Call, TakesAttributesConstantsAndKernels) {
  const std::string call = "call rms_norm --input " + a + " --input weight=" + w +
                           " --attr eps=0 --attr out_dtype=bf16 --kernel rowwise.rms_norm";
  ASSERT_EQ(run_cermet(call + " -o " + out("y.npy")).code, 0);
  EXPECT_EQ(elements<std::uint16_t>("y.npy", DType::bf16).size(), 6u);
  const CommandResult split = run_cermet("call split --input " + w + " --attr 'sizes=[1, 2]' -o " + out("first.npy") +
                                         " -o " + out("second.npy"));
  ASSERT_EQ(split.code, 0) << split.err;
  EXPECT_EQ(elements<float>("first.npy", DType::f32), (std::vector<float>{1}));
  EXPECT_EQ(elements<float>("second.npy", DType::f32), (std::vector<float>{10, 100}));
  for (const char* constant : {"none", "w"}) {
    const CommandResult linear =
        run_cermet("call linear --input " + a + " --input " + a + " --constant " + constant + " -o " + out("y.npy"));
    ASSERT_EQ(linear.code, 0) << linear.err;
    EXPECT_EQ(elements<float>("y.npy", DType::f32), (std::vector<float>{14, 32, 32, 77})) << constant;
  }
}

TEST_F(Call, ReadsBytesAsTheTypeThatIsNamed) {
  const std::string halves = file<std::uint16_t>("h.npy", DType::u16, {2}, {0x3f80, 0x4000});
  ASSERT_EQ(run_cermet("call cast --input " + halves + ":bf16 --attr out_dtype=f32 -o " + out("y.npy")).code, 0);
  EXPECT_EQ(elements<float>("y.npy", DType::f32), (std::vector<float>{1, 2}));
  expect_mistake("call cast --input " + halves + ":f32 --attr out_dtype=f16", {"h.npy", "4 bytes", "u16"});
}

TEST_F(Call, StateIsUpdatedInACopy) {
  const std::string rows = file<float>("rows.npy", DType::f32, {1, 1, 2}, {7, 8}),
                    slots = file<std::int64_t>("slots.npy", DType::i64, {1}, {1}),
                    cache = file<float>("cache.npy", DType::f32, {1, 1, 8, 2}, std::vector<float>(16));
  const CommandResult result = run_cermet("call kv_cache_write --input " + rows + " --input " + rows + " --input " +
                                          cache + " --input " + cache + " --input " + slots + " -o " + out("k.npy"));
  ASSERT_EQ(result.code, 0) << result.err;
  const std::vector<float> k = elements<float>("k.npy", DType::f32);
  EXPECT_EQ(std::vector<float>(k.begin(), k.begin() + 6), (std::vector<float>{0, 0, 7, 8, 0, 0}));
  EXPECT_EQ(elements<float>("cache.npy", DType::f32), std::vector<float>(16));
}

TEST_F(Call, MistakesWriteNothing) {
  expect_mistake("call matmull --input " + a, {"operator", "matmul", "\"matmull\""});
  expect_mistake("call matmul --input " + a + " --input " + a + " -o " + out("y.npy"), {"matmul", "operand 1 (b)"});
  expect_mistake("call matmul --input a=" + a + " --input a=" + a, {"--input a=", "twice"});
  expect_mistake("call matmul --input " + a + " --input " + out("none.npy"), {"none.npy"});
  expect_mistake("call matmul --input " + a, {"matmul", "operand 1 (b)", "nothing"});
  expect_mistake("call rms_norm --input " + a + " --attr eps", {"--attr", "NAME=VALUE", "\"eps\""});
  expect_mistake("call rms_norm --input " + a + " --attr epsilon=1", {"rms_norm", "\"epsilon\""});
  expect_mistake("call rms_norm --input " + a + " --kernel rowwise.rms", {"--kernel", "rowwise.rms_norm"});
  expect_mistake("call rms_norm --input " + a + " -o " + out("y.npy") + " -o " + out("z.npy"),
                 {"--output", "at most 1", "found 2"});
  const CommandResult null = run_cermet("call rms_norm --input " + a + " --device null -o " + out("y.npy"));
  EXPECT_NE(null.code, 0);
  EXPECT_NE(null.err.find("expected one that computes"), std::string::npos) << null.err;
  EXPECT_FALSE(std::filesystem::exists(folder / "y.npy"));
}

}  // namespace
}  // namespace cermet::test
