// The folder of kernels from outside: damage is a message and never a kernel, and what others put there is left alone.
#include "foreign/store.hpp"

#include <gtest/gtest.h>

#include "device/device.hpp"
#include "foreign/check_record.hpp"
#include "foreign/registry.hpp"
#include "tests/foreign/manifests.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;
using foreign::StoredKernel;

struct ForeignStore : testing::Test {
  ScratchFolder folder;
  fs::path store = foreign::own_store();

  fs::path add(const std::string& text = good_manifest, const std::string& code = small_ptx) {
    folder.file("k.ptx", code);
    foreign::StagedKernel staged(folder.file("m.json", text), true);
    staged.commit();
    return staged.kernel().folder;
  }
  ~ForeignStore() override {
    fs::remove_all(store);
    foreign::reload();
  }
};

TEST_F(ForeignStore, AFolderHasTheManifestItsFilesAndDigests) {
  const fs::path added = add();
  EXPECT_EQ(added, store / "test.rms_norm");
  for (const char* file : {"manifest.json", "entry.json", "k.ptx"}) EXPECT_TRUE(fs::exists(added / file)) << file;
  const StoredKernel kernel = foreign::stored_kernel("test.rms_norm");
  ASSERT_TRUE(kernel.manifest.has_value());
  EXPECT_EQ(kernel.digests.size(), 2u);
  EXPECT_EQ(kernel.digest.size(), 32u);
  EXPECT_EQ(kernel.added.size(), 19u);
  foreign::remove_kernel("test.rms_norm");
  EXPECT_FALSE(fs::exists(added));
  expect_error(Status::invalid_argument,
               {"kernel: expected one that was added; there is none, found \"test.rms_norm\""},
               [] { foreign::remove_kernel("test.rms_norm"); });
}

TEST_F(ForeignStore, TheDigestIsThatOfTheContent) {
  add();
  const std::string first = foreign::stored_kernel("test.rms_norm").digest;
  add();
  EXPECT_EQ(foreign::stored_kernel("test.rms_norm").digest, first);
  add(good_manifest, small_ptx + "// more\n");
  EXPECT_NE(foreign::stored_kernel("test.rms_norm").digest, first);
}

TEST_F(ForeignStore, StagingThatIsNotCommittedLeavesNothing) {
  folder.file("k.ptx", small_ptx);
  {
    const foreign::StagedKernel staged(folder.file("m.json", good_manifest), false);
    EXPECT_TRUE(fs::exists(staged.manifest_file()));
    EXPECT_TRUE(foreign::stored_kernels().empty());
  }
  EXPECT_TRUE(fs::is_empty(store));
}

TEST_F(ForeignStore, DamageIsReportedAndNotUsed) {
  struct Damage {
    const char* file;
    const char* content;  ///< null: the file is gone
  };
  const Damage list[]{{"manifest.json", nullptr},
                      {"manifest.json", "{}"},
                      {"entry.json", nullptr},
                      {"entry.json", "["},
                      {"entry.json", "{\"cermet_kernel_entry\": 1, \"added\": \"now\", \"files\": {}}"}};
  for (const Damage& damage : list) {
    SCOPED_TRACE(fmt::format("{}: {}", damage.file, damage.content ? damage.content : "gone"));
    const fs::path added = add();
    fs::remove(added / damage.file);
    if (damage.content) std::ofstream(added / damage.file) << damage.content;
    const StoredKernel kernel = foreign::stored_kernel("test.rms_norm");
    EXPECT_FALSE(kernel.manifest.has_value());
    EXPECT_NE(kernel.problem, "");
    foreign::reload();
    EXPECT_TRUE(foreign::foreign_kernels().empty());
    fs::remove_all(added);
  }
}

TEST_F(ForeignStore, EveryCutAndChangeOfAManifestIsFound) {
  const fs::path added = add();
  const std::string whole = content_of(added / "manifest.json");
  for (std::size_t at = 0; at < whole.size(); at += 13) {
    std::string other = whole;
    other[at] = static_cast<char>(other[at] ^ 1);
    std::ofstream(added / "manifest.json") << other;
    EXPECT_FALSE(foreign::stored_kernel("test.rms_norm").manifest.has_value()) << at;
  }
}

TEST_F(ForeignStore, ChangedCodeIsDeclined) {
  const fs::path added = add();
  const auto device = make_null_device(90);
  foreign::store_check({.kernel = "test.rms_norm",
                        .digest = foreign::stored_kernel("test.rms_norm").digest,
                        .device = foreign::device_key(device->target()),
                        .driver = "",
                        .library = foreign::library_version(),
                        .date = "2026-01-01 00:00:00",
                        .taken = 1,
                        .runs = 1,
                        .failure = ""});
  Problem problem =
      make_problem(*find_operator("rms_norm"), {TensorType{DType::f32, {4, 64}}, TensorType{DType::f32, {64}}}, {});
  problem.target = device->target();
  foreign::reload();
  ASSERT_EQ(foreign::foreign_kernels().size(), 1u);
  EXPECT_EQ(foreign::foreign_kernels()[0]->declines(problem), std::nullopt);
  std::ofstream(added / "k.ptx") << small_ptx << "\n";
  foreign::reload();
  EXPECT_NE(foreign::foreign_kernels()[0]->declines(problem).value_or("").find("expected the file that was stored"),
            std::string::npos);
}

TEST_F(ForeignStore, OtherFilesAreLeftAlone) {
  add();
  std::ofstream(store / "notes") << "mine";
  fs::create_directory(store / "test.empty");
  fs::create_directory(store / "test.rms_norm.tmp-1-2-3");
  const std::vector<StoredKernel> all = foreign::stored_kernels();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "test.empty");
  EXPECT_FALSE(all[0].manifest.has_value());
  EXPECT_TRUE(all[1].manifest.has_value());
  EXPECT_EQ(content_of(store / "notes"), "mine");
}

TEST_F(ForeignStore, AnOtherFolderIsOnlyRead) {
  const fs::path shared = foreign::store_folders().at(1);
  fs::create_directories(shared);
  fs::rename(add(), shared / "test.rms_norm");
  ASSERT_EQ(foreign::stored_kernels().size(), 1u);
  EXPECT_TRUE(foreign::stored_kernels()[0].manifest.has_value());
  expect_error(Status::unsupported, {"which is only read"}, [] { foreign::remove_kernel("test.rms_norm"); });
  expect_error(Status::invalid_argument, {"name: expected one that is not taken, found that of"}, [&] { add(); });
  fs::rename(shared / "test.rms_norm", store / "test.rms_norm");
  fs::copy(store / "test.rms_norm", shared / "test.rms_norm");
  const std::vector<StoredKernel> both = foreign::stored_kernels();
  ASSERT_EQ(both.size(), 2u);
  EXPECT_TRUE(both[0].manifest.has_value());
  EXPECT_NE(both[1].problem.find("has this name before it"), std::string::npos);
  fs::remove_all(shared);
}

TEST_F(ForeignStore, ChecksAreThoseOfTheirDigestAndVersion) {
  const foreign::CheckRecord record{.kernel = "test.rms_norm",
                                    .digest = std::string(32, 'a'),
                                    .device = "NVIDIA H200, 132 SMs",
                                    .driver = "13.0",
                                    .library = foreign::library_version(),
                                    .date = "2026-01-01 00:00:00",
                                    .taken = 3,
                                    .declined = 2,
                                    .runs = 9,
                                    .failure = ""};
  foreign::store_check(record);
  foreign::CheckRecord failed = record;
  failed.device = "another";
  failed.failure = "case x: expected 1, found 2";
  foreign::store_check(failed);
  foreign::CheckRecord old = record;
  old.device = "a third";
  old.library = "0.0.1";
  foreign::store_check(old);
  ASSERT_EQ(foreign::stored_checks(record.digest).size(), 2u);
  EXPECT_TRUE(foreign::stored_checks(std::string(32, 'b')).empty());
  for (const fs::path& file : fs::directory_iterator(store / "checked"))
    std::ofstream(file) << "{\"cermet_kernel_check\": 1}";
  EXPECT_TRUE(foreign::stored_checks(record.digest).empty());
  foreign::remove_checks(record.digest);
  EXPECT_TRUE(fs::is_empty(store / "checked"));
}

}  // namespace
}  // namespace cermet::test
