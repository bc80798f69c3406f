#include "kernel/communicator.hpp"

namespace cermet {

void Communicator::require_same(std::string_view what, std::string_view text) {
  const std::vector<std::string> texts = gather_text(text);
  for (std::size_t r = 1; r < texts.size(); ++r)
    require(texts[r] == texts[0], "rank {} of {}: {}: expected that of rank 0, {}, on every rank, found {} on rank {}",
            rank(), size(), what, texts[0], texts[r], r);
}

}  // namespace cermet
