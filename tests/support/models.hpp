// Where the models of the repository are.
#pragma once

#include <filesystem>

namespace cermet {

inline const std::filesystem::path source = CERMET_SOURCE_DIR;
inline const std::filesystem::path demo = source / "models/demo";
inline const std::filesystem::path model_data = source / "tests/model/data";
inline const std::filesystem::path references = model_data / "reference";
inline const std::filesystem::path small_model = references / "llama-gqa-f32";
inline const std::filesystem::path small_mixture = references / "qwen3moe-bf16";

}  // namespace cermet
