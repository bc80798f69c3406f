#include "model/tokenizer/pre_tokenizer.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace cermet {
namespace {

constexpr std::size_t most_steps = 64;

/// Contractions, words, numbers and the rest, each with the space before it (Radford et al., GPT-2, 2019).
constexpr std::string_view gpt2_pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

struct SplitPiece {
  std::size_t begin, end;
  bool is_match;
};

/// All of a text as matches and what lies between them. After an empty match the search goes on one character later.
class Pieces {
 public:
  Pieces(const Regex& regex, std::string_view text, RegexMemory& memory) : regex_(regex), text_(text), memory_(memory) {}

  std::optional<SplitPiece> next() {
    if (match_) return std::exchange(match_, std::nullopt);
    while (from_ <= text_.size()) {
      const auto match = regex_.find(text_, from_, memory_);
      if (!match) break;
      if (match->begin == match->end && last_end_ == match->end) {
        from_ += from_ < text_.size() ? character_size(text_[from_]) : 1;
        continue;
      }
      from_ = match->end;
      last_end_ = match->end;
      const std::size_t begin = std::exchange(done_, match->end);
      if (begin == match->begin) return SplitPiece{match->begin, match->end, true};
      match_ = SplitPiece{match->begin, match->end, true};
      return SplitPiece{begin, match->begin, false};
    }
    from_ = text_.size() + 1;
    if (done_ == text_.size()) return std::nullopt;
    return SplitPiece{std::exchange(done_, text_.size()), text_.size(), false};
  }

 private:
  static std::size_t character_size(char lead) {
    const auto byte = static_cast<unsigned char>(lead);
    return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
  }

  const Regex& regex_;
  std::string_view text_;
  RegexMemory& memory_;
  std::size_t from_ = 0;                           ///< where the search goes on
  std::size_t done_ = 0;                           ///< end of what was returned
  std::size_t last_end_ = std::string_view::npos;  ///< of the last match
  std::optional<SplitPiece> match_;                ///< found, after the piece that was returned
};

SplitBehavior behavior_of(Json value) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> names = {{{"Isolated", SplitBehavior::isolated},
                                                                                       {"Removed", SplitBehavior::removed},
                                                                                       {"MergedWithPrevious", SplitBehavior::merged_with_previous},
                                                                                       {"MergedWithNext", SplitBehavior::merged_with_next},
                                                                                       {"Contiguous", SplitBehavior::contiguous}}};
  for (const auto& [name, behavior] : names) {
    if (value.as_string() == name) return behavior;
  }
  value.unexpected("\"Isolated\", \"Removed\", \"MergedWithPrevious\", \"MergedWithNext\" or \"Contiguous\"", Status::unsupported);
}

/// Compiles an expression; errors in it are reported as those of `at`.
template <class Make>
Regex compile(Json at, const Make& make) {
  try {
    return make();
  } catch (const Error& error) {
    at.refuse(error.what(), error.status());
  }
}

/// Joins neighbouring pieces as the behavior says. The rules look at the piece before (after, for merged_with_next).
std::vector<SplitPiece> join(const std::vector<SplitPiece>& pieces, SplitBehavior behavior) {
  std::vector<SplitPiece> joined;
  bool previous_is_match = false;
  const auto add = [&](const SplitPiece& piece) {
    const bool joins = behavior == SplitBehavior::contiguous ? piece.is_match == previous_is_match : piece.is_match && !previous_is_match;
    previous_is_match = piece.is_match;
    if (!joins || joined.empty()) return joined.push_back(piece);
    joined.back() = {std::min(joined.back().begin, piece.begin), std::max(joined.back().end, piece.end), false};
  };
  if (behavior != SplitBehavior::merged_with_next) {
    for (const SplitPiece& piece : pieces) add(piece);
    return joined;
  }
  for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) add(*piece);
  return {joined.rbegin(), joined.rend()};
}

}  // namespace

PreTokenizer::PreTokenizer(Json component) { read(component, true); }

void PreTokenizer::read(Json component, bool is_last) {
  const Json type = component.at("type");
  const std::string_view name = type.as_string();
  if (name == "Sequence") {
    const Json steps = component.at("pretokenizers").as_array();
    if (steps.size() == 0) steps.unexpected("a sequence that ends with ByteLevel", Status::unsupported);
    std::size_t left = steps.size();
    for (Json step : steps) read(step, --left == 0 && is_last);
    return;
  }
  if (steps_.size() == most_steps) component.refuse(fmt::format("expected at most {} steps, found more", most_steps), Status::unsupported);
  if ((name == "ByteLevel") != is_last)
    type.unexpected(is_last ? "\"ByteLevel\" as the last step" : "\"Split\" or \"Digits\" before the last step", Status::unsupported);
  if (name == "ByteLevel") {
    steps_.push_back(read_byte_level(component));
  } else if (name == "Split") {
    steps_.push_back(read_split(component));
  } else if (name == "Digits") {
    const bool individual = component.at("individual_digits").as_bool();
    steps_.push_back({Regex(R"(\p{N})"), individual ? SplitBehavior::isolated : SplitBehavior::contiguous, false, false});
  } else {
    type.unexpected("\"Split\", \"Digits\", \"ByteLevel\" or \"Sequence\"", Status::unsupported);
  }
}

PreTokenizer::Step PreTokenizer::read_split(Json component) {
  Step step;
  const Json pattern = component.at("pattern").as_object();
  if (const auto text = pattern.find("String")) {
    step.regex = compile(*text, [&] { return Regex::literal(text->as_string()); });
  } else {
    const Json regex = pattern.at("Regex");
    step.regex = compile(regex, [&] { return Regex(regex.as_string()); });
  }
  step.behavior = behavior_of(component.at("behavior"));
  step.invert = component.at("invert").as_bool();
  return step;
}

PreTokenizer::Step PreTokenizer::read_byte_level(Json component) {
  Step step;
  step.add_prefix_space = component.at("add_prefix_space").as_bool();
  const auto use_regex = component.find("use_regex");
  if (!use_regex || use_regex->as_bool()) step.regex.emplace(gpt2_pattern);
  return step;
}

void PreTokenizer::apply(std::size_t index, std::string_view text, RegexMemory& memory, FunctionRef<void(std::string_view)> sink) const {
  if (text.empty()) return;
  if (index == steps_.size()) return sink(text);
  const Step& step = steps_[index];
  std::string prefixed;
  if (step.add_prefix_space && text[0] != ' ') {
    prefixed.reserve(text.size() + 1);
    prefixed += ' ';
    prefixed += text;
    text = prefixed;
  }
  if (!step.regex) return apply(index + 1, text, memory, sink);
  const auto pass_on = [&](const SplitPiece& piece) { apply(index + 1, text.substr(piece.begin, piece.end - piece.begin), memory, sink); };
  Pieces pieces(*step.regex, text, memory);
  if (step.behavior == SplitBehavior::isolated || step.behavior == SplitBehavior::removed) {
    while (const auto piece = pieces.next()) {
      if (step.behavior == SplitBehavior::isolated || piece->is_match == step.invert) pass_on(*piece);
    }
    return;
  }
  std::vector<SplitPiece> all;
  while (const auto piece = pieces.next()) all.push_back({piece->begin, piece->end, piece->is_match != step.invert});
  for (const SplitPiece& piece : join(all, step.behavior)) pass_on(piece);
}

}  // namespace cermet
