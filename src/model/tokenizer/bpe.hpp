// Byte pair encoding (Sennrich et al., 2016) over bytes: of all neighbouring pairs that the file can merge, the one of lowest rank first, the leftmost on ties.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "io/json_file.hpp"
#include "model/tokenizer/vocabulary.hpp"

namespace cermet {

class Bpe {
 public:
  /// Memory of one call of Tokenizer::encode: scratch of the merging, and the pieces already seen.
  class Workspace {
    friend class Bpe;
    struct Symbol {
      std::int32_t id;  ///< -1 once it is merged into its left neighbour
      std::int32_t previous, next;
    };
    struct Range {
      std::uint32_t begin, size;
    };
    std::vector<Symbol> symbols;
    /// Possible merges as rank << 32 | position: those of the piece's bytes, sorted, and a heap of those that merging adds. Two lists, because a long
    /// piece has most candidates at the start, and a heap of millions misses the cache at every step.
    std::vector<std::uint64_t> first_candidates, later_candidates;
    StringMap<Range> seen;  ///< pieces to ranges of `ids`
    std::vector<std::int32_t> ids;
  };

  /// Reads the `model` object of a tokenizer.json, whose `vocab` is given. Throws Error(invalid_file) where a field or merge is broken, Error(unsupported) for
  /// settings that change the ids in ways that a byte-level vocabulary does not need (dropout, prefixes, suffixes, byte_fallback).
  Bpe(Json model, const Vocabulary& vocabulary);

  /// Appends the ids of a piece, which is merged by itself. Takes O(n log n) time. Throws Error(invalid_argument) for a byte without a token.
  void encode(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const;

  /// Whether encode can return the id: a byte, the result of a merge, or a whole piece under ignore_merges.
  bool can_emit(std::int32_t id) const { return static_cast<std::size_t>(id) < emitted_.size() && emitted_[static_cast<std::size_t>(id)]; }

 private:
  struct Merge {
    std::int32_t left, right, result;
  };
  static constexpr std::size_t longest_seen = 64, most_seen = 1 << 16;  ///< bounds of the workspace's memory

  void read_merges(Json merges, const Vocabulary& vocabulary);
  void add_merge(std::string_view left, std::string_view right, Json at, const Vocabulary& vocabulary);
  void merge(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const;
  bool propose(const Workspace& workspace, std::int32_t position, std::vector<std::uint64_t>& candidates) const;

  std::array<std::int32_t, 256> byte_ids_{};                ///< -1: no token
  std::vector<Merge> merges_;                               ///< by rank
  std::unordered_map<std::uint64_t, std::uint32_t> ranks_;  ///< left << 32 | right to rank
  bool ignore_merges_ = false;
  StringMap<std::int32_t> whole_;  ///< bytes to id, for ignore_merges
  std::vector<bool> emitted_;
};

}  // namespace cermet
