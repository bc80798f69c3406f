// Measured choices as one JSON text: what `cermet tune export` writes, and the tables that ship with the library.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/json_value.hpp"
#include "select/tuning_entry.hpp"

namespace cermet {

JsonValue json_of(const TuningEntry& entry);
/// Entries by key, one a line for each of their values; the same entries give the same bytes.
std::string tuning_table_text(std::span<const TuningEntry> entries);

/// Throws Error(invalid_file) naming the field, with `name` for the file, and an entry that is there twice.
std::vector<TuningEntry> parse_tuning_table(std::string_view text, const std::string& name);
/// The same of a file. Throws Error(io) where it cannot be read.
std::vector<TuningEntry> read_tuning_table(const std::filesystem::path& file);
/// The rivals of an entry as JSON, read back.
std::vector<TunedRival> parse_rivals(std::string_view text, const std::string& name);

}  // namespace cermet
