#include "base/env_check.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/env.hpp"
#include "base/error.hpp"
#include "base/suggest.hpp"
#include "base/text.hpp"

extern char** environ;  // NOLINT(readability-redundant-declaration): not every C library declares it

namespace cermet::env {
namespace {

/// The words that a variable may have.
struct Words {
  Name name;
  std::vector<std::string_view> words;
};
const std::array<Words, 7>& words_of_variables() {
  static const std::array<Words, 7> list{
      {{Name::CERMET_BF16_PRODUCTS, {"auto", "on", "off"}},
       {Name::CERMET_AMX_PRODUCTS, {"auto", "on", "off"}},
       {Name::CERMET_LOG, {"trace", "debug", "info", "warn", "error", "off"}},
       {Name::CERMET_ROUNDING, {"exact", "strict", "fast"}},
       {Name::CERMET_COMM, {"auto", "mpi", "shared"}},
       {Name::CERMET_COMM_ROUTE, {"auto", "nccl", "peer", "stamped", "one-shot", "two-shot"}},
       {Name::CERMET_COMM_BESIDE, {"0", "1"}}}};
  return list;
}

constexpr std::array integers{Name::CERMET_THREADS, Name::CERMET_CACHE_BYTES, Name::CERMET_COMM_TIMEOUT,
                              Name::CERMET_WALK_TIMEOUT};
constexpr long most_threads = 1024;

constexpr std::string_view prefix = "CERMET_";

/// Variables of the scripts that build and test Cermet, which its programs do not read.
bool is_of_scripts(std::string_view name) {
  constexpr std::array<std::string_view, 6> of_scripts{"CERMET_APPROVE", "CERMET_BUILD",  "CERMET_CPU_TARGETS",
                                                       "CERMET_LIBRARY", "CERMET_PRESET", "CERMET_PYTHON"};
  return name.starts_with("CERMET_TEST_") || std::ranges::find(of_scripts, name) != of_scripts.end();
}

}  // namespace

void check() {
  for (const Words& variable : words_of_variables()) {
    const std::string& found = value(variable.name);
    if (std::ranges::find(variable.words, found) != variable.words.end()) continue;
    const std::string_view close = closest_name(found, variable.words);
    fail(Status::invalid_argument, "environment variable {}: expected {}, found {}{}",
         all()[static_cast<std::size_t>(variable.name)].name, fmt::join(variable.words, ", "), quote(found),
         close.empty() ? "" : fmt::format("; did you mean {}?", close));
  }
  for (const Name name : integers) integer(name);
  require(integer(Name::CERMET_THREADS) <= most_threads,
          "environment variable CERMET_THREADS: expected at most {}, found {}", most_threads,
          value(Name::CERMET_THREADS));
}

std::vector<std::string> unknown() {
  std::vector<std::string_view> known;
  for (const Variable& variable : all())
    known.push_back(variable.name.starts_with(prefix) ? variable.name.substr(prefix.size()) : variable.name);
  std::vector<std::string> sentences;
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view name = *entry;
    name = name.substr(0, name.find('='));
    if (!name.starts_with(prefix) || is_of_scripts(name)) continue;
    const std::string_view rest = name.substr(prefix.size());
    if (std::ranges::find(known, rest) != known.end()) continue;
    const std::string_view close = closest_name(rest, known);
    sentences.push_back(fmt::format(
        "environment variable {}: no such variable, so it changes nothing; {}", name,
        close.empty() ? std::string("`cermet env` lists them") : fmt::format("did you mean {}{}?", prefix, close)));
  }
  return sentences;
}

}  // namespace cermet::env
