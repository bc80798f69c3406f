#include "model/parallel/shard.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"
#include "model/parallel/module_parts.hpp"

namespace cermet {
namespace {

/// Shares of inner dimensions are multiples of a word of packed columns; those that do not divide, of what kernels'
/// fast paths take.
constexpr std::int64_t values_of_word = 4, inner_unit = 16;

std::int64_t inner_share(std::int64_t size, std::int64_t ranks) {
  if (ranks == 1 || size % (values_of_word * ranks) == 0) return size / ranks;
  return round_up(div_up(size, ranks), size % ranks != 0 && size >= inner_unit * ranks ? inner_unit : values_of_word);
}

}  // namespace

ModelShard ModelShard::of(std::int64_t rank, std::int64_t tensor, std::int64_t experts) {
  if (tensor > 1 && tensor % experts != 0)
    fail(Status::unsupported, "expert_parallel: expected a divisor of the {} ranks of tensor_parallel, found {}",
         tensor, experts);
  if (tensor == 1) return {.expert_rank = rank, .expert_ranks = experts};
  return {.rank = rank, .ranks = tensor, .expert_rank = rank / (tensor / experts), .expert_ranks = experts};
}

ExpertRange experts_of(const ModelConfig& config, ModelShard shard) {
  const auto begin = [&](std::int64_t rank) { return config.experts * rank / shard.expert_ranks; };
  return {begin(shard.expert_rank), begin(shard.expert_rank + 1) - begin(shard.expert_rank)};
}

void check_shard(const ModelConfig& config, const Quantization& quantization, ModelShard shard) {
  require(shard.ranks >= 1 && shard.rank >= 0 && shard.rank < shard.ranks,
          "tensor parallel: expected a rank in [0, ranks), found rank {} of {}", shard.rank, shard.ranks);
  require(shard.expert_ranks == 1 || config.experts > 0, "expert parallel: expected a mixture of experts, found {}",
          config.architecture_name);
  require(shard.expert_ranks <= std::max<std::int64_t>(1, config.experts),
          "expert parallel: expected at most a rank for each of {} experts, found {} ranks", config.experts,
          shard.expert_ranks);
  if (shard.exchanges_rows())
    require(config.experts % shard.expert_ranks == 0,
            "expert parallel: expected ranks that divide the {} experts where each has prompts of its own and rows are "
            "exchanged, found {} ranks",
            config.experts, shard.expert_ranks);
  if (quantization.packed.empty() || shard.ranks == 1) return;
  const auto parts = module_parts(config, shard);
  for (const auto& [module, part] : parts) {
    if (part.axis != 1 || !quantization.packed.contains(module)) continue;
    if (part.count() % values_of_word != 0)
      fail(Status::unsupported,
           "tensor parallel: {}: expected packed columns to be a multiple of {} on each of {} ranks, found {}", module,
           values_of_word, shard.ranks, part.count());
  }
}

ModelConfig config_of(const ModelConfig& whole, ModelShard shard) {
  ModelConfig part = whole;
  if (shard.ranks == 1) return part;
  part.heads = div_up(whole.heads, shard.ranks);
  const std::int64_t group = whole.heads / whole.kv_heads;
  if (whole.kv_heads % shard.ranks == 0) part.kv_heads = whole.kv_heads / shard.ranks;
  else part.kv_heads = group % part.heads == 0 ? 1 : part.heads;
  part.intermediate_size = inner_share(whole.intermediate_size, shard.ranks);
  part.expert_intermediate_size = inner_share(whole.expert_intermediate_size, shard.ranks_of_expert());
  return part;
}

std::int64_t vocabulary_part(const ModelConfig& whole, ModelShard shard) {
  return div_up(whole.vocab_size, shard.ranks);
}

}  // namespace cermet
