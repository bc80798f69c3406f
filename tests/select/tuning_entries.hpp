// Entries for tests of measured choices.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "op/schema/operator.hpp"
#include "op/schema/type_text.hpp"
#include "select/tuning_entry.hpp"

namespace cermet::test {

/// An entry whose every field follows from the key's text and a number, so that a mixture of two is recognised.
inline TuningEntry made_entry(const std::string& region, std::int64_t number, const std::string& device = "a device") {
  TuningEntry entry;
  entry.key = {region, device, "cermet 0.1.0, GNU 12.2.0"};
  entry.kernel = fmt::format("family.k{}", number % 7);
  entry.config = fmt::format("tile={} stages={}", number % 13, number);
  entry.seconds = 1e-6 * static_cast<double>(number + 1);
  entry.spread = entry.seconds / 16;
  entry.date = fmt::format("2026-03-01 00:00:{:02}", number % 60);
  for (std::int64_t i = 0; i < number % 4; ++i)
    entry.rivals.push_back({fmt::format("rival.r{}", i), fmt::format("stages={}", number), entry.seconds * 1.5, 0});
  return entry;
}
/// The number of an entry that made_entry() made; -1 for any other.
inline std::int64_t number_of(const TuningEntry& entry) {
  const auto number = static_cast<std::int64_t>(entry.seconds * 1e6 + 0.5) - 1;
  return entry == made_entry(entry.key.region, number, entry.key.device) ? number : -1;
}

/// `linear(bf16[T, 2048], bf16[4096, 2048], -)` with a constant weight and at most so many rows; a number in place of T
/// for static ones.
inline Region linear_region(const std::string& rows, std::int64_t most, const Target* target,
                            const std::string& dtype = "bf16", int columns = 4096) {
  const OperatorCall call = parse_call(fmt::format("linear({0}[{1}, 2048], {0}[{2}, 2048])", dtype, rows, columns));
  Problem problem = make_problem(*find_operator("linear"), call.inputs, call.attributes);
  problem.constant_inputs = 1u << 1;
  problem.target = target;
  for (const Symbol& symbol : problem.input(0).dims[0].symbols()) problem.maximum.set(symbol, most);
  return problem;
}

/// An entry for the region on this machine.
inline TuningEntry entry_for(const Region& region, const std::string& kernel, const std::string& config,
                             int threads = 4) {
  return {tuning_key(region, device_identity(region.target(), threads)),
          kernel,
          config,
          12e-6,
          0.2e-6,
          "2026-03-01 14:05:09",
          {}};
}

}  // namespace cermet::test
