// What a C model owns, and what models and batches share.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cermet/cermet.h"
#include "model/conversation.hpp"
#include "model/tokenizer/tokenizer.hpp"

struct cermet_model {
  cermet::Engine engine;
  std::optional<cermet::Tokenizer> tokenizer;
  std::string tokenizer_file;  ///< for messages
  std::int64_t max_sequences;
  std::string info;
  std::shared_ptr<cermet_model> self;                               ///< the caller's share; a batch holds another
  bool has_batch = false;                                           ///< which uses all sequences
  std::optional<cermet::Conversation> conversation = std::nullopt;  ///< in sequence 0
};

namespace cermet::api {

/// Throws Error(unsupported) on a device that computes nothing.
void require_computing(const cermet_model& model);
/// Throws Error where a batch uses the model's sequences.
void require_no_batch(const cermet_model& model);
/// The defaults where `options` is null. Throws Error naming the option that is out of range.
GenerateOptions generate_options(const cermet_model& model, const cermet_generate_options* options);
cermet_generation to_c(const Generation& made);

}  // namespace cermet::api
