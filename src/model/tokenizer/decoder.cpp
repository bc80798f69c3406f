#include "model/tokenizer/decoder.hpp"

#include "base/text.hpp"

namespace cermet {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD
constexpr std::size_t most_stages = 64;

MakeStage read_stage(Json component) {
  const Json type = component.at("type");
  const std::string_view name = type.as_string();
  if (name == "ByteLevel") return byte_level_stage();
  if (name == "ByteFallback") return byte_fallback_stage();
  if (name == "Fuse") return fuse_stage();
  if (name == "BPEDecoder") return read_bpe_stage(component);
  if (name == "Metaspace") return read_metaspace_stage(component);
  if (name == "Replace") return read_replace_stage(component);
  if (name == "Strip") return read_strip_stage(component);
  if (name == "WordPiece") return read_word_piece_stage(component);
  type.unexpected(
      "\"ByteLevel\", \"ByteFallback\", \"Fuse\", \"BPEDecoder\", \"Metaspace\", \"Replace\", \"Strip\", \"WordPiece\" "
      "or \"Sequence\"",
      Status::unsupported);
}

}  // namespace

Decoder::Decoder(std::optional<Json> component) {
  if (component) read(*component);
  else stages_.push_back(joined_stage());
}

void Decoder::read(Json component) {
  if (component.at("type").as_string() == "Sequence") {
    for (Json step : component.at("decoders").as_array()) read(step);
    return;
  }
  if (stages_.size() == most_stages)
    component.refuse(fmt::format("expected at most {} steps, found more", most_stages), Status::unsupported);
  stages_.push_back(read_stage(component));
}

struct Decoding::State {
  /// Collects what the last stage hands on.
  struct Collector : DecoderStage {
    void part(std::string_view text) override { out += text; }
    void end_token() override {}
    void finish() override {}
    std::string out;
  };
  DecoderContext context;
  Collector end;
  std::vector<std::unique_ptr<DecoderStage>> stages;  ///< the last first
  DecoderStage& first() { return stages.empty() ? end : *stages.back(); }
};

Decoding::Decoding(const Decoder& decoder, bool bytes) : state_(std::make_unique<State>()) {
  state_->context.bytes = bytes;
  for (auto make = decoder.stages().rbegin(); make != decoder.stages().rend(); ++make) {
    DecoderStage& next = state_->first();
    state_->stages.push_back((*make)(next, state_->context));
  }
}

Decoding::Decoding(Decoding&&) noexcept = default;
Decoding& Decoding::operator=(Decoding&&) noexcept = default;
Decoding::~Decoding() = default;

std::string Decoding::push(std::string_view name, bool verbatim) {
  state_->context.verbatim = verbatim;
  state_->first().part(name);
  state_->first().end_token();
  return std::exchange(state_->end.out, {});
}

std::string Decoding::finish() {
  state_->context.verbatim = false;
  state_->first().finish();
  return std::exchange(state_->end.out, {});
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
