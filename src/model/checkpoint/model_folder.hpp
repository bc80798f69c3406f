// What people give in place of a model's folder, and what to do about it.
#pragma once

#include <filesystem>
#include <string>

namespace cermet {

/// Throws Error unless `path` is a folder; says what to do with the name of a model on the Hub, with a GGUF file and
/// with one of a model's files.
void require_model_folder(const std::filesystem::path& path);

/// What lies in a folder without safetensors, for a message: "neither", or "FILE only" with what to do.
std::string other_weights(const std::filesystem::path& folder);

}  // namespace cermet
