// The element types that an engine computes with.
#include "model/engine_choices.hpp"
#include "model/engine_options.hpp"

namespace cermet::engine {

DType asked_type(const EngineOptions& options, DType stored) {
  const DType dtype = options.dtype.value_or(stored);
  require(dtypes::real.contains(dtype), "dtype: expected {}, found {}", dtypes::real.to_string(), name_of(dtype));
  return dtype;
}

/// A single token's stay float32: while weights stream, that costs nothing. On the CPU there are instructions for bf16
/// beside weights of bf16 and for no other pair of 16 bits. Beside float32 weights the tensor cores have no product, so
/// that rounding buys something only where there are many tokens.
DType operand_type(const Device& device, std::int64_t tokens, DType asked, DType weights) {
  if (tokens == 1) return DType::f32;
  if (!device.target()) return asked == DType::bf16 && weights == DType::bf16 ? DType::bf16 : DType::f32;
  return weights == DType::f32 && tokens <= few_tokens ? DType::f32 : asked;
}

/// On a GPU the cache's, so that they are multiplied directly and not as two parts. A
/// single token's stay float32 with a bf16 cache, where the second part is free; with f16 no fast kernel takes them.
DType query_type(const Device& device, DType operands, DType cached) {
  return device.target() && (operands == cached || cached == DType::f16) ? cached : DType::f32;
}

/// Between GPUs sums of many rows take as long as their bytes do, and have operands of 16 bits beside them; those of
/// few rows take no longer as float32.
DType sum_type(const Device& device, std::int64_t tokens, DType operands) {
  return device.target() && tokens > few_tokens && size_of(operands) == 2 ? operands : DType::f32;
}

/// They are never rounded unless the caller asks: 16-bit ones are widened exactly
/// where GEMMs are float32.
DType weight_type(const EngineOptions& options, DType stored) {
  const DType dtype = options.weights.value_or(stored);
  const DTypeSet allowed = dtypes::real | load_quantized_types;
  require(allowed.contains(dtype), "weights: expected {}, found {}", allowed.to_string(), name_of(dtype));
  return load_quantized_types.contains(dtype) ? stored : dtype;
}

DType cache_type(const EngineOptions& options, DType operands) {
  const DType dtype = options.kv_cache.value_or(operands);
  require(!options.kv_cache || load_quantized_types.contains(dtype), "kv_cache: expected {}, found {}",
          load_quantized_types.to_string(), name_of(dtype));
  return dtype;
}

}  // namespace cermet::engine
