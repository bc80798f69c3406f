// Steps of pre-tokenizers with rules of their own.
#include "base/text.hpp"
#include "model/tokenizer/byte_map.hpp"
#include "model/tokenizer/normalizer_step.hpp"
#include "model/tokenizer/pre_tokenizer_step.hpp"

namespace cermet {
namespace {

/// Contractions, words, numbers and the rest, each with the space before it (Radford et al., GPT-2, 2019).
constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Compiles an expression; errors in it are reported as those of `at`.
template <class Make>
Regex compiled(Json at, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    at.refuse(error.what(), error.status());
  }
}

enum class Prepend { never, first, always };

/// Older files say by add_prefix_space what prepend_scheme says.
Prepend read_prepend_scheme(Json component) {
  const auto scheme = component.find("prepend_scheme");
  const auto prefix = component.find("add_prefix_space");
  const std::string_view name = scheme ? scheme->as_string() : prefix && !prefix->as_bool() ? "never" : "always";
  if (name == "always") return Prepend::always;
  if (name == "first") return Prepend::first;
  if (name != "never") scheme->unexpected("\"always\", \"first\" or \"never\"", Status::unsupported);
  return Prepend::never;
}

}  // namespace

Regex read_pattern(Json component) {
  const Json pattern = component.at("pattern").as_object();
  if (const auto text = pattern.find("String"))
    return compiled(*text, [&] { return Regex::literal(text->as_string()); });
  const Json regex = pattern.at("Regex");
  return compiled(regex, [&] { return Regex(regex.as_string()); });
}

PreTokenizerStep read_split(Json component) {
  Splitter::Find find = Splitter::at(read_pattern(component));
  return step_of(Splitter(std::move(find), read_behavior(component.at("behavior")), component.at("invert").as_bool()));
}

PreTokenizerStep read_byte_level(Json component) {
  const bool add_prefix_space = component.at("add_prefix_space").as_bool();
  const auto use_regex = component.find("use_regex");
  std::optional<Splitter> splitter;
  if (!use_regex || use_regex->as_bool()) splitter.emplace(Splitter::at(Regex(gpt2_pattern)), SplitBehavior::isolated);
  return [=](TextPiece piece, RegexMemory& memory, FunctionRef<void(TextPiece)> sink) {
    std::string prefixed;
    if (add_prefix_space && !piece.text.starts_with(' ')) {
      prefixed = " ";
      prefixed += piece.text;
      piece.text = prefixed;
    }
    std::string name;
    const auto spell = [&](std::size_t begin, std::size_t end) {
      name = name_of_bytes(piece.text.substr(begin, end - begin));
      sink({name, piece.at_start && begin == 0});
    };
    if (splitter) splitter->split(piece.text, memory, spell);
    else spell(0, piece.text.size());
  };
}

PreTokenizerStep read_metaspace(Json component) {
  const std::string replacement(component.at("replacement").as_string());
  if (replacement.empty() || first_utf8_unit(replacement).size != replacement.size())
    component.at("replacement").unexpected("one character");
  const Prepend prepend = read_prepend_scheme(component);
  const auto split = component.find("split");
  const bool splits = !split || split->as_bool();
  return [=](TextPiece piece, RegexMemory&, FunctionRef<void(TextPiece)> sink) {
    std::string text;
    for (const char c : piece.text) c == ' ' ? text += replacement : text += c;
    const bool wanted = prepend == Prepend::always || (prepend == Prepend::first && piece.at_start);
    if (wanted && !text.starts_with(replacement)) text.insert(0, replacement);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = splits ? std::min(text.find(replacement, begin + 1), text.size()) : text.size();
      sink({std::string_view(text).substr(begin, end - begin), piece.at_start && begin == 0});
      begin = end;
    }
  };
}

PreTokenizerStep read_fixed_length(Json component) {
  const auto field = component.find("length");
  const std::int64_t length = field ? field->as_integer(1) : 5;
  return [=](TextPiece piece, RegexMemory&, FunctionRef<void(TextPiece)> sink) {
    for (std::size_t begin = 0; begin < piece.text.size();) {
      std::size_t end = begin;
      for (std::int64_t i = 0; i < length && end < piece.text.size(); ++i)
        end += first_utf8_unit(piece.text.substr(end)).size;
      sink({piece.text.substr(begin, end - begin), piece.at_start && begin == 0});
      begin = end;
    }
  };
}

}  // namespace cermet
