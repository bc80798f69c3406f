// The tensors of a checkpoint by architecture: names and shapes, and what else may be stored with them.
#include "model/checkpoint/quantization.hpp"

namespace cermet {
namespace {

/// Collects tensors in order.
class List {
 public:
  explicit List(const Quantization& quantization) : quantization_(quantization) {}

  void add(const Norm& norm) {
    tensors.push_back({.name = norm.name + ".weight", .shape = {norm.size}, .mean = 1 - norm.weight_offset});
  }
  void add(const Linear& linear) {
    const auto& [name, rows, columns, bias] = linear;
    const LinearScheme scheme = quantization_.stored() ? quantization_.of(name) : LinearScheme{};
    const bool fixed = scheme.input == LinearScheme::Input::fixed,
               modelslim = quantization_.format == Quantization::Format::modelslim;
    if (scheme.weight == LinearScheme::Weight::real || quantization_.dense.contains(name))
      tensors.push_back({name + ".weight", {rows, columns}});
    else if (quantization_.packed.contains(name)) {
      tensors.push_back({name + ".weight_packed", {rows, (columns + 3) / 4}, {DType::i32}});
      scale(name + ".weight_shape", {2}, {DType::i64}, false);
    } else
      tensors.push_back({name + ".weight",
                         {rows, columns},
                         {scheme.weight == LinearScheme::Weight::fp8 ? DType::f8_e4m3 : DType::i8}});
    if (scheme.weight == LinearScheme::Weight::real || !modelslim || !fixed) {
      if (scheme.weight != LinearScheme::Weight::real) scale(name + ".weight_scale", {rows, 1}, stored_reals, true);
      if (scheme.weight != LinearScheme::Weight::real && modelslim)
        scale(name + ".weight_offset", {rows, 1}, stored_reals, true);
      if (fixed) scale(name + ".input_scale", {1}, stored_reals, true);
      if (bias) tensors.push_back({name + ".bias", {rows}});
      return;
    }
    scale(name + ".input_scale", {1}, stored_reals, true);
    scale(name + ".input_offset", {1}, stored_reals, true);
    scale(name + ".deq_scale", {rows}, {DType::f32, DType::i64}, false);  // input_scale * weight_scale
    scale(name + ".quant_bias", {rows}, {DType::i32}, false);  // bias / deq_scale - input_offset * the row's sum
  }
  void add(const Attention& attention) {
    for (const Linear* part : {&attention.q, &attention.k, &attention.v}) add(*part);
    if (attention.q_norm) add(*attention.q_norm);
    if (attention.k_norm) add(*attention.k_norm);
    add(attention.o);
  }
  void add(const FeedForward& part) {
    for (const Linear* each : {&part.gate, &part.up, &part.down}) add(*each);
  }
  void add(const Mixture& mixture) {
    add(mixture.router);
    for (std::int64_t expert = 0; expert < mixture.experts(); ++expert) add(mixture.expert(expert));
  }
  std::vector<ExpectedTensor> tensors;

 private:
  void scale(std::string name, std::vector<std::int64_t> shape, DTypeSet allowed, bool or_one) {
    tensors.push_back({std::move(name), std::move(shape), allowed, false, or_one});
  }

  const Quantization& quantization_;
};

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) { return expected_tensors(config, {}); }

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config, const Quantization& quantization) {
  List list(quantization);
  const DecoderModel& decoder = config.decoder;
  list.tensors.push_back({decoder.embedding.name + ".weight", {decoder.embedding.rows, decoder.embedding.columns}});
  for (const Layer& layer : decoder.layers)
    for (const Block& block : layer) {
      list.add(block.norm);
      std::visit([&](const auto& body) { list.add(body); }, block.body);
      if (block.post_norm) list.add(*block.post_norm);
    }
  list.add(decoder.norm);
  if (!decoder.is_tied()) list.add(decoder.head);
  return std::move(list.tensors);
}

}  // namespace cermet
