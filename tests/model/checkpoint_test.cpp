#include "model/checkpoint/checkpoint.hpp"

#include <algorithm>

#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet {
namespace {

using test::content_of;
using test::expect_error;
using test::ScratchFolder;

/// A folder with the configuration of a small model and a shard for each given list of (name, value): tensors of one
/// byte.
struct Folder {
  ScratchFolder scratch;

  Folder() { scratch.file("config.json", content_of(small_model / "config.json")); }
  void shard(std::string_view file, std::vector<std::string> names) const {
    std::vector<TensorSpec> specs;
    for (const std::string& name : names) specs.push_back({name, DType::u8, {1}});
    SafetensorsWriter writer(scratch / file, specs);
    for (std::size_t i = 0; i < specs.size(); ++i) writer.write(i, 0, std::as_bytes(std::span(specs[i].name).first(1)));
    writer.commit();
  }
  void index(std::string_view weight_map) const {
    scratch.file("model.safetensors.index.json",
                 fmt::format(R"({{"metadata":{{"total_size":12345}},"weight_map":{}}})", weight_map));
  }
  Checkpoint open() const { return Checkpoint::open(scratch.path()); }
  void refuse(Status status, std::initializer_list<std::string_view> fragments) const {
    expect_error(status, fragments, [&] { open(); });
  }
};

TEST(Checkpoint, ReadsTheDemoModelFromTwoShards) {
  const Checkpoint demo = Checkpoint::open(source / "models/demo");
  EXPECT_EQ(demo.files().size(), 2u);
  EXPECT_EQ(demo.tensors().size(), 200u);
  EXPECT_EQ(demo.total_bytes(), 2 * 12730368);
  EXPECT_EQ(demo.config().architecture, Architecture::qwen3_moe);
  EXPECT_TRUE(std::is_sorted(demo.tensors().begin(), demo.tensors().end(),
                             [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; }));
  for (const ExpectedTensor& tensor : expected_tensors(demo.config()))
    EXPECT_NO_THROW(demo.require(tensor.name, tensor.shape));
  EXPECT_EQ(demo.file_of(*demo.find("model.layers.5.mlp.gate.weight")).path().filename(),
            "model-00002-of-00002.safetensors");
}

TEST(Checkpoint, RequireNamesWhatItFound) {
  const Checkpoint checkpoint = Checkpoint::open(small_model);
  const std::int64_t right[] = {320, 96}, wrong[] = {96, 320}, longer[] = {320, 96, 1};
  EXPECT_EQ(&checkpoint.require("lm_head.weight", right), checkpoint.find("lm_head.weight"));
  EXPECT_EQ(checkpoint.find("lm_head"), nullptr);
  expect_error(Status::invalid_file,
               {"model.safetensors: \"lm_head.weight\": expected shape [96, 320], found [320, 96]"},
               [&] { checkpoint.require("lm_head.weight", wrong); });
  expect_error(Status::invalid_file, {"expected shape [320, 96, 1]"},
               [&] { checkpoint.require("lm_head.weight", longer); });
  expect_error(Status::invalid_file, {"llama-gqa-f32: expected the tensor \"nothing\" of shape [320, 96], found none"},
               [&] { checkpoint.require("nothing", right); });
  const Folder bytes;
  bytes.shard("model.safetensors", {"x"});
  const std::int64_t one[] = {1};
  expect_error(Status::unsupported, {"\"x\": expected f16, bf16, f32 or f64, found u8"},
               [&] { bytes.open().require("x", one); });
}

TEST(Checkpoint, ReadsData) {
  Folder folder;
  folder.shard("one.safetensors", {"b", "d"});
  folder.shard("two.safetensors", {"a", "c"});
  folder.index(R"({"a":"two.safetensors","b":"one.safetensors","c":"two.safetensors","d":"one.safetensors"})");
  Checkpoint checkpoint = Checkpoint::open(folder.scratch.path());
  const Checkpoint moved = std::move(checkpoint);
  std::string all;
  for (const StoredTensor& tensor : moved.tensors()) {
    std::byte value{};
    moved.read(tensor, 0, {&value, 1});
    all += std::to_integer<char>(value);
  }
  EXPECT_EQ(all, "abcd");  // sorted by name; a tensor's byte is the first of its name
  EXPECT_EQ(moved.total_bytes(), 4);
}

TEST(Checkpoint, OneFileWinsOverAnIndex) {
  const Folder folder;
  folder.shard("model.safetensors", {"a"});
  folder.index(R"({"a":"absent.safetensors"})");
  EXPECT_EQ(folder.open().tensors().size(), 1u);
}

TEST(Checkpoint, RefusesAFolderWithoutWeights) {
  const Folder folder;
  folder.refuse(Status::io, {"expected model.safetensors or model.safetensors.index.json, found neither"});
  folder.scratch.file("pytorch_model.bin", "");
  folder.refuse(Status::io, {"found \"pytorch_model.bin\" only"});
  std::filesystem::remove(folder.scratch / "config.json");
  folder.refuse(Status::io, {"expected a folder with config.json"});
}

TEST(Checkpoint, RefusesAFileOfBadConfigurationBeforeItsWeights) {
  const Folder folder;
  folder.scratch.file("model.safetensors", "not a safetensors file");
  folder.refuse(Status::invalid_file, {"model.safetensors: expected a header length"});
  folder.scratch.file("config.json", R"({"architectures":["BertModel"]})");
  folder.refuse(Status::unsupported, {"config.json: architectures[0]", "\"BertModel\""});
}

TEST(Checkpoint, RefusesAnIndexThatPointsElsewhere) {
  const Folder folder;
  for (const std::string_view name :
       {"../model.safetensors", "/etc/passwd", "sub/model.safetensors", "..", ".", "", "a\\\\b", "a\\u0000b"}) {
    SCOPED_TRACE(name);
    folder.index(fmt::format(R"({{"x":"{}"}})", name));
    folder.refuse(
        Status::invalid_file,
        {"model.safetensors.index.json: weight_map.x: expected the plain name of a file in the same folder, found \""});
  }
  folder.index(R"({"x":7})");
  folder.refuse(Status::invalid_file, {"weight_map.x: expected a string, found 7"});
}

TEST(Checkpoint, RefusesAnIndexThatDoesNotFitItsFiles) {
  const Folder folder;
  folder.shard("one.safetensors", {"a", "b"});
  folder.index("{}");
  folder.refuse(Status::invalid_file, {"weight_map: expected at least one tensor"});
  folder.index("[]");
  folder.refuse(Status::invalid_file, {"weight_map: expected an object"});
  folder.scratch.file("model.safetensors.index.json", "{}");
  folder.refuse(Status::invalid_file, {"weight_map: expected a value, found nothing"});
  folder.index(R"({"a":"one.safetensors","b":"two.safetensors"})");
  folder.refuse(Status::io, {"expected the file \"two.safetensors\", found none"});
  folder.shard("two.safetensors", {"c"});
  EXPECT_EQ(folder.open().tensors().size(),
            3u);  // "b" is in another file than the index says, which readers take as it is
  folder.index(R"({"a":"one.safetensors","a":"one.safetensors"})");
  folder.refuse(Status::invalid_file, {"found \"a\" twice"});
}

TEST(Checkpoint, RefusesABrokenShard) {
  const Folder folder;
  folder.shard("one.safetensors", {"a", "b"});
  folder.index(R"({"a":"one.safetensors","b":"one.safetensors"})");
  EXPECT_EQ(folder.open().tensors().size(), 2u);
  std::filesystem::resize_file(folder.scratch / "one.safetensors",
                               std::filesystem::file_size(folder.scratch / "one.safetensors") - 1);
  folder.refuse(Status::invalid_file, {"one.safetensors: \"b\": expected data within 1 bytes"});
  std::filesystem::remove(folder.scratch / "one.safetensors");
  std::filesystem::create_directory(folder.scratch / "one.safetensors");
  folder.refuse(Status::io, {"one.safetensors: expected a regular file, found a folder"});
}

}  // namespace
}  // namespace cermet
