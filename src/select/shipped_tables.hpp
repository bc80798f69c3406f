// Tables of measured choices that ship with the library: src/select/table/*.json, embedded.
#pragma once

#include <span>

#include "select/tuning_table.hpp"

namespace cermet {

struct ShippedTable {
  const char* name;  ///< "select/table/nvidia_h200.json"
  const char* text;
};
/// As they were written by `cermet tune export --shipped`.
std::span<const ShippedTable> shipped_tables();

/// Their entries that were measured with this version of the library; read once.
const TuningTable& shipped_tuning();

}  // namespace cermet
