// Stages whose tokens spell bytes.
#include <charconv>

#include "base/text.hpp"
#include "model/tokenizer/byte_map.hpp"
#include "model/tokenizer/decoder.hpp"
#include "model/tokenizer/decoder_token_stage.hpp"

namespace cermet {
namespace {

/// One visible character for each byte. A token with other characters stands for itself.
class ByteLevelStage : public TokenStage {
 public:
  ByteLevelStage(DecoderStage& next, const DecoderContext& context) : TokenStage(next), context_(context) {}
  void token(std::string_view text) override {
    const std::optional<std::string> spelled = context_.verbatim ? std::nullopt : bytes_of_name(text);
    const std::string_view bytes = spelled ? *spelled : text;
    if (context_.bytes) return next_.part(bytes);
    std::string out;
    repair_.push(bytes, out);
    next_.part(out);
  }
  void finish() override {
    std::string out;
    repair_.finish(out);
    next_.part(out);
    next_.end_token();
    next_.finish();
  }

 private:
  const DecoderContext& context_;
  Utf8Repair repair_;
};

/// Tokens like "<0xE2>" are bytes. A run of them is one string, or, where that is not UTF-8, a U+FFFD for each.
class ByteFallbackStage : public TokenStage {
 public:
  ByteFallbackStage(DecoderStage& next, const DecoderContext& context) : TokenStage(next), context_(context) {}
  void token(std::string_view text) override {
    if (const std::optional<char> byte = byte_of(text)) {
      if (context_.bytes) emit({&*byte, 1});
      else run_ += *byte;
      return;
    }
    end_run();
    emit(text);
  }
  void finish() override {
    end_run();
    next_.finish();
  }

 private:
  static std::optional<char> byte_of(std::string_view text) {
    if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return std::nullopt;
    std::uint8_t byte = 0;
    const char* const end = text.data() + 5;
    const auto read = std::from_chars(text.data() + 3 + (text[3] == '+' ? 1 : 0), end, byte, 16);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    return static_cast<char>(byte);
  }

  void end_run() {
    if (run_.empty()) return;
    bool valid = true;
    for (std::string_view rest = run_; valid && !rest.empty(); rest.remove_prefix(first_utf8_unit(rest).size))
      valid = first_utf8_unit(rest).valid;
    if (valid) emit(run_);
    for (std::size_t i = 0; !valid && i < run_.size(); ++i) emit("\uFFFD");
    run_.clear();
  }

  const DecoderContext& context_;
  std::string run_;
};

}  // namespace

MakeStage byte_level_stage() {
  return
      [](DecoderStage& next, const DecoderContext& context) { return std::make_unique<ByteLevelStage>(next, context); };
}

MakeStage byte_fallback_stage() {
  return [](DecoderStage& next, const DecoderContext& context) {
    return std::make_unique<ByteFallbackStage>(next, context);
  };
}

}  // namespace cermet
