// Byte pair encoding (Sennrich et al., 2016): of all neighbouring pairs that the file can merge, the one of lowest rank
// first, the leftmost on ties.
#pragma once

#include <array>
#include <cstdint>
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
    std::string name;  ///< of a character with prefix and suffix
    /// Possible merges as rank << 32 | position: those of the piece's characters, sorted, and a heap of those that
    /// merging adds. Two lists, because a long piece has most candidates at the start, and a heap of millions misses
    /// the cache at every step.
    std::vector<std::uint64_t> first_candidates, later_candidates;
    StringMap<Range> seen;  ///< pieces to ranges of `ids`
    std::vector<std::int32_t> ids;
  };

  /// Reads the `model` object of a tokenizer.json, whose `vocab` is given. Throws Error(invalid_file) where a field or
  /// merge is broken, Error(unsupported) for dropout, which makes ids random.
  Bpe(Json model, const Vocabulary& vocabulary);

  /// Appends the ids of a piece, which is merged by itself. Takes O(n log n) time. A character without a token becomes
  /// the tokens of its bytes ("<0xE2>", where the file wants that and has all), else the unknown token, else nothing.
  void encode(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const;

  /// Whether encode can return the id: a character, the result of a merge, or a whole piece under ignore_merges.
  bool can_emit(std::int32_t id) const {
    return static_cast<std::size_t>(id) < emitted_.size() && emitted_[static_cast<std::size_t>(id)];
  }

 private:
  struct Merge {
    std::int32_t left, right, result;
  };
  static constexpr std::size_t longest_seen = 64, most_seen = 1 << 16;  ///< bounds of the workspace's memory

  void read_merges(Json merges, const Vocabulary& vocabulary);
  void add_merge(std::string_view left, std::string_view right, Json at, const Vocabulary& vocabulary);
  void read_characters(const Vocabulary& vocabulary);
  std::int32_t id_of(std::string_view character, bool first, bool last, Workspace& workspace) const;
  void split(std::string_view piece, Workspace& workspace) const;
  void merge(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const;
  bool propose(const Workspace& workspace, std::int32_t position, std::vector<std::uint64_t>& candidates) const;
  bool has_affixes() const { return !prefix_.empty() || !suffix_.empty(); }

  std::string prefix_, suffix_;  ///< of all characters of a piece but the first; of the last
  std::array<std::int32_t, 512>
      common_;  ///< ids of the characters below U+0200, which have every name of a byte; -1: no token
  StringMap<std::int32_t> characters_;     ///< the others; all tokens where characters have a prefix or suffix
  std::array<std::int32_t, 256> bytes_{};  ///< "<0x00>" and on; -1: no token, or byte_fallback is off
  std::string unknown_name_;               ///< "": none
  std::optional<std::int32_t> unknown_;
  bool fuse_unknown_ = false, ignore_merges_ = false;
  std::vector<Merge> merges_;                               ///< by rank
  std::unordered_map<std::uint64_t, std::uint32_t> ranks_;  ///< left << 32 | right to rank
  StringMap<std::int32_t> whole_;                           ///< all tokens, for ignore_merges
  std::vector<bool> emitted_;
};

}  // namespace cermet
