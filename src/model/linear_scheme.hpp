// How a linear module is quantized: what its weight is stored as, and what its input becomes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cermet {

/// One linear module's scheme. Quantized weights are symmetric, with a scale per output channel.
struct LinearScheme {
  enum class Weight : std::uint8_t {
    real,  ///< the checkpoint's 16 or 32 bits
    int8,
    fp8,  ///< e4m3
  };
  enum class Input : std::uint8_t {
    real,     ///< unquantized: weight-only quantization
    dynamic,  ///< dynamic: quantized at run time with per-token scales
    fixed,    ///< static: quantized with one scale that the checkpoint holds
  };
  Weight weight = Weight::real;
  Input input = Input::real;

  friend bool operator==(const LinearScheme&, const LinearScheme&) = default;
};

/// "16bit", "w8a16", "w8a8_dynamic", "w8a8_static", "fp8_weight_only", "fp8_dynamic", "fp8_static": the names that
/// policies and reports use.
std::string_view name_of(const LinearScheme& scheme);
/// The scheme of a name; nothing where it is none.
std::optional<LinearScheme> scheme_named(std::string_view name);

}  // namespace cermet
