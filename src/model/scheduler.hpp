// Continuous batching: which tokens of which requests the next forward pass takes. Bookkeeping alone; it runs nothing.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

namespace cermet {

class Scheduler {
 public:
  struct Limits {
    std::int64_t sequences = 1;    ///< that run at a time
    std::int64_t blocks = 0;       ///< of the KV cache, over all sequences
    std::int64_t block_size = 16;  ///< tokens of a block
    std::int64_t context = 0;      ///< tokens of one sequence; a multiple of block_size, and `blocks` hold it
    std::int64_t pass_tokens = 0;  ///< tokens of one pass
    /// Passes of up to this many tokens compute in another precision than longer ones. Where it is not 0, a part of a
    /// prompt that is longer never shares a pass with decode steps or short parts, and prompts are cut at multiples of
    /// pass_tokens: what a request gets does not depend on its neighbours. Where it is 0, passes mix freely and prompts
    /// are cut to what room a pass has left.
    std::int64_t few_tokens = 0;
  };
  /// Throws Error naming the limit that is out of range.
  explicit Scheduler(const Limits& limits);

  /// Tokens [begin, begin + count) of a request's context, which is its prompt and then what was generated.
  struct Part {
    std::size_t request = 0;
    int sequence = 0;  ///< slot of the cache
    std::int64_t begin = 0, count = 0;
    bool is_last = false;  ///< after it the next token is chosen
  };

  /// Puts a request at the end of the queue. Throws Error where the prompt is empty or longer than the context.
  void add(std::size_t request, std::int64_t prompt_tokens, std::int64_t max_new_tokens);
  /// Admits what has room, in order of arrival, and says what the next pass computes: nothing when no request is left.
  /// A request is admitted when a slot is free and as many blocks as it can ever fill, so that a sequence that has
  /// begun never waits for memory.
  std::span<const Part> next_pass();
  /// A request that runs has its last token, or one that runs or waits is not wanted any more: its slot and blocks are
  /// free again.
  void finish(std::size_t request);

  std::size_t waiting() const { return queue_.size(); }
  std::size_t running() const { return running_.size(); }
  std::int64_t free_blocks() const { return free_blocks_; }

 private:
  struct Request {
    std::size_t id = 0;
    std::int64_t prompt_tokens = 0, blocks = 0;
    int sequence = 0;
    std::int64_t computed = 0;  ///< tokens of the context that passes have taken
    bool decodes() const { return computed >= prompt_tokens; }
  };

  void admit();
  std::int64_t next_chunk(const Request& request) const;
  bool is_short(std::int64_t chunk) const { return limits_.few_tokens == 0 || chunk <= limits_.few_tokens; }
  void take(Request& request, std::int64_t count);
  void take_decodes(std::int64_t room);
  void take_chunks(std::int64_t room, bool short_ones);

  Limits limits_;
  std::deque<Request> queue_;
  std::vector<Request> running_;  ///< in order of admission
  std::vector<int> free_sequences_;
  std::int64_t free_blocks_;
  std::vector<Part> pass_;
  std::int64_t pass_tokens_ = 0;  ///< of pass_
};

}  // namespace cermet
