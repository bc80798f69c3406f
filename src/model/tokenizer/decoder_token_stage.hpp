// What stages of decoders that look at whole tokens have in common.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/tokenizer/decoder_stage.hpp"

namespace cermet {

/// Collects the parts of a token.
class TokenStage : public DecoderStage {
 public:
  explicit TokenStage(DecoderStage& next) : next_(next) {}
  void part(std::string_view text) final { token_ += text; }
  void end_token() final {
    token(token_);
    token_.clear();
  }
  void finish() override { next_.finish(); }

 protected:
  virtual void token(std::string_view text) = 0;
  void emit(std::string_view text) {
    next_.part(text);
    next_.end_token();
  }

  DecoderStage& next_;

 private:
  std::string token_;
};

/// With every occurrence of `from`, which is not empty, as `to`.
std::string replaced(std::string_view text, std::string_view from, std::string_view to);

}  // namespace cermet
