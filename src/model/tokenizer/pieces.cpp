#include "model/tokenizer/pieces.hpp"

#include <utility>

namespace cermet {
namespace {

std::size_t size_of_character(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

}  // namespace

std::optional<SplitPiece> Pieces::next() {
  if (match_) return std::exchange(match_, std::nullopt);
  while (from_ <= text_.size()) {
    const auto match = regex_.find(text_, from_, memory_);
    if (!match) break;
    if (match->begin == match->end && last_end_ == match->end) {
      from_ += from_ < text_.size() ? size_of_character(text_[from_]) : 1;
      continue;
    }
    from_ = match->end;
    last_end_ = match->end;
    const std::size_t begin = std::exchange(done_, match->end);
    if (begin == match->begin) return SplitPiece{match->begin, match->end, true};
    match_ = SplitPiece{match->begin, match->end, true};
    return SplitPiece{begin, match->begin, false};
  }
  from_ = text_.size() + 1;
  if (done_ == text_.size()) return std::nullopt;
  return SplitPiece{std::exchange(done_, text_.size()), text_.size(), false};
}

}  // namespace cermet
