// Stages that look at whole tokens, and those that hand on text as it comes.
#include <array>
#include <charconv>
#include <utility>

#include "base/text.hpp"
#include "model/tokenizer/decoder_token_stage.hpp"
#include "model/tokenizer/normalizer_step.hpp"
#include "model/tokenizer/pieces.hpp"

namespace cermet {
namespace {

/// Hands a list of strings on as one.
class FuseStage : public DecoderStage {
 public:
  explicit FuseStage(DecoderStage& next) : next_(next) {}
  void part(std::string_view text) override { next_.part(text); }
  void end_token() override {}
  void finish() override {
    next_.end_token();
    next_.finish();
  }

 private:
  DecoderStage& next_;
};

class JoinedStage : public TokenStage {
 public:
  using TokenStage::TokenStage;
  void token(std::string_view text) override {
    if (std::exchange(after_first_, true)) next_.part(" ");
    emit(text);
  }

 private:
  bool after_first_ = false;
};

/// The suffix of a word's last token is the space after it, but at the end.
class BpeStage : public TokenStage {
 public:
  BpeStage(DecoderStage& next, std::string suffix) : TokenStage(next), suffix_(std::move(suffix)) {}
  void token(std::string_view text) override {
    if (held_) emit(with_suffix_as(*held_, " "));
    held_ = std::string(text);
  }
  void finish() override {
    if (held_) emit(with_suffix_as(*held_, ""));
    next_.finish();
  }

 private:
  std::string with_suffix_as(std::string_view text, std::string_view space) const {
    return suffix_.empty() ? std::string(text) : replaced(text, suffix_, space);
  }
  std::string suffix_;
  std::optional<std::string> held_;  ///< until it is known whether another one follows
};

class MetaspaceStage : public TokenStage {
 public:
  MetaspaceStage(DecoderStage& next, std::string character, bool drops_first)
      : TokenStage(next), character_(std::move(character)), drops_first_(drops_first) {}
  void token(std::string_view text) override {
    emit(replaced(text, character_, std::exchange(drops_first_, false) ? "" : " "));
  }

 private:
  std::string character_;
  bool drops_first_;
};

class ReplaceStage : public TokenStage {
 public:
  ReplaceStage(DecoderStage& next, std::shared_ptr<const Regex> regex, std::string content)
      : TokenStage(next), regex_(std::move(regex)), content_(std::move(content)) {}
  void token(std::string_view text) override {
    std::string made;
    Pieces pieces(*regex_, text, memory_);
    while (const auto piece = pieces.next())
      made += piece->is_match ? content_ : text.substr(piece->begin, piece->end - piece->begin);
    emit(made);
  }

 private:
  std::shared_ptr<const Regex> regex_;
  std::string content_;
  RegexMemory memory_;
};

class WordPieceStage : public TokenStage {
 public:
  WordPieceStage(DecoderStage& next, std::string prefix, bool cleanup)
      : TokenStage(next), prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void token(std::string_view text) override {
    std::string made(text);
    if (std::exchange(after_first_, true)) made = text.starts_with(prefix_) ? made.substr(prefix_.size()) : " " + made;
    emit(cleanup_ ? cleaned(made) : made);
  }

 private:
  /// Spaces that tokenizing has put before punctuation and contractions.
  static std::string cleaned(std::string text) {
    static constexpr std::array<std::pair<std::string_view, std::string_view>, 11> rules = {{{" .", "."},
                                                                                             {" ?", "?"},
                                                                                             {" !", "!"},
                                                                                             {" ,", ","},
                                                                                             {" ' ", "'"},
                                                                                             {" n't", "n't"},
                                                                                             {" 'm", "'m"},
                                                                                             {" do not", " don't"},
                                                                                             {" 's", "'s"},
                                                                                             {" 've", "'ve"},
                                                                                             {" 're", "'re"}}};
    for (const auto& [from, to] : rules) text = replaced(text, from, to);
    return text;
  }
  std::string prefix_;
  bool cleanup_, after_first_ = false;
};

/// Of each token so many leading and trailing characters that are the given one. Text in the middle is handed on as it
/// comes.
class StripStage : public DecoderStage {
 public:
  StripStage(DecoderStage& next, std::string character, std::int64_t start, std::int64_t stop)
      : next_(next), character_(std::move(character)), start_(start), stop_(stop), leading_(start) {}
  void part(std::string_view text) override {
    while (!text.empty()) {
      const std::string_view one = text.substr(0, first_utf8_unit(text).size);
      text.remove_prefix(one.size());
      const bool matches = one == character_;
      if (matches && leading_ > 0) {
        --leading_;
        continue;
      }
      leading_ = 0;
      if (matches) {
        if (++held_ <= stop_) continue;
        held_ = stop_;
      } else {
        for (; held_ > 0; --held_) next_.part(character_);
      }
      next_.part(one);
    }
  }
  void end_token() override {
    leading_ = start_;
    held_ = 0;
    next_.end_token();
  }
  void finish() override { next_.finish(); }

 private:
  DecoderStage& next_;
  std::string character_;
  std::int64_t start_, stop_, leading_, held_ = 0;  ///< still to be cut; kept back, as they may be the last
};

}  // namespace

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string made;
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    made += text.substr(0, at);
    made += to;
    text.remove_prefix(at + from.size());
  }
  return made += text;
}

MakeStage fuse_stage() {
  return [](DecoderStage& next, const DecoderContext&) { return std::make_unique<FuseStage>(next); };
}

MakeStage joined_stage() {
  return [](DecoderStage& next, const DecoderContext&) { return std::make_unique<JoinedStage>(next); };
}

MakeStage read_bpe_stage(Json component) {
  return [suffix = std::string(component.at("suffix").as_string())](DecoderStage& next, const DecoderContext&) {
    return std::make_unique<BpeStage>(next, suffix);
  };
}

MakeStage read_metaspace_stage(Json component) {
  const std::string character(component.at("replacement").as_string());
  if (character.empty() || first_utf8_unit(character).size != character.size())
    component.at("replacement").unexpected("one character");
  const auto scheme = component.find("prepend_scheme"), prefix = component.find("add_prefix_space");
  const bool drops_first = scheme ? scheme->as_string() != "never" : !prefix || prefix->as_bool();
  return [=](DecoderStage& next, const DecoderContext&) {
    return std::make_unique<MetaspaceStage>(next, character, drops_first);
  };
}

MakeStage read_replace_stage(Json component) {
  const auto regex = std::make_shared<const Regex>(read_pattern(component));
  const std::string content(component.at("content").as_string());
  return
      [=](DecoderStage& next, const DecoderContext&) { return std::make_unique<ReplaceStage>(next, regex, content); };
}

MakeStage read_strip_stage(Json component) {
  const std::string character(component.at("content").as_string());
  if (character.empty() || first_utf8_unit(character).size != character.size())
    component.at("content").unexpected("one character");
  const std::int64_t start = component.at("start").as_integer(0), stop = component.at("stop").as_integer(0);
  return [=](DecoderStage& next, const DecoderContext&) {
    return std::make_unique<StripStage>(next, character, start, stop);
  };
}

MakeStage read_word_piece_stage(Json component) {
  const std::string prefix(component.at("prefix").as_string());
  const bool cleanup = component.at("cleanup").as_bool();
  return [=](DecoderStage& next, const DecoderContext&) {
    return std::make_unique<WordPieceStage>(next, prefix, cleanup);
  };
}

}  // namespace cermet
