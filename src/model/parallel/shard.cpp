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

void take_part(Attention& attention, ModelShard shard) {
  const std::int64_t kv_heads = attention.kv_heads, group = attention.heads / kv_heads;
  attention.heads = div_up(attention.heads, shard.ranks);
  if (kv_heads % shard.ranks == 0) attention.kv_heads = kv_heads / shard.ranks;
  else attention.kv_heads = group % attention.heads == 0 ? 1 : attention.heads;
  attention.q.rows = attention.o.columns = attention.heads * attention.head_dim;
  attention.k.rows = attention.v.rows = attention.kv_heads * attention.head_dim;
}

void take_part(FeedForward& part, std::int64_t ranks) {
  part.gate.rows = part.up.rows = part.down.columns = inner_share(part.down.columns, ranks);
}
void take_part(FeedForward& part, ModelShard shard) { take_part(part, shard.ranks); }

void take_part(Mixture& mixture, ModelShard shard) {
  take_part(mixture.each, shard.ranks_of_expert());
  const auto begin = [&](std::int64_t rank) { return mixture.experts() * rank / shard.expert_ranks; };
  mixture.first = begin(shard.expert_rank);
  mixture.count = begin(shard.expert_rank + 1) - mixture.first;
}

}  // namespace

ModelShard ModelShard::of(std::int64_t rank, std::int64_t tensor, std::int64_t experts) {
  if (tensor > 1 && tensor % experts != 0)
    fail(Status::unsupported, "expert_parallel: expected a divisor of the {} ranks of tensor_parallel, found {}",
         tensor, experts);
  if (tensor == 1) return {.expert_rank = rank, .expert_ranks = experts};
  return {.rank = rank, .ranks = tensor, .expert_rank = rank / (tensor / experts), .expert_ranks = experts};
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
  const auto parts = module_parts(config.decoder, shard);
  for (const auto& [module, part] : parts) {
    if (part.axis != 1 || !quantization.packed.contains(module)) continue;
    if (part.count() % values_of_word != 0)
      fail(Status::unsupported,
           "tensor parallel: {}: expected packed columns to be a multiple of {} on each of {} ranks, found {}", module,
           values_of_word, shard.ranks, part.count());
  }
}

DecoderModel sharded(DecoderModel model, ModelShard shard) {
  model.embedding.rows = model.head.rows = vocabulary_part(model.embedding.rows, shard);
  for (Layer& layer : model.layers)
    for (Block& block : layer) std::visit([&](auto& body) { take_part(body, shard); }, block.body);
  return model;
}

std::int64_t vocabulary_part(std::int64_t vocab_size, ModelShard shard) { return div_up(vocab_size, shard.ranks); }

}  // namespace cermet
