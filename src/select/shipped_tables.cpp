#include "select/shipped_tables.hpp"

#include "select/tuning_text.hpp"

namespace cermet {

const TuningTable& shipped_tuning() {
  static const TuningTable table = [] {
    TuningTable made;
    for (const ShippedTable& shipped : shipped_tables())
      for (TuningEntry& entry : parse_tuning_table(shipped.text, shipped.name))
        if (entry.key.versions == shipped_versions()) made.put(std::move(entry));
    return made;
  }();
  return table;
}

}  // namespace cermet
