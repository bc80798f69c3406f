// cermet run --prompts: many prompts from a file, several at a time.
#pragma once

#include <string>

#include "cli/model_options.hpp"
#include "model/generate.hpp"

namespace cermet::cli {

struct PromptsOptions {
  ModelOptions model;
  std::string file;
  std::int64_t batch = 1;
  GenerateOptions generate;
};

/// Results go to standard output in the order of the file: lines of JSON, or text that streams. Every line is checked
/// before the model is loaded; throws Error naming file, line and field.
void run_prompts(const PromptsOptions& options, Console& console);

}  // namespace cermet::cli
