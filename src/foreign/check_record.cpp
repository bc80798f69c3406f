#include "foreign/check_record.hpp"

#include "base/log.hpp"
#include "device/cpu/processor.hpp"
#include "foreign/store.hpp"
#include "io/digest.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "io/posix_file.hpp"

namespace cermet::foreign {
namespace {

namespace fs = std::filesystem;

constexpr JsonLimits record_limits{.max_bytes = 1 << 16, .max_values = 64, .max_depth = 2};

/// A name without a dot is no kernel's.
fs::path records_folder() { return own_store().empty() ? fs::path() : own_store() / "checked"; }

CheckRecord read_record(const fs::path& file) {
  const auto document = JsonDocument::read(file, record_limits);
  const Json root = document.root().as_object();
  root.at("cermet_kernel_check").as_integer(1, 1);
  const auto text = [&](const char* key) { return std::string(root.at(key).as_string()); };
  CheckRecord record{.kernel = text("kernel"),
                     .digest = text("digest"),
                     .device = text("device"),
                     .driver = text("driver"),
                     .library = text("library"),
                     .date = text("date"),
                     .failure = text("failure")};
  record.taken = root.at("taken").as_integer(0);
  record.declined = root.at("declined").as_integer(0);
  record.runs = root.at("runs").as_integer(0);
  if (record.passed() && (record.taken == 0 || record.runs == 0))
    root.refuse("expected a passed check to have taken a case, found none");
  return record;
}

template <class Body>
void for_files(const std::string& digest, Body body) {
  if (records_folder().empty()) return;
  std::error_code error;
  for (fs::directory_iterator at(records_folder(), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.starts_with(digest + "-") && name.ends_with(".json")) body(at->path());
  }
}

}  // namespace

std::string device_key(const Target* target) {
  if (target) return fmt::format("{}, {} SMs", target->name, target->multiprocessors);
  return processor().name.empty() ? "an unnamed processor" : processor().name;
}

std::string library_version() { return CERMET_VERSION; }

void store_check(const CheckRecord& record) {
  if (records_folder().empty())
    fail(Status::io,
         "cache folder: expected CERMET_CACHE_DIR, XDG_CACHE_HOME or HOME to say where checks are kept, found none of "
         "them");
  const JsonValue json{{"cermet_kernel_check", 1}, {"kernel", record.kernel},  {"digest", record.digest},
                       {"device", record.device},  {"driver", record.driver},  {"library", record.library},
                       {"date", record.date},      {"taken", record.taken},    {"declined", record.declined},
                       {"runs", record.runs},      {"failure", record.failure}};
  std::error_code error;
  fs::create_directories(records_folder(), error);
  if (error) fail(Status::io, "{}: cannot be created: {}", records_folder().string(), error.message());
  write_file_atomically(
      records_folder() / fmt::format("{}-{}.json", record.digest, digest(record.device).substr(0, 16)),
      json.dump(1) + "\n");
}

std::vector<CheckRecord> stored_checks(const std::string& digest) {
  std::vector<CheckRecord> list;
  for_files(digest, [&](const fs::path& file) {
    try {
      CheckRecord record = read_record(file);
      if (record.digest == digest && record.library == library_version()) list.push_back(std::move(record));
    } catch (const Error& error) {
      log().warn("the record of a check is not used, `cermet kernel check` makes it anew: {}", error.what());
    }
  });
  return list;
}

void remove_checks(const std::string& digest) {
  for_files(digest, [](const fs::path& file) {
    std::error_code ignored;
    fs::remove(file, ignored);
  });
}

}  // namespace cermet::foreign
