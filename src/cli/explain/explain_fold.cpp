#include "cli/explain/explain_fold.hpp"

namespace cermet::cli {
namespace {

constexpr std::size_t least_hidden = 4;

/// The repeat that hides most; of several the shortest, then the first.
Repeat best_repeat(std::span<const int> sequence, std::size_t begin, std::size_t end) {
  Repeat best;
  std::size_t most = least_hidden - 1;
  for (std::size_t length = 1; 2 * length <= end - begin; ++length) {
    std::size_t run = 0;  // elements before i that are what stands `length` after them
    for (std::size_t i = begin; i + length <= end; ++i) {
      if (i + length < end && sequence[i] == sequence[i + length]) {
        ++run;
        continue;
      }
      if (const std::size_t hidden = run / length * length; hidden > most) {
        most = hidden;
        best = {i - run, length, run / length + 1};
      }
      run = 0;
    }
  }
  return best;
}

void find(std::span<const int> sequence, std::size_t begin, std::size_t end, std::vector<Repeat>& found) {
  if (end - begin < 2) return;
  const Repeat best = best_repeat(sequence, begin, end);
  if (best.times == 0) return;
  find(sequence, begin, best.first, found);
  found.push_back(best);
  find(sequence, best.first + best.length * best.times, end, found);
}

}  // namespace

std::vector<Repeat> find_repeats(std::span<const int> sequence) {
  std::vector<Repeat> found;
  find(sequence, 0, sequence.size(), found);
  return found;
}

}  // namespace cermet::cli
