// Steps of a normalizer, by the component that describes them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/function_ref.hpp"
#include "io/json_file.hpp"
#include "model/tokenizer/regex.hpp"

namespace cermet {

/// Text on its way through a normalizer.
struct NormalizedText {
  std::string text;  ///< valid UTF-8
  bool keeps_start =
      true;  ///< it begins with the first character of what was given, or what replaces it: nothing before was removed
};

using NormalizerStep = std::function<void(NormalizedText&, RegexMemory&)>;

NormalizerStep read_bert_normalizer(Json component);
NormalizerStep read_precompiled_map(Json component);
NormalizerStep read_replace(Json component);
NormalizerStep read_strip(Json component);
NormalizerStep read_prepend(Json component);
NormalizerStep nmt_step();  ///< control characters and spaces, as Marian and T5 want them
NormalizerStep strip_accents_step();
NormalizerStep lowercase_step();
NormalizerStep byte_level_step();

/// Leaves out the characters that are not to be kept.
void keep_characters(NormalizedText& text, FunctionRef<bool(char32_t)> keep);
/// Appends what each character becomes.
void map_characters(NormalizedText& text, FunctionRef<void(std::string& out, char32_t c)> append);

/// The text or expression of a component's `pattern`: {"String": ...} or {"Regex": ...}. Errors name the field.
Regex read_pattern(Json component);

}  // namespace cermet
