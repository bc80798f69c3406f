#include "model/tokenizer/bpe.hpp"

#include <algorithm>
#include <functional>

#include "base/text.hpp"
#include "model/tokenizer/byte_map.hpp"

namespace cermet {
namespace {

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

void refuse_unless(bool condition, Json value, std::string_view expected) {
  if (!condition) value.unexpected(expected, Status::unsupported);
}

/// Settings that a byte-level vocabulary leaves at their defaults.
void check_settings(Json model, bool every_byte_has_token) {
  if (const auto type = model.find("type")) refuse_unless(type->as_string() == "BPE", *type, "\"BPE\"");
  if (const auto dropout = model.find("dropout")) refuse_unless(dropout->as_number() == 0, *dropout, "null");
  if (const auto prefix = model.find("continuing_subword_prefix")) refuse_unless(prefix->as_string().empty(), *prefix, "null");
  if (const auto suffix = model.find("end_of_word_suffix")) refuse_unless(suffix->as_string().empty(), *suffix, "null");
  if (const auto fallback = model.find("byte_fallback")) refuse_unless(!fallback->as_bool(), *fallback, "false");
  if (const auto fuse = model.find("fuse_unk")) fuse->as_bool();
  if (const auto unknown = model.find("unk_token")) {
    unknown->as_string();  // never needed where every byte has a token
    refuse_unless(every_byte_has_token, *unknown, "null, or a token for every byte");
  }
}

}  // namespace

Bpe::Bpe(Json model, const Vocabulary& vocabulary) : emitted_(static_cast<std::size_t>(vocabulary.size()), false) {
  bool every_byte_has_token = true;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const std::optional<std::int32_t> id = vocabulary.find(name_of_bytes(std::string(1, static_cast<char>(static_cast<unsigned char>(byte)))));
    byte_ids_[byte] = id.value_or(-1);
    if (id) emitted_[static_cast<std::size_t>(*id)] = true;
    every_byte_has_token = every_byte_has_token && id;
  }
  check_settings(model, every_byte_has_token);
  read_merges(model.at("merges"), vocabulary);
  if (const auto ignore = model.find("ignore_merges")) ignore_merges_ = ignore->as_bool();
  if (!ignore_merges_) return;
  for (std::int32_t id = 0; id < vocabulary.size(); ++id) {
    if (!vocabulary.contains(id) || !vocabulary.is_byte_level(id)) continue;
    whole_.emplace(vocabulary.bytes(id), id);
    emitted_[static_cast<std::size_t>(id)] = true;
  }
}

void Bpe::read_merges(Json merges, const Vocabulary& vocabulary) {
  merges_.reserve(merges.as_array().size());
  ranks_.reserve(merges.size());
  for (Json merge : merges) {
    if (merge.is(JsonKind::array)) {
      if (merge.size() != 2) merge.unexpected("two tokens");
      const std::string_view left = merge.at(std::size_t{0}).as_string();
      add_merge(left, merge.at(1).as_string(), merge, vocabulary);
      continue;
    }
    const std::string_view text = merge.as_string();
    if (text.starts_with("#version")) continue;  // the first line of the text file that such lists come from
    const std::size_t space = text.find(' ');
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) merge.unexpected("two tokens with one space between");
    add_merge(text.substr(0, space), text.substr(space + 1), merge, vocabulary);
  }
}

void Bpe::add_merge(std::string_view left, std::string_view right, Json at, const Vocabulary& vocabulary) {
  const auto id = [&](std::string_view name) {
    const std::optional<std::int32_t> found = vocabulary.find(name);
    if (!found) at.refuse(fmt::format("expected tokens of the vocabulary, found {}", quote(name)));
    return *found;
  };
  const Merge merge{id(left), id(right), id(std::string(left) + std::string(right))};
  if (left.empty() || right.empty()) at.refuse("expected two tokens, found an empty one");
  const bool is_new = ranks_.emplace(pair_key(merge.left, merge.right), static_cast<std::uint32_t>(merges_.size())).second;
  if (!is_new) at.refuse(fmt::format("expected each merge once, found {} and {} again", quote(left), quote(right)));
  merges_.push_back(merge);
  emitted_[static_cast<std::size_t>(merge.result)] = true;
}

void Bpe::encode(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const {
  if (piece.empty()) return;
  if (ignore_merges_) {
    if (const auto found = whole_.find(piece); found != whole_.end()) return ids.push_back(found->second);
  }
  if (piece.size() > longest_seen) return merge(piece, workspace, ids);
  if (const auto found = workspace.seen.find(piece); found != workspace.seen.end()) {
    const auto begin = workspace.ids.begin() + found->second.begin;
    ids.insert(ids.end(), begin, begin + found->second.size);
    return;
  }
  const std::size_t before = ids.size();
  merge(piece, workspace, ids);
  if (workspace.seen.size() >= most_seen) return;
  const Workspace::Range range{static_cast<std::uint32_t>(workspace.ids.size()), static_cast<std::uint32_t>(ids.size() - before)};
  workspace.ids.insert(workspace.ids.end(), ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
  workspace.seen.emplace(std::string(piece), range);
}

/// Appends the merge of the symbol at `position` with its right neighbour to the list, where there is one.
bool Bpe::propose(const Workspace& workspace, std::int32_t position, std::vector<std::uint64_t>& candidates) const {
  const Workspace::Symbol& left = workspace.symbols[static_cast<std::size_t>(position)];
  if (left.next < 0) return false;
  const auto found = ranks_.find(pair_key(left.id, workspace.symbols[static_cast<std::size_t>(left.next)].id));
  if (found == ranks_.end()) return false;
  candidates.push_back(static_cast<std::uint64_t>(found->second) << 32 | static_cast<std::uint32_t>(position));
  return true;
}

void Bpe::merge(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const {
  auto& symbols = workspace.symbols;
  auto& first = workspace.first_candidates;
  auto& later = workspace.later_candidates;
  const auto count = static_cast<std::int32_t>(piece.size());
  symbols.clear();
  first.clear();
  later.clear();
  for (std::int32_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(piece[static_cast<std::size_t>(i)]);
    if (byte_ids_[byte] < 0) fail(Status::invalid_argument, "text: expected bytes that the vocabulary has, found 0x{:02x}", byte);
    symbols.push_back({byte_ids_[byte], i - 1, i + 1 < count ? i + 1 : -1});
  }
  for (std::int32_t i = 0; i + 1 < count; ++i) propose(workspace, i, first);
  std::sort(first.begin(), first.end());
  const auto lower_first = std::greater<>();  // makes the library's heap a min-heap
  for (std::size_t done = 0; done < first.size() || !later.empty();) {
    std::uint64_t candidate = 0;
    if (later.empty() || (done < first.size() && first[done] < later.front())) {
      candidate = first[done++];
    } else {
      candidate = later.front();
      std::pop_heap(later.begin(), later.end(), lower_first);
      later.pop_back();
    }
    const Merge& merge = merges_[candidate >> 32];
    const auto position = static_cast<std::int32_t>(candidate & 0xFFFFFFFFu);
    // A candidate is stale once either of its symbols took part in another merge.
    Workspace::Symbol& left = symbols[static_cast<std::size_t>(position)];
    if (left.id != merge.left || left.next < 0) continue;
    Workspace::Symbol& right = symbols[static_cast<std::size_t>(left.next)];
    if (right.id != merge.right) continue;
    left.id = merge.result;
    right.id = -1;
    left.next = right.next;
    if (right.next >= 0) symbols[static_cast<std::size_t>(right.next)].previous = position;
    for (const std::int32_t start : {left.previous, position}) {
      if (start >= 0 && propose(workspace, start, later)) std::push_heap(later.begin(), later.end(), lower_first);
    }
  }
  for (std::int32_t i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next) ids.push_back(symbols[static_cast<std::size_t>(i)].id);
}

}  // namespace cermet
