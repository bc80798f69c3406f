#include "model/checkpoint/checkpoint_files.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "base/error.hpp"
#include "io/new_folder.hpp"

namespace cermet {
namespace {

constexpr std::int64_t copy_piece_bytes = std::int64_t{8} << 20;

/// Tensors [begin, end) of one file.
struct Shard {
  std::size_t begin = 0, end = 0;
};

std::vector<Shard> split(const std::vector<OutputTensor>& tensors, std::int64_t max_bytes) {
  std::vector<Shard> shards(1);
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (bytes > 0 && bytes + tensors[i].size() > max_bytes) {
      shards.push_back({i, i});
      bytes = 0;
    }
    bytes += tensors[i].size();
    shards.back().end = i + 1;
  }
  return shards;
}

std::string file_name(const std::string& stem, std::size_t shard, std::size_t count) {
  return count == 1 ? stem + ".safetensors" : fmt::format("{}-{:05}-of-{:05}.safetensors", stem, shard + 1, count);
}

/// Copies a tensor piece by piece, and counts the bytes.
class Copier {
 public:
  Copier(const ShardOptions& options, std::int64_t total)
      : options_(options), total_(total), buffer_(copy_piece_bytes) {}

  void copy(const OutputTensor& tensor, SafetensorsWriter& writer, std::size_t index) {
    CERMET_ASSERT(writer.bytes_of(index) == tensor.size());
    for (std::int64_t at = 0; at < tensor.size(); at += copy_piece_bytes) {
      if (options_.cancelled != nullptr && options_.cancelled->load()) fail(Status::cancelled, "cancelled");
      const auto size = static_cast<std::size_t>(std::min(copy_piece_bytes, tensor.size() - at));
      if (tensor.file) {
        tensor.file->read(*tensor.stored, at, std::span(buffer_).first(size));
        if (tensor.flips_signs)
          for (std::byte& value : std::span(buffer_).first(size)) value ^= std::byte{0x80};
        writer.write(index, at, std::span(buffer_).first(size));
      } else {
        CERMET_ASSERT(!tensor.flips_signs);
        writer.write(index, at, std::span(tensor.bytes).subspan(static_cast<std::size_t>(at), size));
      }
      done_ += static_cast<std::int64_t>(size);
      if (options_.on_progress) options_.on_progress(done_, total_);
    }
  }

 private:
  const ShardOptions& options_;
  std::int64_t total_, done_ = 0;
  std::vector<std::byte> buffer_;
};

void write_index(const std::filesystem::path& folder, const std::vector<OutputTensor>& tensors,
                 const std::vector<Shard>& shards, const std::string& stem, std::int64_t total_bytes) {
  std::map<std::string, std::string> files;
  for (std::size_t i = 0; i < shards.size(); ++i)
    for (std::size_t t = shards[i].begin; t < shards[i].end; ++t)
      files[tensors[t].spec.name] = file_name(stem, i, shards.size());
  write_safetensors_index(folder / (stem + ".safetensors.index.json"), files, total_bytes);
}

}  // namespace

OutputTensor copy_of(const SafetensorsFile& file, const StoredTensor& stored, std::string_view name) {
  return {.spec = {std::string(name.empty() ? stored.name : name), stored.dtype, stored.shape},
          .file = &file,
          .stored = &stored,
          .bytes = {}};
}

std::vector<OutputTensor> packed(OutputTensor weight) {
  CERMET_ASSERT(weight.file && weight.spec.dtype == DType::i8 && weight.spec.shape.size() == 2 &&
                weight.spec.shape[1] % 4 == 0);
  const std::array<std::int64_t, 2> shape{weight.spec.shape[0], weight.spec.shape[1]};
  OutputTensor shape_tensor{.spec = {weight.spec.name + "_shape", DType::i64, {2}}, .bytes = {}};
  const auto bytes = std::as_bytes(std::span(shape));
  shape_tensor.bytes.assign(bytes.begin(), bytes.end());
  weight.spec = {weight.spec.name + "_packed", DType::i32, {shape[0], shape[1] / 4}};
  weight.flips_signs = !weight.flips_signs;
  return {std::move(weight), std::move(shape_tensor)};
}

OutputTensor unpacked(OutputTensor packed) {
  CERMET_ASSERT(packed.file && packed.spec.dtype == DType::i32 && packed.spec.name.ends_with("_packed"));
  packed.spec.name.resize(packed.spec.name.size() - std::string_view("_packed").size());
  packed.spec = {packed.spec.name, DType::i8, {packed.spec.shape.at(0), packed.spec.shape.at(1) * 4}};
  packed.flips_signs = !packed.flips_signs;
  return packed;
}

std::int64_t write_shards(const std::filesystem::path& folder, const std::vector<OutputTensor>& tensors,
                          const ShardOptions& options) {
  require(options.max_file_bytes > 0, "max_file_bytes: expected at least 1, found {}", options.max_file_bytes);
  std::int64_t total = 0;
  for (const OutputTensor& tensor : tensors) total += tensor.size();
  require_disk_space(folder, total);
  const std::vector<Shard> shards = split(tensors, options.max_file_bytes);
  Copier copier(options, total);
  const std::array<std::pair<std::string, std::string>, 1> metadata{{{"format", "pt"}}};
  for (std::size_t i = 0; i < shards.size(); ++i) {
    std::vector<TensorSpec> specs;
    for (std::size_t t = shards[i].begin; t < shards[i].end; ++t) specs.push_back(tensors[t].spec);
    SafetensorsWriter writer(folder / file_name(options.stem, i, shards.size()), specs, metadata);
    for (std::size_t t = shards[i].begin; t < shards[i].end; ++t) copier.copy(tensors[t], writer, t - shards[i].begin);
    writer.commit();
  }
  if (shards.size() > 1) write_index(folder, tensors, shards, options.stem, total);
  return static_cast<std::int64_t>(shards.size());
}

void copy_side_files(const std::filesystem::path& from, const std::filesystem::path& to) {
  for (const char* name : {"generation_config.json", "tokenizer.json", "tokenizer_config.json", "tokenizer.model",
                           "special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt",
                           "chat_template.jinja", "chat_template.json", "LICENSE", "LICENSE.txt", "NOTICE"}) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(from / name, ignored))
      write_file_atomically(to / name, read_file(from / name));
  }
}

}  // namespace cermet
