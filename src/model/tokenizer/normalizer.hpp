// The `normalizer` of a tokenizer.json: none, Unicode normalization form C, or a sequence of these.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "io/json_file.hpp"

namespace cermet {

class Normalizer {
 public:
  /// Reads the component; nothing means none. Throws Error(unsupported) naming any other component.
  explicit Normalizer(std::optional<Json> component);
  /// The normalized form of valid UTF-8: the text itself or a view of the buffer.
  std::string_view apply(std::string_view text, std::string& buffer) const;

 private:
  bool nfc_ = false;
};

}  // namespace cermet
