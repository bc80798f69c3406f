#include "jit/unit.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <set>
#include <thread>

#include "base/cores.hpp"
#include "base/env.hpp"
#include "io/digest.hpp"
#include "jit/claim.hpp"
#include "kernel/cuda/sources.hpp"

namespace cermet::jit {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A device header with what is often needed of it.
struct Header {
  cuda::SourceHeader source;
  std::string digest;
  std::vector<std::string> includes;
};

/// Names in the #include "..." lines of a text.
std::vector<std::string> includes_of(std::string_view text) {
  std::vector<std::string> names;
  constexpr std::string_view start = "#include \"";
  for (std::size_t at = text.find(start); at != std::string_view::npos; at = text.find(start, at + 1)) {
    const std::size_t first = at + start.size(), last = text.find('"', first);
    if (last != std::string_view::npos) names.emplace_back(text.substr(first, last - first));
  }
  return names;
}

const std::map<std::string, Header, std::less<>>& header_table() {
  static const auto table = [] {
    std::map<std::string, Header, std::less<>> made;
    for (const cuda::SourceHeader& source : cuda::device_sources())
      made[source.name] = {source, digest(std::string_view(source.text)), includes_of(source.text)};
    return made;
  }();
  return table;
}

std::vector<std::string> extra_options() {
  std::vector<std::string> list;
  std::string_view text = env::value(env::Name::CERMET_NVRTC_OPTIONS);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) list.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
  }
  return list;
}

const char* name_of(cuda::CompileRequest::Form form) {
  return form == cuda::CompileRequest::Form::cubin ? "cubin"
         : form == cuda::CompileRequest::Form::ptx ? "PTX"
                                                   : "LTO-IR";
}

/// Compiles a unit, or finds what another has compiled since the cache was asked. Nothing while another compiles it,
/// for `patience` at most; then there are two.
std::optional<Image> compile(const Unit& unit, DiskCache& cache, std::chrono::milliseconds patience) {
  const std::optional<Claim> claim =
      Claim::take(cache.enabled() ? cache.folder() : std::filesystem::path(), digest(unit.key), patience);
  if (!claim && patience.count() == 0) return std::nullopt;
  if (std::optional<StoredImage> found = cache.find_since(unit.key))
    return Image{std::move(found->bytes), true, found->seconds, std::move(found->log)};
  const Clock::time_point start = Clock::now();
  cuda::CompileResult result = unit.compile();
  StoredImage stored{std::move(result.image), std::move(result.log), seconds_since(start)};
  cache.store(unit.key, unit.name, stored);
  return Image{std::move(stored.bytes), false, stored.seconds, std::move(stored.log)};
}

/// Pieces of LTO-IR linked to a cubin for a native architecture; `pieces_key` combines their keys.
Unit link_unit(const cuda::Toolchain& toolchain, std::string name, std::vector<std::vector<std::byte>> pieces,
               const std::string& pieces_key, const std::string& architecture) {
  std::vector<std::string> options{"-arch=" + architecture, "-lto", "-O3", "-Xptxas=-v"};
  std::string key = fmt::format("// linked by nvJitLink of {}, options: {}\n{}", toolchain.version(),
                                fmt::join(options, " "), pieces_key);
  return {std::move(name), std::move(key), [&toolchain, pieces = std::move(pieces), options = std::move(options)] {
            return toolchain.link(pieces, options);
          }};
}

}  // namespace

std::vector<std::string> included_headers(const std::string& source) {
  std::set<std::string> found;
  std::vector<std::string> open = includes_of(source);
  while (!open.empty()) {
    const std::string name = std::move(open.back());
    open.pop_back();
    const auto header = header_table().find(name);
    if (header == header_table().end() || !found.insert(name).second) continue;
    open.insert(open.end(), header->second.includes.begin(), header->second.includes.end());
  }
  return {found.begin(), found.end()};
}

std::string display_name(std::string task) {
  constexpr std::string_view prefix = "cermet::";
  for (std::size_t at = task.find(prefix); at != std::string::npos; at = task.find(prefix, at))
    task.erase(at, prefix.size());
  return task;
}

Unit source_unit(const cuda::Toolchain& toolchain, std::string name, std::string source,
                 const std::string& architecture, cuda::CompileRequest::Form form,
                 std::span<const std::string> options) {
  cuda::CompileRequest request;
  request.name = name;
  request.form = form;
  request.options = {"-arch=" + architecture, "-std=c++20",
                     "-default-device"};  // the last: generic lambdas have no other way to be device code
  if (form == cuda::CompileRequest::Form::cubin) request.options.emplace_back("--ptxas-options=-v");
  request.options.insert(request.options.end(), options.begin(), options.end());
  for (std::string& option : extra_options()) request.options.push_back(std::move(option));
  std::vector<cuda::SourceHeader> headers;
  std::string key = fmt::format("// {} of {}\n// NVRTC {}, options: {}\n", name_of(form), architecture,
                                toolchain.version(), fmt::join(request.options, " "));
  for (const std::string& header_name : included_headers(source)) {
    const Header& header = header_table().find(header_name)->second;
    headers.push_back(header.source);
    key += fmt::format("// {} {} {}\n", header.digest, std::string_view(header.source.text).size(), header_name);
  }
  key += "\n" + source;
  request.source = std::move(source);
  return {std::move(name), std::move(key),
          [&toolchain, request = std::move(request), headers = std::move(headers)]() mutable {
            request.headers = headers;
            return toolchain.compile(request);
          }};
}

std::vector<Image> build_units(std::span<const Unit> units, Report& report, const Options& options) {
  const Clock::time_point start = Clock::now();
  DiskCache& cache = options.cache ? *options.cache : DiskCache::process();
  std::vector<Image> images(units.size());
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (std::optional<StoredImage> found = cache.find(units[i].key))
      images[i] = {std::move(found->bytes), true, found->seconds, std::move(found->log)};
    else missing.push_back(i);
  }
  std::vector<std::exception_ptr> errors(missing.size());
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  const auto make = [&](std::size_t i, std::chrono::milliseconds patience) {
    try {
      std::optional<Image> made = compile(units[missing[i]], cache, patience);
      if (made) images[missing[i]] = std::move(*made);
      return made.has_value();
    } catch (...) {
      errors[i] = std::current_exception();
      return failed = true;
    }
  };
  const auto work = [&] {
    std::vector<std::size_t> elsewhere;  // others compile them now
    for (std::size_t i = next++; i < missing.size() && !failed; i = next++)
      if (!make(i, std::chrono::milliseconds(0))) elsewhere.push_back(i);
    for (const std::size_t i : elsewhere)
      if (!failed) make(i, options.patience);
  };
  {
    const auto wanted = static_cast<std::size_t>(options.threads > 0 ? options.threads : usable_cores());
    std::vector<std::jthread> workers;
    for (std::size_t i = 1; i < std::min(wanted, missing.size()); ++i) workers.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  cache.trim_if_due();
  report.unique += static_cast<std::int64_t>(units.size());
  for (const Image& image : images) {
    (image.from_cache ? report.from_cache : report.compiled) += 1;
    if (!image.from_cache) report.compile_seconds += image.seconds;
  }
  report.seconds += seconds_since(start);
  return images;
}

Image build_linked(const cuda::Toolchain& toolchain, std::string name, std::span<const Unit> units,
                   const std::string& architecture, Report* report, const Options& options) {
  Report unused;
  Report& into = report ? *report : unused;
  into.programs += static_cast<std::int64_t>(units.size()) - 1;
  std::string keys;
  for (const Unit& unit : units) keys += unit.key + "\n";
  std::vector<std::vector<std::byte>> pieces;
  for (Image& piece : build_units(units, into, options)) pieces.push_back(std::move(piece.bytes));
  const Unit link = link_unit(toolchain, std::move(name), std::move(pieces), keys, architecture);
  return std::move(build_units(std::span(&link, 1), into, options).front());
}

}  // namespace cermet::jit
