#include "model/checkpoint/model_folder.hpp"

#include <algorithm>
#include <fstream>

#include "base/error.hpp"
#include "base/text.hpp"

namespace cermet {
namespace {

constexpr std::string_view no_gguf =
    "GGUF is not supported yet; take the model's safetensors (hf download NAME --local-dir DIR)";

std::string first_bytes(const std::filesystem::path& file, std::size_t count) {
  std::string bytes(count, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(bytes.data(), static_cast<std::streamsize>(count));
  bytes.resize(static_cast<std::size_t>(stream.gcount()));
  return bytes;
}

/// OWNER/MODEL, as the Hub names models.
bool is_hub_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  const auto is_part = [](std::string_view part) {
    return !part.empty() && part.front() != '.' && part.front() != '~' &&
           std::ranges::all_of(part,
                               [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_' || c == '.'; });
  };
  return slash != std::string_view::npos && is_part(name.substr(0, slash)) && is_part(name.substr(slash + 1));
}

}  // namespace

void require_model_folder(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::string name = path.string();
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) {
    const std::string remedy =
        is_hub_name(name) ? fmt::format("; hf download {} --local-dir {} fetches a model of that name from the Hub",
                                        name, path.filename().string())
                          : "";
    fail(Status::io, "{}: expected a model's folder, found nothing of that name{}", name, remedy);
  }
  if (std::filesystem::is_directory(status)) return;
  if (path.extension() == ".gguf" || first_bytes(path, 4) == "GGUF")
    fail(Status::unsupported, "{}: expected a model's folder, found a GGUF file: {}", name, no_gguf);
  const bool of_model =
      path.extension() == ".safetensors" || path.filename() == "config.json" || path.extension() == ".bin";
  fail(Status::invalid_argument, "{}: expected a model's folder, found a file{}", name,
       of_model ? "; give the folder that holds it, with config.json" : "");
}

std::string other_weights(const std::filesystem::path& folder) {
  std::error_code ignored;
  for (const std::filesystem::directory_entry& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".gguf") return fmt::format("{} only: {}", quote(entry.path().filename().string()), no_gguf);
    if (extension == ".bin" || extension == ".pt" || extension == ".pth")
      return fmt::format("{} only; transformers writes such a model as safetensors (save_pretrained)",
                         quote(entry.path().filename().string()));
    if (extension == ".safetensors") return fmt::format("{} only", quote(entry.path().filename().string()));
  }
  return "neither";
}

}  // namespace cermet
