#include "select/tuning.hpp"

#include "base/env.hpp"
#include "base/error.hpp"
#include "jit/cache.hpp"
#include "select/shipped_tables.hpp"
#include "select/tuned_sizes.hpp"
#include "select/tuning_text.hpp"

namespace cermet {
namespace {

constexpr const char* file_name =
    "tuning-1.db";  // with the version of its form, so that releases with others leave it alone

}  // namespace

Tuning& Tuning::process() {
  static Tuning tuning =
      open(env::value(env::Name::CERMET_TUNING), jit::DiskCache::process().folder(), &shipped_tuning());
  return tuning;
}

Tuning Tuning::open(const std::string& place, const std::filesystem::path& cache_folder, const TuningTable* shipped) {
  Tuning tuning;
  tuning.is_off_ = place == "off";
  if (tuning.is_off_) return tuning;
  tuning.shipped_ = shipped;
  if (place.empty()) {
    if (cache_folder.empty()) return tuning;
    tuning.file_ = cache_folder / jit::DiskCache::tuning_folder / file_name;
    tuning.database_ = TuningDatabase::open(tuning.file_);
    return tuning;
  }
  tuning.file_ = place;
  try {
    if (tuning.file_.extension() == ".json")
      for (TuningEntry& entry : read_tuning_table(tuning.file_)) tuning.text_.put(std::move(entry));
    else tuning.database_ = TuningDatabase::open(tuning.file_, TuningDatabase::Damage::refuse);
  } catch (const Error& error) {
    throw Error(error.status(), fmt::format("environment variable CERMET_TUNING: {}", error.what()));
  }
  return tuning;
}

std::vector<FoundTuning> Tuning::find(const Region& region, int threads) const {
  std::vector<FoundTuning> found;
  if (is_off_ || (!region.target() && threads == 0)) return found;
  if ((!database_ || database_->empty()) && text_.empty() && (!shipped_ || shipped_->empty())) return found;
  TuningKey key{{}, device_text(region.target(), threads), {}};
  const bool own = database_ ? database_->has_device(key.device) : text_.has_device(key.device);
  const bool shipped = shipped_ && shipped_->has_device(key.device);
  if (!own && !shipped) return found;
  key.region = tuning_text(region);
  if (own) {
    key.versions = versions_text(region.target());
    if (database_) {
      if (auto entry = database_->find(key)) found.push_back({std::move(*entry), false});
    } else if (const TuningEntry* entry = text_.find(key)) {
      found.push_back({*entry, false});
    }
  }
  if (!shipped) return found;
  key.versions = shipped_versions();
  if (const TuningEntry* entry = shipped_->find(key)) found.push_back({*entry, true});
  return found;
}

std::vector<SymbolValues> Tuning::tuned_sizes(const Region& region, int threads) const {
  std::vector<SymbolValues> sizes;
  if (is_off_ || (!region.target() && threads == 0)) return sizes;
  const std::string device = device_text(region.target(), threads);
  const bool own = database_ ? database_->has_device(device) : text_.has_device(device),
             shipped = shipped_ && shipped_->has_device(device);
  if (!own && !shipped) return sizes;
  const SizedTexts texts(region);
  const auto look_for = [&](std::string versions) {
    return [&, versions = std::move(versions)](const TuningKey& key) {
      auto found = texts.sizes_in(key.region);
      if (found && key.device == device && key.versions == versions) sizes.push_back(std::move(*found));
    };
  };
  if (own && database_) database_->visit(look_for(versions_text(region.target())));
  if (own && !database_) text_.visit(look_for(versions_text(region.target())));
  if (shipped) shipped_->visit(look_for(shipped_versions()));
  return sizes;
}

std::vector<TuningEntry> Tuning::all(std::string_view device) const {
  return database_ ? database_->all(device) : text_.all(device);
}

TuningDatabase& Tuning::database() {
  if (database_) return *database_;
  fail(Status::unsupported, "tuning database: expected a file that can be written, found {}",
       is_off_         ? "CERMET_TUNING=off"
       : file_.empty() ? "no cache folder: neither CERMET_CACHE_DIR nor HOME is set"
                       : fmt::format("the text table {}, which is never written", file_.string()));
}

std::string Tuning::place() const {
  if (is_off_) return "off: CERMET_TUNING";
  return file_.empty() ? "no folder: neither CERMET_CACHE_DIR nor HOME is set" : file_.string();
}

}  // namespace cermet
