// A decoder as values. An architecture puts them together (arch/NAME.cpp), a rank takes its part of each
// (parallel/shard.hpp), and the graph, the list of tensors and the quantizer walk them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace cermet {

/// y = x W^T (+ bias), with the tensors NAME.weight [rows, columns] and NAME.bias [rows].
struct Linear {
  std::string name;
  std::int64_t rows = 0, columns = 0;
  bool bias = false;
};

/// RMSNorm with the weight NAME.weight [size].
struct Norm {
  std::string name;
  std::int64_t size = 0;
  double eps = 1e-6;
  double weight_offset = 0;  ///< added to the weight
};

/// Causal grouped-query attention over the paged cache; queries and keys are rotated.
struct Attention {
  Linear q, k, v, o;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, rotary_dim = 0;
  double scale = 1;                              ///< of scores
  std::int64_t window = 0;                       ///< keys that a query sees, itself included; 0: all
  double softcap = 0;                            ///< scores s become softcap * tanh(s / softcap); 0: none
  std::optional<Norm> q_norm = {}, k_norm = {};  ///< over each head, before the rotation
};

enum class Activation : std::uint8_t { silu, gelu_tanh };

/// down(activation(gate(x)) * up(x)).
struct FeedForward {
  Linear gate, up, down;
  Activation activation = Activation::silu;
};

/// The weighted sum of the results of the experts with the largest router scores.
struct Mixture {
  Linear router;     ///< a row for each expert
  FeedForward each;  ///< of expert *: that character is the expert's number in names
  std::int64_t experts_per_token = 0;
  bool renormalize = true;            ///< the weights of a token's experts are divided by their sum
  std::int64_t first = 0, count = 0;  ///< experts that a rank has

  std::int64_t experts() const { return router.rows; }
  FeedForward expert(std::int64_t number) const;
};

/// x + post_norm(body(norm(x))).
struct Block {
  Norm norm;
  std::variant<Attention, FeedForward, Mixture> body;
  std::optional<Norm> post_norm = {};
};
using Layer = std::vector<Block>;

struct DecoderModel {
  Linear embedding;  ///< NAME.weight [vocab_size, hidden_size]
  double embedding_scale = 1;
  std::vector<Layer> layers;
  Norm norm;
  Linear head;               ///< the embedding where both share a matrix
  double logit_softcap = 0;  ///< as Attention::softcap

  bool is_tied() const { return head.name == embedding.name; }
};

/// The first body of a kind in a layer; null where it has none.
template <class Body>
const Body* find_body(const Layer& layer) {
  for (const Block& block : layer)
    if (const auto* body = std::get_if<Body>(&block.body)) return body;
  return nullptr;
}

/// "model.layers.0.self_attn." of "model.layers.0.self_attn.q_proj".
std::string parent_of(const std::string& name);

}  // namespace cermet
