// cermet cache: what it lists, finds and deletes, and what it leaves alone.
#include "jit/cache.hpp"

#include "tests/cli/command.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

struct CacheVerbs : testing::Test {
  ScratchFolder scratch;
  fs::path folder = scratch / "cache";
  jit::DiskCache cache{folder, 1 << 30};

  CommandResult run(const std::string& arguments) {
    return run_cermet("cache " + arguments, "", "CERMET_CACHE_DIR=" + folder.string());
  }
  void store(const std::string& name, std::size_t bytes = 1000) {
    cache.store("key of " + name, name, {std::vector<std::byte>(bytes), "report", 0.25});
  }
  /// Changes a byte of the image of the entry used last.
  std::string damage() {
    const std::string digest = cache.entries(false).front().digest;
    std::fstream file(folder / digest / "image", std::ios::in | std::ios::out | std::ios::binary);
    file.put('!');
    return digest;
  }
};

TEST_F(CacheVerbs, AnEmptyFolderHasNothing) {
  for (const char* verb : {"list", "clear", "verify"}) {
    const CommandResult text = run(verb), json = run(std::string(verb) + " --json");
    EXPECT_EQ(text.code, 0) << text.err;
    EXPECT_NE(text.out.find(folder.string()), std::string::npos) << text.out;
    EXPECT_NE(text.out.find("0 compiled kernels"), std::string::npos) << text.out;
    EXPECT_EQ(json.json()["folder"], folder.string());
  }
  EXPECT_FALSE(fs::exists(folder)) << "looking creates nothing";
}

TEST_F(CacheVerbs, ListsWhatWasUsedLastFirst) {
  store("rope::Task<{.head = 128}>");
  fs::last_write_time(folder / cache.entries(false).front().digest,
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  store("argmax::Task<{}>", 3000);
  const auto json = run("list --json").json();
  EXPECT_EQ(json["entries"], 2);
  EXPECT_EQ(json["max_bytes"], std::int64_t{2} << 30);
  EXPECT_GT(json["bytes"], 4000);
  ASSERT_EQ(json["kernels"].size(), 2u);
  EXPECT_EQ(json["kernels"][0]["name"], "argmax::Task<{}>");
  EXPECT_EQ(json["kernels"][1]["name"], "rope::Task<{.head = 128}>");
  EXPECT_EQ(json["kernels"][0]["compile_seconds"], 0.25);
  EXPECT_TRUE(json["kernels"][0]["problem"].is_null());
  const CommandResult text = run("list --limit 1");
  EXPECT_NE(text.out.find("argmax"), std::string::npos) << text.out;
  EXPECT_EQ(text.out.find("rope"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("and 1 more\n2 compiled kernels"), std::string::npos) << text.out;
}

TEST_F(CacheVerbs, ClearDeletesEntriesAndNothingElse) {
  store("a");
  store("b");
  std::ofstream(folder / "notes.txt") << "mine";
  const auto json = run("clear --json").json();
  EXPECT_EQ(json["removed"], 2);
  EXPECT_EQ(json["left"], 0);
  EXPECT_TRUE(cache.entries(true).empty());
  EXPECT_EQ(content_of(folder / "notes.txt"), "mine");
}

TEST_F(CacheVerbs, VerifyFindsDamage) {
  store("a");
  store("b");
  EXPECT_NE(run("verify").out.find("2 compiled kernels"), std::string::npos);
  EXPECT_EQ(run("verify --json").json()["damaged"].size(), 0u);
  const std::string digest = damage();
  const CommandResult found = run("verify");
  EXPECT_EQ(found.code, 2);
  EXPECT_EQ(found.out, "");
  for (const std::string_view part :
       {std::string_view(digest), std::string_view("expected 2 valid entries, found 1 damaged"),
        std::string_view("checksum"), std::string_view("--remove")})
    EXPECT_NE(found.err.find(part), std::string::npos) << found.err;
  const auto json = run("verify --remove --json").json();
  EXPECT_EQ(json["removed"], 1);
  EXPECT_EQ(json["damaged"][0]["digest"], digest);
  EXPECT_EQ(run("verify").code, 0);
  EXPECT_EQ(cache.entries(true).size(), 1u);
}

TEST_F(CacheVerbs, MistakesAreTold) {
  expect_mistake("cache", {"list", "clear", "verify", "found nothing"});
  expect_mistake("cache drop", {"list", "clear", "verify", "no such command: cache drop"});
}

/// What `cermet env` says where nothing is kept.
TEST_F(CacheVerbs, EnvSaysWhyNothingIsKept) {
  const CommandResult none = run_cermet("env", "", "env -u HOME -u XDG_CACHE_HOME -u CERMET_CACHE_DIR");
  EXPECT_EQ(none.code, 0) << none.err;
  EXPECT_NE(none.out.find("none kept: no folder: neither CERMET_CACHE_DIR nor HOME is set"), std::string::npos)
      << none.out;
  const std::string file = scratch.file("file", "").string();
  const CommandResult damaged = run_cermet("env", "", "CERMET_CACHE_DIR=" + file);
  EXPECT_NE(damaged.out.find(file + ", none kept: cannot be read: Not a directory"), std::string::npos) << damaged.out;
  EXPECT_EQ(run_cermet("env --json", "", "CERMET_CACHE_DIR=" + file).json()["kernel_cache"]["problem"],
            "cannot be read: Not a directory");
  EXPECT_TRUE(
      run_cermet("env --json", "", "CERMET_CACHE_DIR=" + folder.string()).json()["kernel_cache"]["problem"].is_null());
}

/// It would be another folder from each current one.
TEST_F(CacheVerbs, ARelativeFolderIsRefused) {
  const CommandResult relative = run_cermet("cache list", "", "CERMET_CACHE_DIR=cache");
  EXPECT_EQ(relative.code, 2);
  EXPECT_NE(relative.err.find("environment variable CERMET_CACHE_DIR: expected a path from the root"),
            std::string::npos)
      << relative.err;
}

TEST(EnvironmentMistakes, AreToldByEveryVerb) {
  const auto err = [](const std::string& variable) {
    const CommandResult result = run_cermet("explain op rms_norm --shape 'f32[2,8]'", "", variable);
    return fmt::format("{} {}", result.code, result.err);
  };
  EXPECT_EQ(err("CERMET_LOG=verbose"),
            "2 cermet: error: environment variable CERMET_LOG: expected trace, debug, info, warn, error, off, found "
            "\"verbose\"\n");
  EXPECT_EQ(err("CERMET_THREAD=1"),
            "0 cermet warning: environment variable CERMET_THREAD: no such variable, so it changes nothing; did you "
            "mean CERMET_THREADS?\n");
  EXPECT_EQ(
      err("CERMET_DISABLE_KERNELS=nosuch")
          .find("2 cermet: error: environment variable CERMET_DISABLE_KERNELS: expected a kernel of a family like"),
      0u)
      << err("CERMET_DISABLE_KERNELS=nosuch");
  EXPECT_EQ(err("CERMET_DISABLE_KERNELS=rowwise.rms_norm,rowwise.nosuch")
                .find("2 cermet: error: environment variable CERMET_DISABLE_KERNELS: expected one of the kernels"),
            0u);
}

}  // namespace
}  // namespace cermet::test
