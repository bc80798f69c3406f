#include "model/tokenizer/decoder.hpp"

#include "base/text.hpp"

namespace cermet {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace

void check_decoder(std::optional<Json> component, Json root) {
  if (!component) root.refuse("decoder: expected \"ByteLevel\", found none", Status::unsupported);
  const Json type = component->at("type");
  if (type.as_string() == "ByteLevel") return;
  if (type.as_string() != "Sequence") type.unexpected("\"ByteLevel\" or \"Sequence\"", Status::unsupported);
  const Json steps = component->at("decoders").as_array();
  if (steps.size() != 1) steps.unexpected("one decoder, \"ByteLevel\"", Status::unsupported);
  check_decoder(steps.at(std::size_t{0}), root);
}

void Utf8Repair::push(std::string_view bytes, std::string& out) {
  const auto take = [&](std::string_view text) {
    while (!text.empty()) {
      const Utf8Unit unit = first_utf8_unit(text);
      if (unit.incomplete) break;
      out += unit.valid ? text.substr(0, unit.size) : replacement;
      text.remove_prefix(unit.size);
    }
    return text;
  };
  while (!waiting_.empty() && !bytes.empty()) {  // byte by byte until the waiting character is whole or broken
    waiting_ += bytes[0];
    bytes.remove_prefix(1);
    waiting_ = std::string(take(waiting_));
  }
  if (!bytes.empty()) waiting_ = std::string(take(bytes));
}

void Utf8Repair::finish(std::string& out) {
  if (!waiting_.empty()) out += replacement;
  waiting_.clear();
}

}  // namespace cermet
