// Plugins are found however the program is called: by PATH, which makes argv[0] "cermet", by a link, and wherever it
// was moved to with what belongs to it.
#include "tests/cli/ranks.hpp"
#include "tests/cli/shell.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

const fs::path plugin = CERMET_BINARY_DIR "/lib/libcermet_cuda.so";

/// Expects the CUDA plugin to be found: it says why there is no GPU, or there is one.
void expect_plugin(const CommandResult& env) {
  ASSERT_EQ(env.code, 0) << env.err;
  EXPECT_EQ(env.out.find("expected libcermet_cuda.so, found none"), std::string::npos) << env.out;
}

struct FoundByPath : testing::Test {
  ScratchFolder scratch;
  void SetUp() override {
    if (!fs::exists(plugin)) GTEST_SKIP() << "built without the CUDA plugin";
  }
  /// The program and the plugin with the same folders between them as in an installation and in a wheel: bin and lib.
  fs::path copy_to(const std::string& name) const {
    const fs::path prefix = scratch / name;
    fs::create_directories(prefix / "bin");
    fs::create_directories(prefix / "lib");
    fs::copy_file(program, prefix / "bin/cermet");
    fs::copy_file(plugin, prefix / "lib/libcermet_cuda.so");
    return prefix;
  }
};

TEST_F(FoundByPath, FromAnotherFolder) { expect_plugin(run_shell("cermet env", scratch.path())); }

TEST_F(FoundByPath, ByALink) {
  fs::create_directory(scratch / "bin");
  fs::create_symlink(program, scratch / "bin/cermet");
  fs::create_symlink("bin/cermet", scratch / "c");
  expect_plugin(run_shell("cermet env", scratch.path(), (scratch / "bin").string()));
  expect_plugin(run_shell("./c env", scratch.path()));
}

TEST_F(FoundByPath, FromAPrefixThatWasMoved) {
  copy_to("first");
  fs::rename(scratch / "first", scratch / "moved to, später");
  const std::string bin = (scratch / "moved to, später/bin").string();
  expect_plugin(run_shell("cermet env", scratch.path(), bin));
  fs::remove(scratch / "moved to, später/lib/libcermet_cuda.so");
  const CommandResult none = run_shell("cermet env", scratch.path(), bin);
  EXPECT_NE(none.out.find("expected libcermet_cuda.so, found none (" + bin + "/libcermet_cuda.so: no such file; "),
            std::string::npos)
      << "it is that plugin which was found, and places are named: " << none.out;
}

/// pip's script replaces itself by cermet/bin/cermet of the package and calls it "cermet".
TEST_F(FoundByPath, FromAPackageOfPython) {
  const fs::path package = copy_to("site-packages/cermet");
  const CommandResult env = run_shell("exec -a cermet '" + (package / "bin/cermet").string() + "' env", scratch.path());
  expect_plugin(env);
  EXPECT_NE(run_shell("exec -a cermet '" + program +
                          "' run " CERMET_SOURCE_DIR "/models/demo -p Once -n 1 --device null:sm_90",
                      scratch.path())
                .err.find("no such file"),
            0u);
}

TEST_F(FoundByPath, ByTheLoader) {
  const CommandResult env = run_shell(
      "$(ls /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 2>/dev/null) " + program + " env", scratch.path());
  expect_plugin(env);
}

/// The process that checks a kernel is the same program.
TEST(FoundByPathToo, ChecksOfKernels) {
  const ScratchFolder scratch;
  const CommandResult check = run_shell(
      "cermet kernel check " CERMET_BINARY_DIR "/examples/kernels/cpu/rms_norm.json --device cpu", scratch.path());
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_NE(check.out.find("passed "), std::string::npos) << check.out;
}

TEST(FoundByPathToo, RanksOfLaunch) {
  const ScratchFolder scratch;
  const CommandResult launch = run_shell("cermet launch -n 2 -- bench comm --check --sizes 1K", scratch.path());
  EXPECT_EQ(launch.code, 0) << launch.err;
}

TEST(FoundByPathToo, RanksOfMpi) {
  if (mpirun(2).empty() || !fs::exists(CERMET_BINARY_DIR "/lib/libcermet_mpi.so")) GTEST_SKIP() << "built without MPI";
  const ScratchFolder scratch;
  const CommandResult run =
      run_shell("mpirun --allow-run-as-root --oversubscribe -n 2 cermet bench comm --check --sizes 1K", scratch.path());
  EXPECT_EQ(run.code, 0) << run.err;
}

}  // namespace
}  // namespace cermet::test
