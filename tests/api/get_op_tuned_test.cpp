// Operators by name where sizes were tuned: what holds for a range, and what for one size alone.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/api/tensors.hpp"
#include "tests/model/scratch.hpp"

namespace cermet::test {
namespace {

/// What `cermet tune` says of two calls: this machine's name, and the texts of their regions.
nlohmann::json tuned_dry(const ScratchFolder& folder) {
  const std::string out = (folder / "tuned.json").string();
  const std::string command = "CERMET_TUNING=off " CERMET_BINARY_DIR
                              "/bin/cermet tune op rms_norm --shapes 'f32[48,4] f32[4]' 'f32[T,4] f32[4]' --tokens 128 "
                              "--threads 2 --candidates 1 --budget 60 --seconds 0.001 --dry --json >" +
                              out;
  if (std::system(command.c_str()) != 0) return {};
  return nlohmann::json::parse(content_of(out));
}

/// A table by which 48 rows, and 65 to 128, run on one thread.
std::string table_of(const nlohmann::json& tuned) {
  nlohmann::json entries = nlohmann::json::array();
  for (const auto& result : tuned["results"])
    entries.push_back({{"region", result["region"]},
                       {"device", tuned["device"]},
                       {"versions", tuned["versions"]},
                       {"kernel", "rowwise.rms_norm"},
                       {"config", "threads=1"},
                       {"seconds", 1e-6},
                       {"spread", 1e-8},
                       {"date", "2026-03-01 14:05:09"},
                       {"rivals", nlohmann::json::array()}});
  return nlohmann::json{{"cermet_tuning", 1}, {"entries", entries}}.dump();
}

/// Calls with these rows in order, and prints kernels' configurations with how many operators are bound.
void print_calls() {
  const ScratchFolder folder;
  const auto table = folder.file("table.json", table_of(tuned_dry(folder)));
  setenv("CERMET_TUNING", table.c_str(), 1);
  cermet_handle* handle = nullptr;
  cermet_callable* callable = nullptr;
  Floats w({4}, {1, 2, 3, 4});
  if (cermet_create("cpu", 2, &handle) != CERMET_OK) std::exit(2);
  for (const std::int64_t rows : {40, 48, 50, 64, 48, 100, 70, 128, 130}) {
    Floats x({rows, 4}, std::vector<float>(static_cast<std::size_t>(4 * rows), 2)),
        y({rows, 4}, std::vector<float>(static_cast<std::size_t>(4 * rows), -1));
    const DLTensor* in[] = {x.get(), w.get()};
    DLTensor* out = y.get();
    if (!callable && cermet_get_op(handle, "rms_norm", in, 2, nullptr, 0, nullptr, &callable) != CERMET_OK)
      std::exit(3);
    if (cermet_call(callable, in, 2, &out, 1, nullptr) != CERMET_OK || y.memory.back() < 3.99f ||
        y.memory.back() > 4.01f)
      std::exit(4);
    std::fprintf(stderr, "%d:%s/%d ", static_cast<int>(rows), cermet_callable_config(callable),
                 static_cast<int>(cermet_callable_bound_count(callable)));
  }
  std::exit(0);
}

/// The library reads the table once, so that this runs in a process of its own.
TEST(GetOpTuned, RangesEndWhereATunedSizeSaysOtherwise) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(print_calls(), testing::ExitedWithCode(0),
              "40:default/1 48:threads=1/2 50:default/2 64:default/2 48:threads=1/2 100:threads=1/3 70:threads=1/3 "
              "128:threads=1/3 130:default/4 ");
}

}  // namespace
}  // namespace cermet::test
