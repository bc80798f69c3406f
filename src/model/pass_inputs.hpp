// The index inputs of one forward pass: filled on the host, in one block, so that one copy brings them to a device.
#pragma once

#include <memory>
#include <span>

#include "base/buffer.hpp"
#include "jit/program_store.hpp"
#include "runtime/executable.hpp"

namespace cermet {

/// How much a pass computes: the values of a decoder graph's symbols.
struct PassSize {
  std::int64_t tokens = 0, sequences = 0, rows = 0;  ///< rows: of logits
};

class PassInputs {
 public:
  /// Room for passes of up to `tokens` tokens of up to `sequences` sequences with `pages` cache pages each. Without a
  /// queue, a graph reads host memory.
  PassInputs(std::int64_t tokens, std::int64_t sequences, std::int64_t pages, const DeviceQueue& queue);
  ~PassInputs();
  PassInputs(const PassInputs&) = delete;
  PassInputs& operator=(const PassInputs&) = delete;

  /// Binds the inputs of a decoder graph to this memory.
  void bind(Executable& executable) const;
  /// Waits until the memory may be written again: the last upload has been read.
  void begin();
  /// Fills what `all` has more than `own`, which is filled: tokens without a slot, of sequences without a context,
  /// whose queries see nothing and which no cache keeps. Where there are more tokens there are more sequences.
  void pad(const PassSize& own, const PassSize& all);
  /// Enqueues the copy to the device, where there is one; `sequences` tables were filled. It waits for the last pass
  /// only, not for what came after it in the queue's stream, whose later work waits for the copy. Without the ids,
  /// those lie there already, or will.
  void upload(std::int64_t sequences, bool with_ids = true);
  /// Enqueues the copy of the tables alone, which may only have grown since the last one: passes that still read them
  /// do not read what is new.
  void upload_tables(std::int64_t sequences);
  /// To be called after a pass: what it read may be written again.
  void pass_enqueued();

  /// Where the graph reads the ids: in device memory, where there is a device.
  std::int32_t* ids_in_graph() const {
    return reinterpret_cast<std::int32_t*>(device_.data() ? device_.data() : own_.data());
  }
  std::span<std::int32_t> ids() { return part(0, tokens_); }
  std::span<std::int32_t> positions() { return part(1, tokens_); }
  std::span<std::int32_t> slots() { return part(2, tokens_); }
  std::span<std::int32_t> logit_rows() { return part(3, tokens_); }
  std::span<std::int32_t> context_lens() { return part(4, sequences_); }
  std::span<std::int32_t> query_starts() { return part(5, sequences_ + 1); }
  std::span<std::int32_t> block_table(std::int64_t sequence) {
    return part(6, sequences_ * pages_)
        .subspan(static_cast<std::size_t>(sequence * pages_), static_cast<std::size_t>(pages_));
  }

 private:
  std::span<std::int32_t> part(int which, std::int64_t count);
  std::int64_t offset(int which) const;  ///< in elements
  void upload_from(std::int64_t element, std::int64_t sequences);

  std::int64_t tokens_, sequences_, pages_;
  DeviceQueue queue_;
  DeviceBuffer host_, device_;
  AlignedBuffer own_;
  std::unique_ptr<Stream> uploads_;
  std::unique_ptr<DeviceEvent> uploaded_, read_;
  bool pending_ = false, was_read_ = false;
};

}  // namespace cermet
