#include "model/parallel/spread_batch.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>

#include "base/error.hpp"

namespace cermet {
namespace {

using Clock = std::chrono::steady_clock;

/// How long a peer computes before it reports to the others.
constexpr std::chrono::milliseconds round_time{100};

/// A token of a request, or how it ended.
struct Event {
  std::uint32_t request;
  std::int32_t id;  ///< where negative: -1 - Generation::End
};

/// What one peer says in a message, in front of its events.
struct Header {
  bool cancelled = false, working = false, more = false;  ///< more: of this round
  std::int32_t passes = 1;  ///< of the next round, where engines share experts: what rank 0 says holds
};

constexpr std::size_t most_events = (4096 - sizeof(Header)) / sizeof(Event);

std::string to_message(Header header, std::span<const Event> events) {
  std::string text(sizeof header + events.size_bytes(), '\0');
  std::memcpy(text.data(), &header, sizeof header);
  if (!events.empty()) std::memcpy(text.data() + sizeof header, events.data(), events.size_bytes());
  return text;
}

std::pair<Header, std::vector<Event>> parts_of(const std::string& message) {
  CERMET_ASSERT(message.size() >= sizeof(Header) && (message.size() - sizeof(Header)) % sizeof(Event) == 0);
  std::pair<Header, std::vector<Event>> parts;
  std::memcpy(&parts.first, message.data(), sizeof(Header));
  parts.second.resize((message.size() - sizeof(Header)) / sizeof(Event));
  if (!parts.second.empty())
    std::memcpy(parts.second.data(), message.data() + sizeof(Header), message.size() - sizeof(Header));
  return parts;
}

class Spread {
 public:
  Spread(Engine& engine, Communicator& peers, std::span<const BatchRequest> requests,
         const BatchGenerator::Events& events)
      : engine_(engine), peers_(peers), events_(events), generator_(engine, own_events()) {
    for (std::size_t i = static_cast<std::size_t>(peers.rank()); i < requests.size();
         i += static_cast<std::size_t>(peers.size()))
      generator_.add(requests[i]);
    results_.resize(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i) results_[i].prompt_tokens = std::ssize(requests[i].prompt);
  }

  void run(const std::atomic<bool>& cancelled) {
    for (bool going = true; going;) {
      const bool working = engine_.shares_experts() ? compute_in_step(cancelled) : compute(cancelled);
      const Heard heard = tell(cancelled, working);
      if (heard.cancelled) {
        generator_.cancel();
        tell(true, false);
      }
      going = heard.working && !heard.cancelled;
    }
  }

 private:
  /// One round of this peer alone. Whether requests are left.
  bool compute(const std::atomic<bool>& cancelled) {
    bool working = true;
    const Clock::time_point end = Clock::now() + round_time;
    while (working && !cancelled && (peers_.size() == 1 || Clock::now() < end)) working = generator_.step();
    return working;
  }

  /// One round of engines that share experts: as many passes on each, without tokens where it has none, unless none
  /// has.
  bool compute_in_step(const std::atomic<bool>& cancelled) {
    bool working = true;
    const Clock::time_point begin = Clock::now();
    for (std::int32_t pass = 0; pass < passes_; ++pass) {
      working = working && !cancelled && generator_.step();
      if (!working && !engine_.forward_nothing()) return false;
    }
    const std::chrono::duration<double> taken = Clock::now() - begin;
    const double fit = round_time / std::max(taken, std::chrono::duration<double>(1e-6)) * passes_;
    passes_ = static_cast<std::int32_t>(std::clamp(fit, 1.0, 1000.0));
    return working;
  }

  struct Heard {
    bool cancelled = false, working = false;  ///< any peer
  };

  bool leads() const { return peers_.rank() == 0; }
  std::size_t number(std::size_t own) const {
    return own * static_cast<std::size_t>(peers_.size()) + static_cast<std::size_t>(peers_.rank());
  }

  /// Of this peer's generator: on rank 0 the caller's, elsewhere for the next message.
  BatchGenerator::Events own_events() {
    if (!leads())
      return {[this](std::size_t i, std::int32_t id) {
                unsent_.push_back({static_cast<std::uint32_t>(number(i)), id});
              },
              [this](std::size_t i, const Generation& result) {
                unsent_.push_back({static_cast<std::uint32_t>(number(i)), -1 - static_cast<std::int32_t>(result.end)});
              }};
    return {[this](std::size_t i, std::int32_t id) {
              if (events_.on_token) events_.on_token(number(i), id);
            },
            [this](std::size_t i, const Generation& result) {
              if (events_.on_done) events_.on_done(number(i), result);
            }};
  }

  /// All peers tell each other what they have, in as many messages as the one with most needs.
  Heard tell(bool cancelled, bool working) {
    Heard heard;
    std::span<const Event> left(unsent_);
    for (bool more = true; more;) {
      const std::span<const Event> now = left.first(std::min(left.size(), most_events));
      left = left.subspan(now.size());
      more = false;
      const std::vector<std::string> messages =
          peers_.gather_text(to_message({cancelled, working, !left.empty(), passes_}, now));
      passes_ = parts_of(messages.front()).first.passes;
      for (const std::string& message : messages) {
        const auto [header, events] = parts_of(message);
        heard.cancelled |= header.cancelled;
        heard.working |= header.working;
        more |= header.more;
        if (leads()) std::ranges::for_each(events, [&](const Event& event) { play(event); });
      }
    }
    unsent_.clear();
    return heard;
  }

  /// Applies another peer's report as if it had happened here.
  void play(const Event& event) {
    Generation& result = results_.at(event.request);
    if (event.id >= 0) {
      result.ids.push_back(event.id);
      if (events_.on_token) events_.on_token(event.request, event.id);
      return;
    }
    result.end = static_cast<Generation::End>(-1 - event.id);
    if (events_.on_done) events_.on_done(event.request, result);
    result.ids = {};
  }

  Engine& engine_;
  Communicator& peers_;
  const BatchGenerator::Events& events_;
  std::int32_t passes_ = 1;  ///< of a round, where engines share experts
  std::vector<Event> unsent_;
  std::vector<Generation> results_;  ///< of other peers' requests, on rank 0
  BatchGenerator generator_;
};

}  // namespace

void generate_spread(Engine& engine, Communicator& peers, std::span<const BatchRequest> requests,
                     const BatchGenerator::Events& events, const std::atomic<bool>& cancelled) {
  Spread(engine, peers, requests, events).run(cancelled);
}

}  // namespace cermet
