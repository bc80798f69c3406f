#include "runtime/limits_store.hpp"

#include <cmath>

#include "base/log.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "io/posix_file.hpp"
#include "jit/cache.hpp"

namespace cermet {
namespace {

constexpr std::int64_t version = 1;
constexpr JsonLimits small_file{.max_bytes = 1 << 16, .max_values = 64, .max_depth = 2};

/// The figures of a file, each with what a device can have at least and at most; 0 where it lacks the unit and may.
struct Figure {
  const char* name;
  double DeviceLimits::*value;
  double least, most;
  bool may_lack;
};
constexpr Figure figures[] = {
    {"read_bytes_per_second", &DeviceLimits::read_bytes_per_second, 1e9, 1e15, false},
    {"launch_seconds", &DeviceLimits::launch_seconds, 1e-8, 1e-2, false},
    {"f32_operations_per_second", &DeviceLimits::f32_operations_per_second, 1e9, 1e18, false},
    {"f16_operations_per_second", &DeviceLimits::f16_operations_per_second, 1e9, 1e18, true},
    {"bf16_operations_per_second", &DeviceLimits::bf16_operations_per_second, 1e9, 1e18, true},
    {"f8_operations_per_second", &DeviceLimits::f8_operations_per_second, 1e9, 1e18, true},
    {"i8_operations_per_second", &DeviceLimits::i8_operations_per_second, 1e9, 1e18, true},
};

bool is_plausible(const Figure& figure, double value) {
  return (figure.may_lack && value == 0) || (std::isfinite(value) && value >= figure.least && value <= figure.most);
}

std::string range_text(const Figure& figure) {
  return fmt::format("a number from {:g} to {:g}{}", figure.least, figure.most, figure.may_lack ? ", or 0" : "");
}

const Target& target_of(const Device& device) {
  if (!device.target()) fail(Status::unsupported, "limits of {}: expected a GPU", device.name());
  return *device.target();
}

void require_text(const Json& root, std::string_view field, std::string_view expected) {
  const Json value = root.at(field);
  if (value.as_string() != expected) value.unexpected(fmt::format("\"{}\"", expected));
}

std::string plain(std::string_view text) {
  std::string name;
  for (const char c : text)
    name +=
        (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ? c : '-';
  return name;
}

}  // namespace

std::filesystem::path limits_file(const Device& device) {
  const Target& target = target_of(device);
  const std::filesystem::path& folder = jit::DiskCache::process().folder();
  if (folder.empty()) return {};
  return folder / jit::DiskCache::limits_folder /
         fmt::format("{}, {} SMs, driver {}.json", plain(target.name), target.multiprocessors,
                     plain(device.driver_version()));
}

void store_limits(const Device& device, const std::filesystem::path& file, const DeviceLimits& limits) {
  const Target& target = target_of(device);
  JsonValue json{{"cermet_limits", version},
                 {"device", target.name},
                 {"multiprocessors", target.multiprocessors},
                 {"driver", device.driver_version()}};
  for (const Figure& figure : figures) {
    const double value = limits.*figure.value;
    require(is_plausible(figure, value), "limits of {}: {}: expected {}, found {}", device.name(), figure.name,
            range_text(figure), value);
    json[figure.name] = value;
  }
  std::error_code error;
  std::filesystem::create_directories(file.parent_path(), error);
  if (error) fail(Status::io, "{}: {}", file.parent_path().string(), error.message());
  write_file_atomically(file, json.dump(1) + "\n");
}

std::shared_ptr<const DeviceLimits> read_limits(const Device& device, const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return nullptr;
  const Target& target = target_of(device);
  const JsonDocument document = JsonDocument::read(file, small_file);
  const Json root = document.root().as_object();
  root.at("cermet_limits").as_integer(version, version);
  require_text(root, "device", target.name);
  root.at("multiprocessors").as_integer(target.multiprocessors, target.multiprocessors);
  require_text(root, "driver", device.driver_version());
  if (root.size() != 4 + std::size(figures))
    root.refuse(fmt::format("expected {} fields, found {}", 4 + std::size(figures), root.size()));
  DeviceLimits limits{.source = "measured"};
  for (const Figure& figure : figures) {
    const Json value = root.at(figure.name);
    if (!is_plausible(figure, value.as_number())) value.unexpected(range_text(figure));
    limits.*figure.value = value.as_number();
  }
  return std::make_shared<const DeviceLimits>(std::move(limits));
}

std::shared_ptr<const DeviceLimits> stored_limits(const Device& device) {
  if (!device.computes() || !device.target()) return nullptr;
  const std::filesystem::path file = limits_file(device);
  if (file.empty()) return nullptr;
  try {
    return read_limits(device, file);
  } catch (const Error& error) {
    log().warn("measured limits are not used, `cermet limits --store` measures again: {}", error.what());
    return nullptr;
  }
}

}  // namespace cermet
