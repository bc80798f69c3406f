// cermet cache list, clear and verify: the folder of compiled GPU kernels.
#include <algorithm>
#include <chrono>
#include <ctime>

#include "base/error.hpp"
#include "cli/verb.hpp"
#include "jit/cache.hpp"

namespace cermet::cli {
namespace {

using jit::DiskCache;
using Entries = std::vector<DiskCache::Entry>;

std::int64_t bytes_of(const Entries& entries) {
  std::int64_t bytes = 0;
  for (const DiskCache::Entry& entry : entries) bytes += entry.bytes;
  return bytes;
}

/// "2026-03-01 14:05:09" in UTC.
std::string time_text(std::int64_t nanoseconds) {
  const std::time_t seconds = nanoseconds / 1'000'000'000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%F %T", &parts)};
}

std::string folder_text(const DiskCache& cache) {
  const std::string problem = cache.problem();
  if (cache.folder().empty()) return problem;
  return cache.folder().string() + (problem.empty() ? "" : fmt::format(" ({})", problem));
}

Json summary(const DiskCache& cache, const Entries& entries) {
  return {{"folder", cache.folder().string()},
          {"bytes", bytes_of(entries)},
          {"max_bytes", cache.max_bytes()},
          {"entries", entries.size()},
          {"problem", cache.problem().empty() ? Json() : Json(cache.problem())}};
}

// ---- list ----

void list(Console& console, std::size_t limit) {
  const DiskCache& cache = DiskCache::process();
  const Entries entries = cache.entries(false);
  const std::size_t shown = limit > 0 ? std::min(limit, entries.size()) : entries.size();
  if (console.json()) {
    Json json = summary(cache, entries);
    json["kernels"] = Json::array();
    for (std::size_t i = 0; i < shown; ++i)
      json["kernels"].push_back({{"digest", entries[i].digest},
                                 {"name", entries[i].name},
                                 {"bytes", entries[i].bytes},
                                 {"last_used", time_text(entries[i].last_used_ns)},
                                 {"compile_seconds", entries[i].compile_seconds},
                                 {"problem", entries[i].problem.empty() ? Json() : Json(entries[i].problem)}});
    return console.write_json(json);
  }
  Table table;
  for (std::size_t i = 0; i < shown; ++i)
    table.row({time_text(entries[i].last_used_ns), bytes_text(static_cast<double>(entries[i].bytes)),
               seconds_text(entries[i].compile_seconds), entries[i].digest.substr(0, 8),
               entries[i].problem.empty() ? one_line(entries[i].name) : "damaged: " + one_line(entries[i].problem)});
  console.print("{}\n{}", folder_text(cache), table.to_string());
  if (shown < entries.size()) console.print("  and {} more\n", entries.size() - shown);
  console.print("{} compiled kernels, {} of at most {}\n", entries.size(),
                bytes_text(static_cast<double>(bytes_of(entries))), bytes_text(static_cast<double>(cache.max_bytes())));
}

// ---- clear ----

void clear(Console& console) {
  const DiskCache& cache = DiskCache::process();
  const Entries entries = cache.entries(false);
  std::size_t removed = 0;
  std::int64_t bytes = 0;
  for (const DiskCache::Entry& entry : entries) {
    if (!cache.remove(entry.digest)) continue;
    ++removed;
    bytes += entry.bytes;
  }
  const std::size_t left = entries.size() - removed;
  if (console.json())
    return console.write_json(
        {{"folder", cache.folder().string()}, {"removed", removed}, {"removed_bytes", bytes}, {"left", left}});
  console.print("{}\nremoved {} compiled kernels, {}\n", folder_text(cache), removed,
                bytes_text(static_cast<double>(bytes)));
  if (left > 0) console.print("{} remain, because their folders hold other files\n", left);
}

// ---- verify ----

void verify(Console& console, bool remove) {
  const DiskCache& cache = DiskCache::process();
  const Entries entries = cache.entries(true);
  Json damaged = Json::array();
  std::string listed;
  std::size_t removed = 0;
  for (const DiskCache::Entry& entry : entries) {
    if (entry.problem.empty()) continue;
    damaged.push_back({{"digest", entry.digest}, {"problem", entry.problem}});
    if (damaged.size() <= 3)
      listed += fmt::format("{}{} ({})", listed.empty() ? "" : ", ", entry.digest, one_line(entry.problem));
    if (damaged.size() == 4) listed += ", ...";
    removed += remove && cache.remove(entry.digest);
  }
  if (removed < damaged.size())
    fail(Status::invalid_file, "{}: expected {} valid entries, found {} damaged: {}; {}", cache.folder().string(),
         entries.size(), damaged.size() - removed, listed,
         remove ? "what could not be removed holds other files"
                : "they are recompiled when needed, and `cermet cache verify --remove` deletes them");
  const std::vector<std::string> strangers = cache.strangers();
  if (console.json()) {
    Json json = summary(cache, entries);
    json["damaged"] = damaged;
    json["removed"] = removed;
    json["strangers"] = strangers;
    return console.write_json(json);
  }
  console.print("{}\n{} compiled kernels, {}: {} valid", folder_text(cache), entries.size(),
                bytes_text(static_cast<double>(bytes_of(entries))), entries.size() - damaged.size());
  console.print("{}\n", removed > 0 ? fmt::format(", {} damaged and removed: {}", removed, listed) : "");
  if (!strangers.empty())
    console.print("not part of the cache, left alone: {}\n", one_line(fmt::format("{}", fmt::join(strangers, ", "))));
}

}  // namespace

namespace cache_list_verb {
Verb verb() {
  return {"cache list", "list the compiled GPU kernels, most recently used first",
          "  cermet cache list\n  cermet cache list --limit 10 --json", [](Parser& parser) -> Action {
            const auto limit = std::make_shared<std::size_t>(0);
            parser.option("--limit", *limit, "how many to list; 0: all");
            return [limit](Console& console) { list(console, *limit); };
          }};
}
}  // namespace cache_list_verb

namespace cache_clear_verb {
Verb verb() {
  return {"cache clear", "delete the compiled GPU kernels", "  cermet cache clear",
          [](Parser&) -> Action { return [](Console& console) { clear(console); }; }};
}
}  // namespace cache_clear_verb

namespace cache_verify_verb {
Verb verb() {
  return {"cache verify", "check every compiled GPU kernel against its checksums",
          "  cermet cache verify\n  cermet cache verify --remove", [](Parser& parser) -> Action {
            const auto remove = std::make_shared<bool>(false);
            parser.flag("--remove", *remove, "delete damaged ones; they are recompiled when needed");
            return [remove](Console& console) { verify(console, *remove); };
          }};
}
}  // namespace cache_verify_verb

}  // namespace cermet::cli
