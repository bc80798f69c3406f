#include "model/synth.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "io/new_folder.hpp"
#include "io/safetensors.hpp"
#include "model/config.hpp"
#include "model/random_weights.hpp"

namespace cermet {
namespace {

constexpr std::int64_t fill_piece_bytes = std::int64_t{256} << 10;  // a multiple of 4 elements of every type

/// Tensors of one safetensors file.
struct Shard {
  std::vector<TensorSpec> tensors;
  std::vector<double> means;
  std::int64_t bytes = 0;
};

std::vector<Shard> split(const ModelConfig& config, std::int64_t max_bytes) {
  std::vector<Shard> shards(1);
  for (ExpectedTensor& tensor : expected_tensors(config)) {
    std::int64_t bytes = byte_size(config.dtype);
    for (const std::int64_t dim : tensor.shape) bytes *= dim;
    if (shards.back().bytes > 0 && shards.back().bytes + bytes > max_bytes) shards.emplace_back();
    shards.back().tensors.push_back({std::move(tensor.name), config.dtype, std::move(tensor.shape)});
    shards.back().means.push_back(tensor.mean);
    shards.back().bytes += bytes;
  }
  return shards;
}

std::string file_name(std::size_t shard, std::size_t count) {
  return count == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, count);
}

/// Fills files with random tensors, a piece at a time on every thread.
class Filler {
 public:
  Filler(const SynthOptions& options, const ModelConfig& config, std::int64_t total_bytes)
      : options_(options),
        weights_(config.dtype, 0, config.initializer_range),
        norms_(config.dtype, 1, config.initializer_range),
        total_(total_bytes) {}

  void fill(SafetensorsWriter& writer, const Shard& shard, ThreadPool& pool);

 private:
  struct TensorPiece {
    std::size_t tensor;
    std::int64_t begin;
  };
  void write(SafetensorsWriter& writer, const Shard& shard, TensorPiece piece, std::vector<std::byte>& buffer);

  const SynthOptions& options_;
  RandomWeights weights_, norms_;
  std::int64_t total_;
  std::atomic<std::int64_t> done_{0};
};

void Filler::fill(SafetensorsWriter& writer, const Shard& shard, ThreadPool& pool) {
  std::vector<TensorPiece> pieces;
  for (std::size_t tensor = 0; tensor < shard.tensors.size(); ++tensor) {
    for (std::int64_t begin = 0; begin < writer.bytes_of(tensor); begin += fill_piece_bytes)
      pieces.push_back({tensor, begin});
  }
  std::atomic<std::size_t> next{0};
  pool.run([&](int thread) {
    try {
      std::vector<std::byte> buffer(fill_piece_bytes);
      for (std::size_t i = next++; i < pieces.size(); i = next++) {
        if (options_.cancelled != nullptr && options_.cancelled->load())
          fail(Status::cancelled, "{}: cancelled", options_.out.string());
        write(writer, shard, pieces[i], buffer);
        if (thread == 0 && options_.on_progress) options_.on_progress(done_, total_);
      }
    } catch (...) {
      next = pieces.size();  // the other threads stop after their piece
      throw;
    }
  });
  if (options_.on_progress) options_.on_progress(done_, total_);
}

void Filler::write(SafetensorsWriter& writer, const Shard& shard, TensorPiece piece, std::vector<std::byte>& buffer) {
  const TensorSpec& tensor = shard.tensors[piece.tensor];
  const std::int64_t bytes = std::min(fill_piece_bytes, writer.bytes_of(piece.tensor) - piece.begin);
  const std::span<std::byte> part = std::span(buffer).first(static_cast<std::size_t>(bytes));
  const RandomWeights& values = shard.means[piece.tensor] == 1 ? norms_ : weights_;
  values.fill(options_.seed, tensor.name, piece.begin / byte_size(tensor.dtype), part);
  writer.write(piece.tensor, piece.begin, part);
  done_ += bytes;
}

void write_index(const std::filesystem::path& folder, const std::vector<Shard>& shards, std::int64_t total_bytes) {
  std::map<std::string, std::string> files;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    for (const TensorSpec& tensor : shards[i].tensors) files[tensor.name] = file_name(i, shards.size());
  }
  write_safetensors_index(folder / "model.safetensors.index.json", files, total_bytes);
}

}  // namespace

SynthResult write_random_checkpoint(const SynthOptions& options, ThreadPool& pool) {
  require(options.max_file_bytes > 0, "max_file_bytes: expected at least 1, found {}", options.max_file_bytes);
  const ModelConfig config = load_config_file(options.config_file);
  const std::vector<Shard> shards = split(config, options.max_file_bytes);
  SynthResult result{.files = static_cast<std::int64_t>(shards.size())};
  for (const Shard& shard : shards) {
    result.tensors += static_cast<std::int64_t>(shard.tensors.size());
    result.bytes += shard.bytes;
  }
  result.parameters = result.bytes / byte_size(config.dtype);

  NewFolder folder(options.out);
  require_disk_space(folder.path(), result.bytes);
  Filler filler(options, config, result.bytes);
  const std::vector<std::pair<std::string, std::string>> metadata{{"format", "pt"}};
  for (std::size_t i = 0; i < shards.size(); ++i) {
    SafetensorsWriter writer(folder.path() / file_name(i, shards.size()), shards[i].tensors, metadata);
    filler.fill(writer, shards[i], pool);
    writer.commit();
  }
  if (shards.size() > 1) write_index(folder.path(), shards, result.bytes);
  write_file_atomically(folder.path() / "config.json", read_file(options.config_file));
  folder.commit();
  return result;
}

}  // namespace cermet
