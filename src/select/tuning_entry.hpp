// What was measured for a key.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "select/tuning_key.hpp"

namespace cermet {

/// A kernel in one of its configurations that was measured and did not win.
struct TunedRival {
  std::string kernel, config;      ///< `config` as Config::to_string() spells it
  double seconds = 0, spread = 0;  ///< as of an entry
  friend bool operator==(const TunedRival&, const TunedRival&) = default;
};

struct TuningEntry {
  TuningKey key;
  std::string kernel, config;      ///< the fastest; `config` as Config::to_string() spells it
  double seconds = 0;              ///< median of one launch at the symbols' maximum
  double spread = 0;               ///< half the distance between the quartiles of its times, in seconds
  std::string date;                ///< when, "2026-03-01 14:05:09" in UTC
  std::vector<TunedRival> rivals;  ///< fastest first; the untuned choice is among them where it did not win
  friend bool operator==(const TuningEntry&, const TuningEntry&) = default;
};

/// What no tuner stores: an empty text, a configuration that is none, a time that is not positive and finite, more than
/// 4096 rivals or 64 KiB of text. Nothing for a sound entry.
std::string fault_of(const TuningEntry& entry);

/// The current time as an entry's date.
std::string tuning_date();

}  // namespace cermet
