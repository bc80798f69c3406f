#include "model/tokenizer/bpe.hpp"

#include <algorithm>
#include <functional>

#include "base/text.hpp"

namespace cermet {
namespace {

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

std::string text_or_empty(const std::optional<Json>& field) {
  return field ? std::string(field->as_string()) : std::string();
}
bool is_set(const std::optional<Json>& field) { return field && field->as_bool(); }

}  // namespace

Bpe::Bpe(Json model, const Vocabulary& vocabulary)
    : prefix_(text_or_empty(model.find("continuing_subword_prefix"))),
      suffix_(text_or_empty(model.find("end_of_word_suffix"))),
      unknown_name_(text_or_empty(model.find("unk_token"))),
      unknown_(vocabulary.find(unknown_name_)),
      fuse_unknown_(is_set(model.find("fuse_unk"))),
      ignore_merges_(is_set(model.find("ignore_merges"))),
      emitted_(static_cast<std::size_t>(vocabulary.size()), false) {
  if (const auto dropout = model.find("dropout"); dropout && dropout->as_number() != 0)
    dropout->unexpected("null or 0", Status::unsupported);
  bytes_.fill(-1);
  if (is_set(model.find("byte_fallback"))) {
    for (unsigned byte = 0; byte < 256; ++byte)
      bytes_[byte] = vocabulary.find(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  read_characters(vocabulary);
  read_merges(model.at("merges"), vocabulary);
  if (!ignore_merges_) return;
  whole_ = vocabulary.ids();
  for (const auto& [name, id] : whole_) emitted_[static_cast<std::size_t>(id)] = true;
}

void Bpe::read_characters(const Vocabulary& vocabulary) {
  common_.fill(-1);
  if (has_affixes()) characters_ = vocabulary.ids();
  for (const auto& [name, id] : vocabulary.ids()) {
    if (name.empty()) continue;
    const Utf8Unit unit = first_utf8_unit(name);
    if (!has_affixes() && unit.size != name.size()) continue;
    emitted_[static_cast<std::size_t>(id)] = true;
    if (has_affixes()) continue;
    if (unit.code_point < common_.size()) common_[unit.code_point] = id;
    else characters_.emplace(name, id);
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
    if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos)
      merge.unexpected("two tokens with one space between");
    add_merge(text.substr(0, space), text.substr(space + 1), merge, vocabulary);
  }
}

void Bpe::add_merge(std::string_view left, std::string_view right, Json at, const Vocabulary& vocabulary) {
  const auto id = [&](std::string_view name) {
    const std::optional<std::int32_t> found = vocabulary.find(name);
    if (!found) at.refuse(fmt::format("expected tokens of the vocabulary, found {}", quote(name)));
    return *found;
  };
  const std::int32_t left_id = id(left), right_id = id(right);
  if (left.empty() || right.empty()) at.refuse("expected two tokens, found an empty one");
  if (right.size() < prefix_.size())
    at.refuse(fmt::format("expected a second token with the prefix {}, found {}", quote(prefix_), quote(right)));
  const Merge merge{left_id, right_id, id(std::string(left) + std::string(right.substr(prefix_.size())))};
  ranks_[pair_key(merge.left, merge.right)] =
      static_cast<std::uint32_t>(merges_.size());  // of a merge that stands there twice the last rank
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
  const Workspace::Range range{static_cast<std::uint32_t>(workspace.ids.size()),
                               static_cast<std::uint32_t>(ids.size() - before)};
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

/// The token of a character at its place in the piece; -1: none.
std::int32_t Bpe::id_of(std::string_view character, bool first, bool last, Workspace& workspace) const {
  if (!has_affixes()) {
    const Utf8Unit unit = first_utf8_unit(character);
    if (unit.valid && unit.code_point < common_.size()) return common_[unit.code_point];
  } else {
    workspace.name = first ? "" : prefix_;
    workspace.name += character;
    if (last) workspace.name += suffix_;
    character = workspace.name;
  }
  const auto found = characters_.find(character);
  return found == characters_.end() ? -1 : found->second;
}

/// Makes symbols of the piece's characters.
void Bpe::split(std::string_view piece, Workspace& workspace) const {
  std::vector<Workspace::Symbol>& symbols = workspace.symbols;
  symbols.clear();
  const auto add = [&](std::int32_t id) { symbols.push_back({id, 0, 0}); };
  bool unknown = false;  // one was met and has no symbol yet
  const auto add_unknown = [&] {
    if (unknown) add(*unknown_);
    unknown = false;
  };
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t size = first_utf8_unit(piece.substr(at)).size;
    std::string_view character = piece.substr(at, size);
    const std::int32_t id = id_of(character, at == 0, at + size == piece.size(), workspace);
    at += size;
    if (id >= 0) {
      add_unknown();
      add(id);
      continue;
    }
    if (has_affixes()) character = workspace.name;
    const auto byte_id = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
    if (std::ranges::all_of(character, [&](char byte) { return byte_id(byte) >= 0; })) {
      for (const char byte : character) add(byte_id(byte));  // before an unknown one that waits, as in the library
    } else if (!unknown_name_.empty()) {
      if (!unknown_)
        fail(Status::unsupported,
             "text: expected characters of the tokenizer, whose unk_token {} is not in its vocabulary, found {}",
             quote(unknown_name_), quote(character));
      if (!fuse_unknown_) add_unknown();
      unknown = true;
    }
  }
  add_unknown();
  const auto count = static_cast<std::int32_t>(symbols.size());
  for (std::int32_t i = 0; i < count; ++i) {
    symbols[static_cast<std::size_t>(i)].previous = i - 1;
    symbols[static_cast<std::size_t>(i)].next = i + 1 < count ? i + 1 : -1;
  }
}

void Bpe::merge(std::string_view piece, Workspace& workspace, std::vector<std::int32_t>& ids) const {
  auto& symbols = workspace.symbols;
  auto& first = workspace.first_candidates;
  auto& later = workspace.later_candidates;
  split(piece, workspace);
  if (symbols.empty()) return;
  const auto count = static_cast<std::int32_t>(symbols.size());
  first.clear();
  later.clear();
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
  for (std::int32_t i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next)
    ids.push_back(symbols[static_cast<std::size_t>(i)].id);
}

}  // namespace cermet
