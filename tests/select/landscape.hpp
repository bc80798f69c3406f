// Candidates whose times are a function of their configurations: what tests search.
#pragma once

#include <functional>

#include "select/tune/tuner.hpp"

namespace cermet {

class Landscape {
 public:
  using Seconds = std::function<double(const Config& complete)>;
  /// A kernel whose own choice takes `own` seconds and the points of a space what the function says.
  Landscape(ConfigSpace space, double own, Seconds seconds, Seconds modelled = {})
      : space_(std::move(space)), own_(own), seconds_(std::move(seconds)) {
    kernel_.name = "landscape";
    candidates_.list.push_back({{kernel_, {}}, {}, modelled ? own : 0});
    for (const Config& point : space_.points())
      candidates_.list.push_back(
          {{kernel_, point}, places_of(space_, point), modelled ? modelled(space_.complete(point)) : 0});
    std::vector<int> sizes;
    for (const ConfigField& field : space_.fields()) sizes.push_back(static_cast<int>(field.values.size()));
    candidates_.sizes.emplace_back(&kernel_, sizes);
  }
  Landscape(const Landscape&) = delete;
  Landscape& operator=(const Landscape&) = delete;

  const TuneCandidates& candidates() const { return candidates_; }
  double seconds(const Choice& choice) const {
    return choice.config.empty() ? own_ : seconds_(space_.complete(choice.config));
  }
  double best() const {
    double least = own_;
    for (const TuneCandidate& candidate : candidates_.list) least = std::min(least, seconds(candidate.choice));
    return least;
  }
  /// Times without noise.
  TuneBench bench() const {
    return {.expect = [](const Choice&) {},
            .check = [](const Choice&) { return std::string(); },
            .time =
                [this](const Choice& choice, double) {
                  return Timing{seconds(choice), 0.001 * seconds(choice)};
                },
            .compare =
                [this](const Choice& first, const Choice& second) {
                  return PairedTiming{{seconds(first), 0}, {seconds(second), 0}, seconds(second) / seconds(first), 0};
                }};
  }

 private:
  Kernel kernel_;
  ConfigSpace space_;
  double own_;
  Seconds seconds_;
  TuneCandidates candidates_;
};

/// 8 * 8 * 8 * 2 points in a bowl whose optimum is at 5, 3, 6 with `fast` 1; the fields count unequally.
inline ConfigSpace bowl_space() {
  ConfigSpace space;
  space.add(ConfigField::range("a", 0, 7))
      .add(ConfigField::range("b", 0, 7))
      .add(ConfigField::range("c", 0, 7))
      .add(ConfigField::set("fast", {0, 1}));
  return space;
}
inline double bowl(const Config& c) {
  const auto distance = [&](const char* name, std::int64_t at) {
    return static_cast<double>((c.at(name) - at) * (c.at(name) - at));
  };
  return 1 + 0.08 * distance("a", 5) + 0.04 * distance("b", 3) + 0.02 * distance("c", 6) +
         (c.at("fast") == 1 ? 0 : 0.5);
}

}  // namespace cermet
