// cermet tune list, export, import and clear, and what `explain op` says of measured choices.
#include <sstream>

#include "device/device.hpp"
#include "select/tuning_database.hpp"
#include "select/tuning_text.hpp"
#include "tests/cli/command.hpp"
#include "tests/select/tuning_entries.hpp"
#include "tests/support/golden.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

struct TuneTable : testing::Test {
  ScratchFolder scratch;
  fs::path cache = scratch / "cache", file = cache / "tuning/tuning-1.db";
  std::unique_ptr<Device> device = make_null_device(90);
  TuningEntry entry =
      entry_for(linear_region("8", 0, device->target()), "gemm.linear.hopper", "tile_m=64 tile_n=32 stages=4");

  CommandResult run(const std::string& arguments, const std::string& tuning = "") {
    return run_cermet(arguments, "", "CERMET_CACHE_DIR=" + cache.string() + " CERMET_TUNING=" + tuning);
  }
  void put() {
    entry.rivals = {{"gemm.linear.tensor", "tile=64", 15e-6, 0.1e-6}};
    TuningDatabase::open(file).put(entry);
  }
  std::string explain() const {
    return "explain op linear --shape 'x=bf16[8,2048] w=bf16[4096,2048]' --device null:sm_90";
  }
};

TEST_F(TuneTable, AnEmptyPlaceHasNothing) {
  const CommandResult list = run("tune list");
  EXPECT_EQ(list.code, 0) << list.err;
  EXPECT_EQ(list.out.find(file.string()), 0u) << list.out;
  EXPECT_EQ(run("tune list --json").json()["count"], 0);
  EXPECT_EQ(run("tune clear --json").json()["removed"], 0);
  EXPECT_FALSE(fs::exists(cache)) << "looking creates nothing";
  const CommandResult exported = run("tune export " + (scratch / "out.json").string());
  EXPECT_EQ(exported.code, 2);
  EXPECT_NE(exported.err.find("tune export: expected measured choices, found none in "), std::string::npos)
      << exported.err;
}

TEST_F(TuneTable, ListsByDevice) {
  put();
  const CommandResult list = run("tune list");
  EXPECT_NE(list.out.find(entry.key.device + "; " + entry.key.versions), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("gemm.linear.hopper, tile_m=64 tile_n=32 stages=4"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("1 measured choices; "), std::string::npos) << list.out;
  EXPECT_EQ(run("tune list --device null:sm_90 --json").json()["entries"][0]["seconds"], 12e-6);
  EXPECT_EQ(run("tune list --device cpu --json").json()["count"], 0);
  const auto cache_verify = run("cache verify --json").json();
  EXPECT_TRUE(cache_verify["strangers"].empty()) << cache_verify.dump();
}

TEST_F(TuneTable, TravelsAsText) {
  put();
  const std::string table = (scratch / "table.json").string();
  EXPECT_EQ(run("tune export " + table).code, 0);
  EXPECT_EQ(parse_tuning_table(content_of(table), table), std::vector{entry});
  EXPECT_EQ(run("tune clear --device cpu --json").json()["removed"], 0);
  EXPECT_EQ(run("tune clear --json").json()["removed"], 1);
  EXPECT_EQ(run("tune list --json").json()["count"], 0);
  const CommandResult refused = run("tune import " + table);
  EXPECT_EQ(refused.code, 2) << refused.out;
  EXPECT_NE(refused.err.find("device: expected "), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("found \"" + entry.key.device + "\""), std::string::npos) << refused.err;
  const CommandResult imported = run("tune import " + table + " --device null:sm_90 --json");
  EXPECT_EQ(imported.json()["stored"], 1) << imported.err;
  EXPECT_EQ(TuningDatabase::open(file).all(), std::vector{entry});
}

TEST_F(TuneTable, ShippedTablesHoldForEveryDriver) {
  put();
  const std::string table = (scratch / "table.json").string();
  EXPECT_EQ(run("tune export " + table + " --shipped").code, 0);
  EXPECT_EQ(parse_tuning_table(content_of(table), table).at(0).key.versions, shipped_versions());
}

TEST_F(TuneTable, MistakesSayWhatWasExpected) {
  put();
  const auto mistake = [&](const std::string& arguments, const std::string& tuning, const std::string& text) {
    const CommandResult result = run(arguments, tuning);
    EXPECT_EQ(result.code, 2) << arguments;
    EXPECT_NE(result.err.find(text), std::string::npos) << result.err;
  };
  mistake("tune export table.txt", "", "FILE: expected a name that ends in .json, found \"table.txt\"");
  mistake("tune export " + (scratch / "missing/table.json").string(), "", "missing/table.json");
  mistake("tune import " + (scratch / "missing.json").string(), "", "missing.json: ");
  mistake("tune clear", "off", "tuning database: expected a file that can be written, found CERMET_TUNING=off");
  mistake("tune list", scratch.file("notes.db", std::string(2000, 'x')).string(),
          "environment variable CERMET_TUNING: ");
  mistake(explain(), scratch.file("bad.json", "{}").string(), "environment variable CERMET_TUNING: ");
}

TEST_F(TuneTable, ExplainSaysWhatWasMeasured) {
  put();
  const CommandResult text = run(explain());
  EXPECT_EQ(text.code, 0) << text.err;
  std::string lines;  // without the configurations that were only modelled, which are many
  std::istringstream all(text.out);
  for (std::string line; std::getline(all, line);)
    if (!line.starts_with("       ") || line.find("+-") != std::string::npos) lines += line + "\n";
  expect_golden("cli/golden/explain_op_tuned.txt", lines);
  const auto json = run(explain() + " --json").json();
  EXPECT_EQ(json["kernel"], "gemm.linear.hopper");
  EXPECT_EQ(json["config"], "tile_m=64 tile_n=32 stages=4");
  EXPECT_EQ(json["tuned"]["seconds"], 12e-6);
  const auto off = run(explain() + " --json", "off").json();
  EXPECT_TRUE(off["tuned"].is_null());
  EXPECT_NE(off["config"], json["config"]) << "without measured choices";
}

TEST_F(TuneTable, ExplainDrawsCandidatesOverSizes) {
  entry = entry_for(linear_region("T", 256, device->target()), "gemm.linear.hopper", "default");
  put();
  const auto draw = [&](const std::string& rows, const std::string& file) {
    return run("explain op linear --shape 'x=bf16[" + rows +
               ",2048] w=bf16[4096,2048]' --tokens 1000 --device null:sm_90 -o " + (scratch / file).string());
  };
  const CommandResult drawn = draw("T", "plot.svg");
  EXPECT_EQ(drawn.code, 0) << drawn.err;
  const std::string svg = content_of(scratch / "plot.svg");
  EXPECT_EQ(svg.rfind("<svg ", 0), 0u);
  EXPECT_EQ(svg.substr(svg.size() - 7), "</svg>\n");
  for (const char* part : {"linear(bf16[T, 2048], bf16[4096, 2048], -)", ">gemm.linear.hopper<", ">gemv.linear<",
                           ">limit: data sheet of H200<", ">512<", "<circle "})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  const CommandResult fixed = draw("8", "fixed.svg");
  EXPECT_EQ(fixed.code, 2);
  EXPECT_NE(fixed.err.find("-o: expected a call with one symbolic dimension to plot over, such as T, found 0 in "),
            std::string::npos)
      << fixed.err;
  EXPECT_FALSE(fs::exists(scratch / "fixed.svg"));
}

TEST_F(TuneTable, ExplainSaysWhatIsIgnored) {
  entry.kernel = "gemm.linear.forgotten";
  put();
  const CommandResult text = run(explain());
  EXPECT_NE(text.out.find("expected a kernel of this operator, found \"gemm.linear.forgotten\""), std::string::npos)
      << text.out;
  const auto json = run(explain() + " --json").json();
  EXPECT_TRUE(json["tuned"].is_null());
  EXPECT_EQ(json["tuning_ignored"][0]["kernel"], "gemm.linear.forgotten");
}

}  // namespace
}  // namespace cermet::test
