#include "runtime/super_kernel/region_watch.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "base/log.hpp"

namespace cermet {

using Clock = std::chrono::steady_clock;

struct RegionWatch::Entry {
  WatchedRegion region;
  std::unique_ptr<Stream> copies;  ///< made before anything runs for ever
  DeviceBuffer found;              ///< on the host
  std::uint32_t run = 0;           ///< that was seen last
  std::vector<std::uint32_t> progress;
  Clock::time_point since;

  /// Whether a run goes on in which nothing has gone on for too long.
  bool is_endless(Clock::time_point now) {
    const std::uint32_t begun = region.flags->begun;
    if (begun == region.flags->ended) return run = 0, false;
    const auto* const words = reinterpret_cast<const std::uint32_t*>(found.data());
    copies->download(found.data(), region.progress, found.size());
    copies->synchronize();  // of copies alone: they pass a kernel that runs
    const std::span<const std::uint32_t> current(words, region.blocks);
    if (run != begun || !std::ranges::equal(progress, current)) {
      run = begun;
      progress.assign(current.begin(), current.end());
      since = now;
    }
    return std::chrono::duration<double>(now - since).count() >= region.patience;
  }
};

namespace {

constexpr std::chrono::milliseconds longest_pause{500};
constexpr std::size_t most_blocks_named = 4;

/// The one thread, from the first region on.
class Watcher {
 public:
  static Watcher& get() {
    static Watcher watcher;
    return watcher;
  }
  void add(std::shared_ptr<RegionWatch::Entry> entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
    if (!thread_.joinable()) thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
    changed_.notify_all();
  }
  void remove(const std::shared_ptr<RegionWatch::Entry>& entry) {
    const std::lock_guard lock(mutex_);
    std::erase(entries_, entry);
  }

 private:
  void watch(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      if (!changed_.wait(lock, stop, [this] { return !entries_.empty(); })) return;
      double least = 1;
      for (const auto& entry : entries_) {
        least = std::min(least, entry->region.patience);
        try {
          if (entry->is_endless(Clock::now())) end(*entry);
        } catch (const std::exception& error) {
          log().debug("super-kernel: its progress cannot be read: {}",
                      error.what());  // the device is gone; its users get the error
        }
      }
      const auto pause = std::min<Clock::duration>(
          longest_pause, std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(least / 8)));
      changed_.wait_for(lock, stop, pause, [] { return false; });
    }
  }
  /// Destructors would wait for the device.
  [[noreturn]] static void end(const RegionWatch::Entry& entry) {
    log().error("{}; the process ends, because nothing else ends such a launch",
                endless_text(entry.region, entry.progress));
    std::fflush(nullptr);
    std::_Exit(1);
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::shared_ptr<RegionWatch::Entry>> entries_;
  std::jthread thread_;
};

}  // namespace

RegionWatch::RegionWatch(Device& device, WatchedRegion region) : entry_(std::make_shared<Entry>()) {
  entry_->region = std::move(region);
  entry_->copies = device.make_stream();
  entry_->found = device.allocate_host(std::int64_t{4} * entry_->region.blocks);
  Watcher::get().add(entry_);
}

RegionWatch::~RegionWatch() { Watcher::get().remove(entry_); }

std::string endless_text(const WatchedRegion& region, std::span<const std::uint32_t> progress) {
  std::map<std::uint32_t, std::vector<std::size_t>> blocks_at;
  for (std::size_t b = 0; b < progress.size(); ++b) blocks_at[progress[b]].push_back(b);
  std::vector<std::string> parts;
  for (const auto& [begun, blocks] : blocks_at) {
    const std::string who = blocks.size() > most_blocks_named
                                ? fmt::format("{} blocks", blocks.size())
                                : fmt::format("block{} {}", blocks.size() == 1 ? "" : "s", fmt::join(blocks, ", "));
    parts.push_back(who + (begun == 0                    ? " before the first launch"
                           : begun > region.names.size() ? " behind the last launch"
                                                         : " in " + region.names[begun - 1]));
  }
  return fmt::format("super-kernel of {} launches: expected a block to begin another one within {:g} s, found none: {}",
                     region.names.size(), region.patience, fmt::join(parts, "; "));
}

}  // namespace cermet
