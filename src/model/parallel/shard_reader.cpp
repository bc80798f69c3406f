#include "model/parallel/shard_reader.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "model/parallel/module_parts.hpp"

namespace cermet {
namespace {

/// A tensor of a rank: along `part.axis`, elements of the stored tensor or zeros.
struct Piece {
  StoredTensor local;
  const StoredTensor* stored = nullptr;
  std::vector<TensorPart::Segment> segments = {};  ///< of rows; of bytes of a row where columns are cut
  bool rows = true;                                ///< which of the two
  std::byte padding = {};                          ///< what zeros are
  std::vector<std::byte> data = {};                ///< in place of all that: what a shape says

  std::int64_t row_bytes() const { return local.shape.at(0) > 0 ? local.bytes() / local.shape[0] : 0; }
  std::int64_t stored_row_bytes() const { return stored->shape.at(0) > 0 ? stored->bytes() / stored->shape[0] : 0; }
};

class ShardedTensors {
 public:
  ShardedTensors(TensorReader reader, const DecoderModel& whole, ModelShard shard) : reader_(std::move(reader)) {
    for (const auto& [module, part] : module_parts(whole, shard)) {
      for (const char* matrix : {".weight", ".weight_packed"}) add(module + matrix, part);
      for (const char* of_rows : {".weight_scale", ".weight_offset", ".deq_scale"})
        if (part.axis == 0) add(module + of_rows, part);
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
    } else if (piece.rows) {
      read_segments(piece, piece.row_bytes(), 0, offset, destination);
    } else {
      while (!destination.empty()) {
        const std::int64_t row = offset / piece.row_bytes(), in_row = offset % piece.row_bytes();
        const auto count = std::min(destination.size(), static_cast<std::size_t>(piece.row_bytes() - in_row));
        read_segments(piece, 1, row * piece.stored_row_bytes(), in_row, destination.first(count));
        destination = destination.subspan(count);
        offset += static_cast<std::int64_t>(count);
      }
    }
  }

 private:
  /// Bytes from `offset` on of segments of `unit` bytes an element, the first of which is at byte `base` of the stored
  /// tensor.
  void read_segments(const Piece& piece, std::int64_t unit, std::int64_t base, std::int64_t offset,
                     std::span<std::byte> destination) const {
    for (const TensorPart::Segment& segment : piece.segments) {
      if (destination.empty()) return;
      const std::int64_t bytes = segment.count * unit;
      if (offset >= bytes) {
        offset -= bytes;
        continue;
      }
      const auto part = destination.first(std::min(destination.size(), static_cast<std::size_t>(bytes - offset)));
      if (segment.begin < 0) std::ranges::fill(part, piece.padding);
      else reader_.read(*piece.stored, base + segment.begin * unit + offset, part);
      destination = destination.subspan(part.size());
      offset = 0;
    }
    CERMET_ASSERT(destination.empty());
  }

  void add(const std::string& name, const TensorPart& part) {
    const StoredTensor* stored = reader_.find(name);
    if (stored == nullptr || (!name.ends_with(".weight") && stored->elements() == 1)) return;  // one scale for all rows
    Piece piece{.local = *stored, .stored = stored, .segments = part.segments, .rows = part.axis == 0};
    const auto size = byte_size(stored->dtype);
    // Four columns to a packed word, each + 128.
    const bool packed = name.ends_with("_packed");
    const std::int64_t columns_of_element = packed ? 4 : 1;
    if (packed) piece.padding = std::byte{0x80};
    std::int64_t count = part.count();
    if (!piece.rows) {
      count = div_up(count, columns_of_element);
      std::int64_t left = count;
      for (TensorPart::Segment& segment : piece.segments) {
        const std::int64_t elements = std::min(left, div_up(segment.count, columns_of_element));
        left -= elements;
        segment = {segment.begin < 0 ? -1 : segment.begin / columns_of_element * size, elements * size};
      }
    }
    std::int64_t elements = 1;
    piece.local.shape.at(static_cast<std::size_t>(part.axis)) = count;
    for (const std::int64_t dim : piece.local.shape) elements *= dim;
    piece.local.begin = 0;
    piece.local.end = elements * size;
    pieces_.emplace(name, std::move(piece));
  }

  void add_zeros(const std::string& name) {
    const StoredTensor* stored = reader_.find(name);
    if (stored == nullptr) return;
    pieces_.emplace(name, Piece{.local = *stored, .stored = stored, .segments = {{-1, stored->shape.at(0)}}});
  }

  /// Rows and columns of a packed weight, as two i64.
  void add_shape(const std::string& name, const TensorPart& part) {
    const StoredTensor* stored = reader_.find(name);
    if (stored == nullptr) return;
    std::int64_t shape[2];
    CERMET_ASSERT(stored->bytes() == sizeof shape);
    reader_.read(*stored, 0, std::as_writable_bytes(std::span(shape)));
    shape[part.axis] = part.count();
    const auto bytes = std::as_bytes(std::span(shape));
    pieces_.emplace(name, Piece{.local = *stored, .stored = stored, .data = {bytes.begin(), bytes.end()}});
  }

  TensorReader reader_;
  std::unordered_map<std::string, Piece> pieces_;
};

}  // namespace

TensorReader sharded_reader(TensorReader reader, const DecoderModel& whole, ModelShard shard) {
  const auto tensors = std::make_shared<const ShardedTensors>(std::move(reader), whole, shard);
  return {[tensors](std::string_view name) { return tensors->find(name); },
          [tensors](const StoredTensor& tensor, std::int64_t offset, std::span<std::byte> destination) {
            tensors->read(tensor, offset, destination);
          }};
}

}  // namespace cermet
