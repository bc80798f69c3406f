#include "model/scheduler.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "base/error.hpp"

namespace cermet {

Scheduler::Scheduler(const Limits& limits) : limits_(limits), free_blocks_(limits.blocks) {
  require(limits.sequences >= 1, "sequences: expected at least 1, found {}", limits.sequences);
  require(limits.block_size >= 1, "block_size: expected at least 1, found {}", limits.block_size);
  require(limits.context >= 1 && limits.context <= limits.blocks * limits.block_size,
          "context: expected 1 to {} tokens (those of all blocks), found {}", limits.blocks * limits.block_size,
          limits.context);
  require(limits.pass_tokens >= limits.sequences,
          "pass_tokens: expected at least {} (a token of each sequence), found {}", limits.sequences,
          limits.pass_tokens);
  require(limits.few_tokens == 0 || limits.few_tokens >= limits.sequences,
          "few_tokens: expected 0 or at least {} (a token of each sequence), found {}", limits.sequences,
          limits.few_tokens);
  for (std::int64_t s = limits.sequences; s-- > 0;) free_sequences_.push_back(static_cast<int>(s));
}

void Scheduler::add(std::size_t request, std::int64_t prompt_tokens, std::int64_t max_new_tokens) {
  require(prompt_tokens >= 1, "prompt: expected at least one token, found none");
  require(prompt_tokens <= limits_.context, "prompt: expected at most {} tokens (the context), found {}",
          limits_.context, prompt_tokens);
  require(max_new_tokens >= 0, "new tokens: expected a non-negative number, found {}", max_new_tokens);
  const std::int64_t appended = std::max<std::int64_t>(0, max_new_tokens - 1);  // the last new token is never appended
  const std::int64_t tokens = std::min(limits_.context, prompt_tokens + std::min(limits_.context, appended));
  queue_.push_back({request, prompt_tokens, div_up(tokens, limits_.block_size)});
}

void Scheduler::admit() {
  while (!queue_.empty() && !free_sequences_.empty() && queue_.front().blocks <= free_blocks_) {
    Request request = queue_.front();
    queue_.pop_front();
    request.sequence = free_sequences_.back();
    free_sequences_.pop_back();
    free_blocks_ -= request.blocks;
    running_.push_back(request);
  }
}

/// Tokens of a prompt that one pass takes at most.
std::int64_t Scheduler::next_chunk(const Request& request) const {
  return std::min(limits_.pass_tokens, request.prompt_tokens - request.computed);
}

void Scheduler::take(Request& request, std::int64_t count) {
  const std::int64_t begin = request.computed;
  request.computed += count;
  pass_.push_back({request.id, request.sequence, begin, count, request.decodes()});
  pass_tokens_ += count;
}

/// All of them, or none.
void Scheduler::take_decodes(std::int64_t room) {
  if (std::ranges::count_if(running_, &Request::decodes) > room) return;
  for (Request& request : running_)
    if (request.decodes()) take(request, 1);
}

void Scheduler::take_chunks(std::int64_t room, bool short_ones) {
  for (Request& request : running_) {
    if (request.decodes() || pass_tokens_ >= room) continue;
    const std::int64_t chunk = next_chunk(request), left = room - pass_tokens_;
    if (limits_.few_tokens == 0) take(request, std::min(chunk, left));
    else if (is_short(chunk) == short_ones && chunk <= left) take(request, chunk);
  }
}

std::span<const Scheduler::Part> Scheduler::next_pass() {
  admit();
  pass_.clear();
  pass_tokens_ = 0;
  // Decided before anything is taken: a request that finishes its prompt in this pass decodes in the next.
  const auto first = std::ranges::find_if(running_, [](const Request& request) { return !request.decodes(); });
  if (first == running_.end()) {
    take_decodes(limits_.pass_tokens);
    return pass_;
  }
  const std::int64_t chunk = next_chunk(*first);
  if (!is_short(chunk)) {
    take_chunks(limits_.pass_tokens, false);
    return pass_;
  }
  const std::int64_t room =
      limits_.few_tokens == 0 ? limits_.pass_tokens : std::min(limits_.few_tokens, limits_.pass_tokens);
  take_decodes(limits_.few_tokens == 0 ? room - 1 : room - chunk);
  take_chunks(room, true);
  return pass_;
}

void Scheduler::finish(std::size_t request) {
  if (std::erase_if(queue_, [&](const Request& waiting) { return waiting.id == request; }) > 0) return;
  const auto found = std::ranges::find(running_, request, &Request::id);
  require(found != running_.end(), "request {}: expected one that runs or waits, found none", request);
  free_sequences_.push_back(found->sequence);
  free_blocks_ += found->blocks;
  running_.erase(found);
}

}  // namespace cermet
