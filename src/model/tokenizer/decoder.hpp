// From tokens to text: the `decoder` of a tokenizer.json, and the repair of broken UTF-8.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_file.hpp"
#include "model/tokenizer/decoder_stage.hpp"

namespace cermet {

/// A decoder's description; const use is thread-safe.
class Decoder {
 public:
  /// Reads the component; nothing means that tokens are joined by spaces. Throws Error(unsupported) naming a type that
  /// is not implemented.
  explicit Decoder(std::optional<Json> component);
  const std::vector<MakeStage>& stages() const { return stages_; }

 private:
  void read(Json component);

  std::vector<MakeStage> stages_;  ///< the first takes the tokens
};

/// A decoder at work on one list of tokens.
class Decoding {
 public:
  /// With `bytes` the exact bytes come out, else valid UTF-8. The decoder must outlive it.
  Decoding(const Decoder& decoder, bool bytes);
  Decoding(Decoding&&) noexcept;
  Decoding& operator=(Decoding&&) noexcept;
  ~Decoding();

  /// Takes a token; of a `verbatim` one the bytes of its name are its bytes, whatever they spell. Returns the text that
  /// it completes.
  std::string push(std::string_view name, bool verbatim);
  /// The rest. Nothing else may follow.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Turns bytes that arrive in parts into valid UTF-8: a broken start of a character becomes U+FFFD, an incomplete one
/// waits for its rest. The result does not depend on where the parts are cut.
class Utf8Repair {
 public:
  void push(std::string_view bytes, std::string& out);
  /// What still waits becomes U+FFFD.
  void finish(std::string& out);

 private:
  std::string waiting_;  ///< an incomplete character, at most 3 bytes
};

}  // namespace cermet
