// From the bytes of tokens to text: the `decoder` of a tokenizer.json, and the repair of broken UTF-8.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/json_file.hpp"

namespace cermet {

/// Checks that the decoder is ByteLevel, alone or as a sequence of one, the only one that this tokenizer implements. Throws Error(unsupported) otherwise.
void check_decoder(std::optional<Json> component, Json root);

/// Turns bytes that arrive in parts into valid UTF-8: a broken start of a character becomes U+FFFD, an incomplete one waits for its rest.
/// The result does not depend on where the parts are cut.
class Utf8Repair {
 public:
  void push(std::string_view bytes, std::string& out);
  /// What still waits becomes U+FFFD.
  void finish(std::string& out);

 private:
  std::string waiting_;  ///< an incomplete character, at most 3 bytes
};

}  // namespace cermet
