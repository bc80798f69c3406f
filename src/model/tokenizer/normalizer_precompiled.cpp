// The precompiled character map of SentencePiece: a double-array trie (Aoe, 1989) of what is replaced, and the texts
// that replace it.
#include <utf8proc.h>

#include <memory>
#include <vector>

#include "base/text.hpp"
#include "model/tokenizer/normalizer_step.hpp"

namespace cermet {
namespace {

constexpr std::size_t longest_cluster = 6;  ///< bytes; grapheme clusters that are shorter are looked up as a whole

std::string from_base64(Json field) {
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : field.as_string()) {
    static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    if (c == '=') break;
    const std::size_t digit = digits.find(c);
    if (digit == std::string_view::npos) field.refuse("expected base64, found other characters");
    bits = bits << 6 | static_cast<std::uint32_t>(digit);
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(static_cast<unsigned char>(bits >> count & 0xFFu));
  }
  return bytes;
}

class CharacterMap {
 public:
  explicit CharacterMap(Json field) {
    const std::string bytes = from_base64(field);
    const auto word = [&](std::size_t at) {
      std::uint32_t value = 0;
      for (std::size_t i = 0; i < 4; ++i)
        value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[at + i])) << 8 * i;
      return value;
    };
    const std::size_t size = bytes.size() < 4 ? 0 : word(0);
    if (bytes.size() < 4 || size % 4 != 0 || size > bytes.size() - 4)
      field.refuse("expected a character map of SentencePiece, found one that is cut off");
    for (std::size_t at = 4; at < 4 + size; at += 4) units_.push_back(word(at));
    texts_ = bytes.substr(4 + size);
    for (std::size_t at = 0; at < texts_.size();) {
      const Utf8Unit unit = first_utf8_unit(std::string_view(texts_).substr(at));
      if (!unit.valid) field.refuse("expected replacements in UTF-8, found others");
      at += unit.size;
    }
  }

  /// What replaces a text, by the shortest entry that it begins with, as the library looks it up; nothing where there
  /// is none.
  std::optional<std::string_view> find(std::string_view text) const {
    std::size_t node = 0;
    if (units_.empty()) return std::nullopt;
    node ^= offset_of(units_[0]);
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      node ^= byte;
      if (byte == 0 || node >= units_.size() || (units_[node] & 0x800000FFu) != byte) return std::nullopt;
      const bool is_leaf = (units_[node] >> 8 & 1) != 0;
      node ^= offset_of(units_[node]);
      if (node >= units_.size()) return std::nullopt;
      if (is_leaf) return text_at(units_[node] & 0x7FFFFFFFu);
    }
    return std::nullopt;
  }

 private:
  static std::size_t offset_of(std::uint32_t unit) {
    return static_cast<std::size_t>(unit >> 10) << ((unit & 1u << 9) >> 6);
  }
  std::string_view text_at(std::size_t at) const {
    if (at >= texts_.size()) return {};
    const std::string_view rest = std::string_view(texts_).substr(at);
    return rest.substr(0, rest.find('\0'));
  }

  std::vector<std::uint32_t> units_;
  std::string texts_;  ///< each ends with a zero byte
};

/// Bytes of the grapheme cluster that the text begins with.
std::size_t cluster_size(std::string_view text) {
  Utf8Unit unit = first_utf8_unit(text);
  std::size_t size = unit.size;
  utf8proc_int32_t state = 0;
  while (size < text.size()) {
    const Utf8Unit next = first_utf8_unit(text.substr(size));
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(unit.code_point),
                                         static_cast<utf8proc_int32_t>(next.code_point), &state))
      break;
    size += next.size;
    unit = next;
  }
  return size;
}

}  // namespace

NormalizerStep read_precompiled_map(Json component) {
  const auto map = std::make_shared<const CharacterMap>(component.at("precompiled_charsmap"));
  return [map](NormalizedText& text, RegexMemory&) {
    std::string out;
    const std::string_view all = text.text;
    for (std::size_t at = 0; at < all.size();) {
      const std::string_view cluster = all.substr(at, cluster_size(all.substr(at)));
      at += cluster.size();
      if (const auto found = cluster.size() < longest_cluster ? map->find(cluster) : std::nullopt) {
        out += *found;
        continue;
      }
      for (std::size_t i = 0; i < cluster.size();) {
        const std::string_view character = cluster.substr(i, first_utf8_unit(cluster.substr(i)).size);
        out += map->find(character).value_or(character);
        i += character.size();
      }
    }
    text.text = std::move(out);
  };
}

}  // namespace cermet
