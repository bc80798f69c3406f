// A decoder written down plainly in float64, with the quantization of its linear modules: what engines are compared
// with. And the quantized checkpoints that it stands for.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "model/checkpoint/checkpoint.hpp"

namespace cermet::test {

class PlainDecoder {
 public:
  /// Reads every tensor of a real checkpoint.
  explicit PlainDecoder(const std::filesystem::path& model);

  const ModelConfig& config() const { return config_; }
  /// Logits [tokens, vocab_size] of a sequence from position 0, one after the other. Notes the largest magnitude of
  /// each module's input.
  std::vector<double> logits(const std::vector<std::int32_t>& ids);
  /// Quantizes the weight of a module with absmax / 127 (fp8: 448) as rounded to the checkpoint's type; a static input
  /// gets the scale and offset.
  void quantize(const std::string& module, const LinearScheme& scheme, float input_scale = 0, float input_offset = 0);
  /// Rounds the biases of modules with static inputs to steps of their int32 sums, as ModelSlim stores them.
  void round_biases();
  /// A scale for a static input that covers nine tenths of what logits() met in these modules.
  float input_scale_for(const std::vector<std::string>& modules) const;

  enum class Format : std::uint8_t { real, compressed_tensors, modelslim };
  /// Writes a checkpoint: `real` with dequantized weights, else with quantized values, scales and the metadata that
  /// describes them.
  void write(const std::filesystem::path& folder, Format format) const;
  /// The text of quantization_config that write() adds.
  std::string quantization_config() const;

 private:
  struct Module {
    LinearScheme scheme;
    std::vector<std::byte> quantized;
    std::vector<float> scales;
    float input_scale = 0, input_offset = 0;
  };
  using Vector = std::vector<double>;
  struct Cache {
    std::vector<Vector> keys, values;  ///< of each token
  };

  static bool is_fp8(const LinearScheme& scheme) { return scheme.weight == LinearScheme::Weight::fp8; }
  const Vector& tensor(const std::string& name) const { return tensors_.at(name); }
  Vector apply(const Linear& linear, Vector x);
  Vector normalized(const Vector& x, const Norm& norm) const;
  Vector body(const FeedForward& part, const Vector& y, Cache& cache);
  Vector body(const Mixture& mixture, const Vector& y, Cache& cache);
  Vector body(const Attention& attention, const Vector& y, Cache& cache);

  ModelConfig config_;
  std::filesystem::path folder_;
  DType dtype_ = DType::f32;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::map<std::string, Vector> tensors_;
  std::map<std::string, Module> modules_;
  std::map<std::string, double> largest_;
};

}  // namespace cermet::test
