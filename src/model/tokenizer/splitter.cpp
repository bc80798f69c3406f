#include "model/tokenizer/splitter.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/text.hpp"

namespace cermet {
namespace {

/// Joins neighbouring pieces as the behavior says. The rules look at the piece before (after, for merged_with_next).
std::vector<SplitPiece> join(const std::vector<SplitPiece>& pieces, SplitBehavior behavior) {
  std::vector<SplitPiece> joined;
  bool previous_is_match = false;
  const auto add = [&](const SplitPiece& piece) {
    const bool joins = behavior == SplitBehavior::contiguous ? piece.is_match == previous_is_match
                                                             : piece.is_match && !previous_is_match;
    previous_is_match = piece.is_match;
    if (!joins || joined.empty()) return joined.push_back(piece);
    joined.back() = {std::min(joined.back().begin, piece.begin), std::max(joined.back().end, piece.end), false};
  };
  if (behavior != SplitBehavior::merged_with_next) {
    for (const SplitPiece& piece : pieces) add(piece);
    return joined;
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) add(*piece);
  return {joined.rbegin(), joined.rend()};
}

}  // namespace

SplitBehavior read_behavior(Json value) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> names = {
      {{"Isolated", SplitBehavior::isolated},
       {"Removed", SplitBehavior::removed},
       {"MergedWithPrevious", SplitBehavior::merged_with_previous},
       {"MergedWithNext", SplitBehavior::merged_with_next},
       {"Contiguous", SplitBehavior::contiguous}}};
  for (const auto& [name, behavior] : names) {
    if (value.as_string() == name) return behavior;
  }
  value.unexpected("\"Isolated\", \"Removed\", \"MergedWithPrevious\", \"MergedWithNext\" or \"Contiguous\"",
                   Status::unsupported);
}

Splitter::Find Splitter::at(Regex regex) {
  return [regex = std::make_shared<const Regex>(std::move(regex))](std::string_view text, RegexMemory& memory,
                                                                   FunctionRef<void(SplitPiece)> sink) {
    Pieces pieces(*regex, text, memory);
    while (const auto piece = pieces.next()) sink(*piece);
  };
}

Splitter::Find Splitter::at(std::function<bool(char32_t)> is_match) {
  return [is_match = std::move(is_match)](std::string_view text, RegexMemory&, FunctionRef<void(SplitPiece)> sink) {
    std::size_t done = 0;
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Unit unit = first_utf8_unit(text.substr(at));
      const std::size_t end = at + unit.size;
      if (is_match(unit.code_point)) {
        if (done < at) sink({done, at, false});
        sink({at, end, true});
        done = end;
      }
      at = end;
    }
    if (done < text.size()) sink({done, text.size(), false});
  };
}

void Splitter::split(std::string_view text, RegexMemory& memory,
                     FunctionRef<void(std::size_t begin, std::size_t end)> sink) const {
  const auto pass_on = [&](const SplitPiece& piece) {
    if (piece.begin < piece.end) sink(piece.begin, piece.end);
  };
  if (behavior_ == SplitBehavior::isolated || behavior_ == SplitBehavior::removed) {
    return find_(text, memory, [&](SplitPiece piece) {
      if (behavior_ == SplitBehavior::isolated || piece.is_match == invert_) pass_on(piece);
    });
  }
  std::vector<SplitPiece> all;
  find_(text, memory, [&](SplitPiece piece) { all.push_back({piece.begin, piece.end, piece.is_match != invert_}); });
  for (const SplitPiece& piece : join(all, behavior_)) pass_on(piece);
}

}  // namespace cermet
