#include "select/tuning_database.hpp"

#include <mutex>
#include <optional>
#include <shared_mutex>

#include "base/error.hpp"
#include "base/function_ref.hpp"
#include "base/log.hpp"
#include "select/tuning_file.hpp"
#include "select/tuning_table.hpp"

namespace cermet {

struct TuningDatabase::State {
  std::filesystem::path file;
  Damage damage;
  mutable std::shared_mutex table_mutex;
  TuningTable table;
  std::mutex writer_mutex;
  std::optional<TuningFile> writer;  ///< opened by the first change

  void move_aside(const Error& reason) const {
    if (const std::filesystem::path aside = TuningFile::move_aside(file); !aside.empty())
      log().warn("measured choices are not used, `cermet tune` measures again: {}; renamed to {}", reason.what(),
                 aside.filename().string());
  }

  std::vector<TuningEntry> read() const {
    try {
      return TuningFile::read(file);
    } catch (const Error& error) {
      if (error.status() != Status::invalid_file || damage == Damage::refuse) throw;
      move_aside(error);
      return TuningFile::read(file);  // what another process may have made meanwhile
    }
  }

  void load() {
    std::vector<TuningEntry> entries;
    try {
      entries = read();
    } catch (const Error& error) {
      if (error.status() == Status::invalid_file && damage == Damage::refuse) throw;
      log().warn("measured choices are not used: {}", error.what());
    }
    TuningTable made;
    for (TuningEntry& entry : entries) made.put(std::move(entry));
    const std::unique_lock lock(table_mutex);
    table = std::move(made);
  }

  /// Changes the file, which another process may have moved aside since.
  void write(FunctionRef<void(TuningFile&)> change) {
    const std::scoped_lock lock(writer_mutex);
    if (writer && !writer->is_current()) writer.reset();
    try {
      if (!writer) writer.emplace(file);
      return change(*writer);
    } catch (const Error& error) {
      writer.reset();
      if (error.status() != Status::invalid_file || damage == Damage::refuse) throw;
      move_aside(error);
    }
    change(writer.emplace(file));
  }
};

TuningDatabase::TuningDatabase(std::unique_ptr<State> state) : state_(std::move(state)) {}
TuningDatabase::TuningDatabase(TuningDatabase&&) noexcept = default;
TuningDatabase& TuningDatabase::operator=(TuningDatabase&&) noexcept = default;
TuningDatabase::~TuningDatabase() = default;

TuningDatabase TuningDatabase::open(const std::filesystem::path& file, Damage damage) {
  auto state = std::make_unique<State>();
  state->file = file;
  state->damage = damage;
  state->load();
  return TuningDatabase(std::move(state));
}

const std::filesystem::path& TuningDatabase::file() const { return state_->file; }

bool TuningDatabase::empty() const {
  const std::shared_lock lock(state_->table_mutex);
  return state_->table.empty();
}

bool TuningDatabase::has_device(std::string_view device) const {
  const std::shared_lock lock(state_->table_mutex);
  return state_->table.has_device(device);
}

std::optional<TuningEntry> TuningDatabase::find(const TuningKey& key) const {
  const std::shared_lock lock(state_->table_mutex);
  const TuningEntry* const found = state_->table.find(key);
  return found ? std::optional(*found) : std::nullopt;
}

void TuningDatabase::visit(FunctionRef<void(const TuningKey&)> look) const {
  const std::shared_lock lock(state_->table_mutex);
  state_->table.visit(look);
}

void TuningDatabase::put(const TuningEntry& entry) {
  if (const std::string fault = fault_of(entry); !fault.empty())
    fail(Status::invalid_argument, "tuning entry: {}", fault);
  state_->write([&](TuningFile& file) { file.put(entry); });
  const std::unique_lock lock(state_->table_mutex);
  state_->table.put(entry);
}

std::vector<TuningEntry> TuningDatabase::all(std::string_view device) const {
  const std::shared_lock lock(state_->table_mutex);
  return state_->table.all(device);
}

std::int64_t TuningDatabase::clear(std::string_view device) {
  std::error_code error;
  if (!std::filesystem::exists(state_->file, error)) return 0;
  std::int64_t removed = 0;
  state_->write([&](TuningFile& file) { removed = file.clear(device); });
  const std::unique_lock lock(state_->table_mutex);
  state_->table.clear(device);
  return removed;
}

void TuningDatabase::reload() { state_->load(); }

}  // namespace cermet
