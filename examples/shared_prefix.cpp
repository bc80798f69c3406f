// Sequences that begin with the same tokens: attention reads the pages of these once for all of them, and is merged
// with attention to each sequence's own tokens.
#include <cermet/cermet.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {

cermet::tensor integers(std::vector<std::int32_t>& list, std::vector<std::int64_t> shape) {
  return cermet::tensor::view(list.data(), std::move(shape), cermet::dtype::i32);
}
cermet::tensor numbers(const std::vector<std::int64_t>& shape, double step) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  std::vector<float> list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back(static_cast<float>(std::sin(step * static_cast<double>(i))));
  return {shape, list};
}

}  // namespace

int main() {
  constexpr std::int64_t sequences = 3, page = 16;
  const cermet::tensor q = numbers({sequences, 8, 64}, 1.7),  // a token of each sequence, 8 heads on 2 of the cache
      k = numbers({5, 2, page, 64}, 2.3), v = numbers({5, 2, page, 64}, 3.1);
  // Pages 0 and 1 are the prefix; each sequence has one of its own.
  std::vector<std::int32_t> all_pages{0, 1, 2, 0, 1, 3, 0, 1, 4}, all_lengths{37, 32 + 1, 48};
  std::vector<std::int32_t> own_pages{2, 3, 4}, own_lengths{5, 1, 16};
  std::vector<std::int32_t> prefix_pages{0, 1}, prefix_length{32}, prefix_starts{0, sequences};

  const cermet::handle cpu("cpu");
  const auto attend = [&](const cermet::tensor& pages, const cermet::tensor& lengths, const cermet::tensor& starts) {
    // Not causal: the queries come after all tokens of the prefix, and see all of them.
    return cpu
        .get_op("incre_flash_attention", {q, k, v, pages, lengths, starts}, {{"causal", false}, {"return_lse", true}})
        .all(q, k, v, pages, lengths, starts);
  };
  const cermet::tensor none;
  const auto whole = attend(integers(all_pages, {sequences, 3}), integers(all_lengths, {sequences}), none);
  // The prefix is one sequence, whose queries are those of all.
  const auto prefix =
      attend(integers(prefix_pages, {1, 2}), integers(prefix_length, {1}), integers(prefix_starts, {2}));
  const auto own = attend(integers(own_pages, {sequences, 1}), integers(own_lengths, {sequences}), none);
  const cermet::tensor merged = cpu.get_op("merge_attention_states", {prefix[0], prefix[1], own[0], own[1]})(
      prefix[0], prefix[1], own[0], own[1]);

  double largest = 0;
  for (std::size_t i = 0; i < merged.values().size(); ++i)
    largest = std::fmax(largest, std::fabs(merged.values()[i] - whole[0].values()[i]));
  std::printf("differences below 1e-6: %s\n", largest < 1e-6 ? "yes" : "no");
}
