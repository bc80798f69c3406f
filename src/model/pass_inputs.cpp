#include "model/pass_inputs.hpp"

#include <algorithm>
#include <cstring>

#include "base/buffer.hpp"
#include "model/decoder.hpp"

namespace cermet {
namespace {

constexpr std::int64_t step = 16;  // elements: parts begin at multiples of 64 bytes

}  // namespace

PassInputs::PassInputs(std::int64_t tokens, std::int64_t sequences, std::int64_t pages, const DeviceQueue& queue)
    : tokens_(tokens), sequences_(sequences), pages_(pages), queue_(queue) {
  const std::int64_t bytes = (offset(6) + sequences_ * pages_) * static_cast<std::int64_t>(sizeof(std::int32_t));
  if (queue_.device) {
    device_ = queue_.device->allocate(bytes);
    host_ = queue_.device->allocate_host(bytes);
    uploads_ = queue_.device->make_stream();
    uploaded_ = uploads_->make_event();
    read_ = uploads_->make_event();
  } else {
    own_ = AlignedBuffer(bytes);
  }
  std::memset(host_.data() ? host_.data() : own_.data(), 0, static_cast<std::size_t>(bytes));
}

PassInputs::~PassInputs() {
  try {
    begin();
  } catch (const Error&) {  // a device that failed reads nothing more
  }
}

std::int64_t PassInputs::offset(int which) const {
  const std::int64_t tokens = round_up(tokens_, step), sequences = round_up(sequences_ + 1, step);
  return which <= 4 ? which * tokens : 4 * tokens + (which - 4) * sequences;
}

std::span<std::int32_t> PassInputs::part(int which, std::int64_t count) {
  std::byte* base = host_.data() ? host_.data() : own_.data();
  return {reinterpret_cast<std::int32_t*>(base) + offset(which), static_cast<std::size_t>(count)};
}

void PassInputs::bind(Executable& executable) const {
  std::byte* base = device_.data() ? device_.data() : own_.data();
  const auto bind_part = [&](const char* name, int which, const Shape& shape) {
    executable.bind(name, TensorView(reinterpret_cast<std::int32_t*>(base) + offset(which), DType::i32, shape));
  };
  bind_part(decoder_io::ids, 0, {tokens_});
  bind_part(decoder_io::positions, 1, {tokens_});
  bind_part(decoder_io::slots, 2, {tokens_});
  bind_part(decoder_io::logit_rows, 3, {tokens_});
  bind_part(decoder_io::context_lens, 4, {sequences_});
  bind_part(decoder_io::query_starts, 5, {sequences_ + 1});
  bind_part(decoder_io::block_tables, 6, {sequences_, pages_});
}

void PassInputs::begin() {
  if (pending_) uploads_->synchronize_event(*uploaded_);
  pending_ = false;
}

void PassInputs::pad(const PassSize& own, const PassSize& all) {
  CERMET_ASSERT(own.tokens == all.tokens || own.sequences < all.sequences);
  for (auto t = static_cast<std::size_t>(own.tokens); t < static_cast<std::size_t>(all.tokens); ++t) {
    ids()[t] = positions()[t] = 0;
    slots()[t] = -1;
  }
  std::fill(logit_rows().begin() + own.rows, logit_rows().begin() + all.rows, 0);
  // One token each as far as that goes: kernels take sequences of one query in fewer launches.
  for (std::int64_t b = own.sequences, next = own.tokens; b < all.sequences; ++b) {
    next = b + 1 == all.sequences ? all.tokens : std::min(next + 1, all.tokens);
    context_lens()[static_cast<std::size_t>(b)] = 0;
    query_starts()[static_cast<std::size_t>(b) + 1] = static_cast<std::int32_t>(next);
  }
}

void PassInputs::upload(std::int64_t sequences, bool with_ids) {
  if (!host_.data()) return;
  if (was_read_) uploads_->wait(*read_);
  upload_from(with_ids ? 0 : offset(1), sequences);
}

void PassInputs::upload_tables(std::int64_t sequences) {
  if (host_.data()) upload_from(offset(6), sequences);
}

void PassInputs::upload_from(std::int64_t element, std::int64_t sequences) {
  constexpr auto bytes = static_cast<std::int64_t>(sizeof(std::int32_t));
  const std::int64_t first = element * bytes, end = (offset(6) + sequences * pages_) * bytes;
  uploads_->upload(device_.data() + first, host_.data() + first, end - first);
  uploads_->record(*uploaded_);
  queue_.stream->wait(*uploaded_);
  pending_ = true;
}

void PassInputs::pass_enqueued() {
  if (!host_.data()) return;
  queue_.stream->record(*read_);
  was_read_ = true;
}

}  // namespace cermet
