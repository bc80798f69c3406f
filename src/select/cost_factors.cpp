#include "select/cost_factors.hpp"

#include "base/env.hpp"
#include "base/log.hpp"
#include "io/json_file.hpp"
#include "io/json_value.hpp"
#include "io/posix_file.hpp"
#include "jit/cache.hpp"

namespace cermet {
namespace {

constexpr std::int64_t factors_version = 1;
constexpr double least = 0.01, most = 100;  // what a factor can be; more says that something else is wrong

}  // namespace

const CostFactors& CostFactors::process() {
  static const CostFactors factors =
      read(file_of(env::value(env::Name::CERMET_TUNING), jit::DiskCache::process().folder()));
  return factors;
}

std::filesystem::path CostFactors::file_of(const std::string& place, const std::filesystem::path& cache_folder) {
  if (place.empty())
    return cache_folder.empty() ? cache_folder : cache_folder / jit::DiskCache::tuning_folder / "costs-1.json";
  if (place == "off" || std::filesystem::path(place).extension() == ".json") return {};
  return place + ".costs.json";
}

CostFactors CostFactors::read(const std::filesystem::path& file) try {
  CostFactors all;
  std::error_code error;
  if (file.empty() || !std::filesystem::exists(file, error)) return all;
  const JsonDocument document = JsonDocument::read(file, {.max_bytes = 1 << 20, .max_values = 1 << 16, .max_depth = 4});
  if (const std::int64_t found = document.root().at("cermet_costs").as_integer(); found != factors_version)
    document.root().at("cermet_costs").unexpected(fmt::format("{}", factors_version));
  for (const Json device : document.root().at("devices").as_object())
    for (const Json factor : device.as_object()) {
      const double value = factor.as_number();
      if (!(value >= least && value <= most)) factor.unexpected(fmt::format("a number from {:g} to {:g}", least, most));
      all.factors_[std::string(device.key())][std::string(factor.key())] = value;
    }
  return all;
} catch (const Error& error) {
  log().warn("factors of modelled costs are passed over: {}", error.what());
  return {};
}

void CostFactors::write(const std::filesystem::path& file) const {
  JsonValue devices = JsonValue::object();
  for (const auto& [device, factors] : factors_) {
    devices[device] = JsonValue::object();
    for (const auto& [kernel, factor] : factors) devices[device][kernel] = factor;
  }
  std::error_code error;
  if (file.has_parent_path()) std::filesystem::create_directories(file.parent_path(), error);
  if (error) fail(Status::io, "{}: {}", file.parent_path().string(), error.message());
  write_file_atomically(file,
                        JsonValue{{"cermet_costs", factors_version}, {"devices", std::move(devices)}}.dump(1) + "\n");
}

double CostFactors::of(std::string_view device, std::string_view kernel) const {
  const auto factors = factors_.find(device);
  if (factors == factors_.end()) return 1;
  const auto factor = factors->second.find(kernel);
  return factor == factors->second.end() ? 1 : factor->second;
}

void CostFactors::set(const std::string& device, std::map<std::string, double, std::less<>> factors) {
  if (factors.empty()) factors_.erase(device);
  else factors_[device] = std::move(factors);
}

}  // namespace cermet
