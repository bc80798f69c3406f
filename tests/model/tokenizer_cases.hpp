// Tokenizers of tests/model/data/tokenizer/cases.json, which tools/make_tokenizer_cases.py writes.
#pragma once

#include <nlohmann/json.hpp>

#include "model/tokenizer/tokenizer.hpp"
#include "tests/model/scratch.hpp"
#include "tests/support/models.hpp"

namespace cermet::test {

using nlohmann::json;

inline const std::filesystem::path tokenizer_data = source / "tests/model/data/tokenizer";

inline const json& cases() {
  static const json all = json::parse(content_of(tokenizer_data / "cases.json"));
  return all;
}

/// A whole tokenizer.json from its parts and the vocabulary that all of cases.json share.
inline json assemble(json parts) {
  const json flags = {{"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  json file = {{"version", "1.0"},
               {"truncation", nullptr},
               {"padding", nullptr},
               {"decoder", flags},
               {"model", cases()["model"]}};
  file["decoder"]["type"] = "ByteLevel";
  for (const char* name : {"added_tokens", "normalizer", "pre_tokenizer", "post_processor"}) file[name] = parts[name];
  json& model = file["model"];
  model.update({{"type", "BPE"},
                {"dropout", nullptr},
                {"unk_token", nullptr},
                {"fuse_unk", false},
                {"byte_fallback", false},
                {"ignore_merges", false}});
  model.update(parts["settings"]);
  if (model.value("merges_as_text", false)) {
    for (json& merge : model["merges"]) merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  model.erase("merges_as_text");
  return file;
}

inline Tokenizer load(const json& file) {
  const ScratchFolder scratch;
  return Tokenizer::load(scratch.file("tokenizer.json", file.dump()));
}

}  // namespace cermet::test
