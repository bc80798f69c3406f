#include "model/parallel/shard_reader.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.hpp"

namespace cermet {
namespace {

/// A tensor of a rank. Bytes of the rank's rows lie `stride` apart in the stored tensor, from `offset` on; rows beyond `present` are zeros.
struct Piece {
  StoredTensor local;
  const StoredTensor* stored = nullptr;
  std::int64_t offset = 0, row_bytes = 0, stride = 0, present = 0;
  std::vector<std::byte> data = {};  ///< in place of all that: what a shape says
};

class ShardedTensors {
 public:
  ShardedTensors(TensorReader reader, const ModelConfig& whole, ModelShard shard) : reader_(std::move(reader)) {
    for (const auto& [module, part] : module_parts(whole, shard)) {
      for (const char* matrix : {".weight", ".weight_packed"}) add(module + matrix, part);
      for (const char* rows : {".weight_scale", ".weight_offset", ".deq_scale"})
        if (part.axis == 0) add(module + rows, part);
      for (const char* added : {".bias", ".quant_bias"})
        if (part.axis == 0) add(module + added, part);
        else if (shard.rank != 0) add_zeros(module + added);
      add_shape(module + ".weight_shape", part);
    }
  }

  const StoredTensor* find(std::string_view name) const {
    const auto found = pieces_.find(std::string(name));
    return found == pieces_.end() ? reader_.find(name) : &found->second.local;
  }

  void read(const StoredTensor& tensor, std::int64_t offset, std::span<std::byte> destination) const {
    const auto found = pieces_.find(tensor.name);
    if (found == pieces_.end()) return reader_.read(tensor, offset, destination);
    const Piece& piece = found->second;
    if (!piece.data.empty()) {
      std::memcpy(destination.data(), piece.data.data() + offset, destination.size());
      return;
    }
    while (!destination.empty()) {
      const std::int64_t row = offset / piece.row_bytes, in_row = offset % piece.row_bytes;
      // Rows that lie side by side are one read.
      const std::int64_t rows = piece.stride == piece.row_bytes ? std::max<std::int64_t>(piece.present - row, 1) : 1;
      const auto count = std::min(static_cast<std::int64_t>(destination.size()), rows * piece.row_bytes - in_row);
      const auto part = destination.first(static_cast<std::size_t>(count));
      if (row < piece.present) reader_.read(*piece.stored, piece.offset + row * piece.stride + in_row, part);
      else std::ranges::fill(part, std::byte{});
      destination = destination.subspan(part.size());
      offset += count;
    }
  }

 private:
  void add(const std::string& name, const TensorPart& part) {
    const StoredTensor* stored = reader_.find(name);
    if (stored == nullptr || stored->elements() <= 1) return;  // one scale for all rows
    // Packed words hold four columns.
    const std::int64_t unit = part.axis == 1 && name.ends_with("_packed") ? 4 : 1;
    Piece piece{*stored, stored};
    const auto size = static_cast<std::int64_t>(size_of(stored->dtype)), whole = stored->shape.at(static_cast<std::size_t>(part.axis));
    CERMET_ASSERT((part.begin + part.present) / unit <= whole);
    piece.local.shape[static_cast<std::size_t>(part.axis)] = part.count / unit;
    const std::int64_t rows = stored->shape.at(0), row_bytes = rows > 0 ? stored->bytes() / rows : 0;
    piece.stride = row_bytes;
    piece.row_bytes = part.axis == 0 ? row_bytes : part.count / unit * size;
    piece.offset = part.axis == 0 ? part.begin * row_bytes : part.begin / unit * size;
    piece.present = part.axis == 0 ? part.present : rows;
    piece.local.begin = 0;
    piece.local.end = piece.row_bytes * piece.local.shape.at(0);
    pieces_.emplace(name, std::move(piece));
  }

  void add_zeros(const std::string& name) {
    const StoredTensor* stored = reader_.find(name);
    if (stored == nullptr) return;
    pieces_.emplace(name, Piece{.local = *stored, .stored = stored, .row_bytes = stored->bytes(), .stride = stored->bytes()});
  }

  /// Rows and columns of a packed weight, as two i64.
  void add_shape(const std::string& name, const TensorPart& part) {
    const StoredTensor* stored = reader_.find(name);
    if (stored == nullptr) return;
    std::int64_t shape[2];
    CERMET_ASSERT(stored->bytes() == sizeof shape);
    reader_.read(*stored, 0, std::as_writable_bytes(std::span(shape)));
    shape[part.axis] = part.count;
    const auto bytes = std::as_bytes(std::span(shape));
    pieces_.emplace(name, Piece{.local = *stored, .stored = stored, .data = {bytes.begin(), bytes.end()}});
  }

  TensorReader reader_;
  std::unordered_map<std::string, Piece> pieces_;
};

}  // namespace

TensorReader sharded_reader(TensorReader reader, const ModelConfig& whole, ModelShard shard) {
  const auto tensors = std::make_shared<const ShardedTensors>(std::move(reader), whole, shard);
  return {[tensors](std::string_view name) { return tensors->find(name); },
          [tensors](const StoredTensor& tensor, std::int64_t offset, std::span<std::byte> destination) { tensors->read(tensor, offset, destination); }};
}

}  // namespace cermet
