// Where output goes: through links, into pipes, to standard output by "-", into folders and files of results. What is
// refused is refused before work is done.
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "io/npy.hpp"
#include "tests/cli/shell.hpp"

namespace cermet::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* two_results = R"(graph two {
  input %x : f32[2]
  %a = relu(%x) : f32[2]
  %b = neg(%x) : f32[2]
  output "a/b" = %a
  output a_b = %b
}
)";

struct OutputOfVerbs : testing::Test {
  ScratchFolder scratch;
  CommandResult run(const std::string& script) const { return run_shell(script, scratch.path()); }
  /// Expects exit code 2 and one line that has these words.
  void expect_refused(const std::string& script, const std::string& words) const {
    const CommandResult result = run(script);
    EXPECT_EQ(result.code, 2) << script << "\n" << result.err;
    EXPECT_NE(result.err.find(words), std::string::npos) << script << "\n" << result.err;
    EXPECT_EQ(result.err.find("internal error"), std::string::npos) << script << "\n" << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }
};

TEST_F(OutputOfVerbs, GoesThroughLinks) {
  fs::create_directory(scratch / "folder");
  fs::create_symlink("folder", scratch / "to_folder");
  scratch.file("target.html", "");
  fs::create_symlink("target.html", scratch / "to_file");
  EXPECT_EQ(run("cermet explain " + demo_onnx + " -o to_file").code, 0);
  EXPECT_TRUE(fs::is_symlink(scratch / "to_file"));
  EXPECT_GT(fs::file_size(scratch / "target.html"), 1000u);
  expect_refused("cermet explain " + demo_onnx + " -o to_folder", "to_folder: expected a file, found a folder");
  EXPECT_TRUE(fs::is_symlink(scratch / "to_folder"));
}

TEST_F(OutputOfVerbs, GoesIntoPipesAndToStandardOutput) {
  ASSERT_EQ(mkfifo((scratch / "pipe").c_str(), 0600), 0);
  const CommandResult piped = run("cat pipe & cermet explain " + demo_onnx + " -o pipe && wait");
  EXPECT_EQ(piped.code, 0) << piped.err;
  EXPECT_TRUE(fs::is_fifo(scratch / "pipe"));
  const CommandResult dash = run("cermet explain " + demo_onnx + " -o -");
  EXPECT_NE(piped.out.find(dash.out.substr(0, 1000)),
            std::string::npos);  // beside the place; times come later in the page
  EXPECT_NE(dash.out.find("</html>"), std::string::npos);
  EXPECT_EQ(dash.err, "");
  expect_refused("cermet explain " + demo_onnx + " -o - --json", "-: expected a file with --json");
  const CommandResult plot = run("cermet explain op linear --shape 'x=f32[T,64] w=f32[64,64]' --tokens 8 -o -");
  EXPECT_NE(plot.out.find("<svg"), std::string::npos) << plot.err;
  EXPECT_FALSE(fs::exists(scratch / "-"));
}

TEST_F(OutputOfVerbs, PlacesThatCannotBeWrittenAreRefusedAtOnce) {
  expect_refused("cermet explain " + demo_onnx + " -o none/page.html",
                 "none/page.html: cannot be created: No such file or directory");
  write_npy(scratch / "x.npy", OwnedTensor(DType::f32, Shape{2, 2}).view);
  expect_refused("cermet call relu --input x.npy -o none/y.npy", "none/y.npy: cannot be created");
  fs::create_directory(scratch / "y.npy");
  expect_refused("cermet call relu --input x.npy -o y.npy", "y.npy: expected a file, found a folder");
  expect_refused("cermet bench comm --ranks 2 --sizes 1K -o none/plot.svg", "none/plot.svg: cannot be created");
}

TEST_F(OutputOfVerbs, ASingleResultMayHaveAFile) {
  const CommandResult made = run("cermet run " + demo_onnx + " --output y.npy");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(fs::is_regular_file(scratch / "y.npy"));
  EXPECT_EQ(read_npy(scratch / "y.npy").view.shape, (Shape{1, 3}));
  expect_refused("cermet run " + demo_onnx + " --output y.npy",
                 "--output y.npy: expected a folder, or a new file for a single result, found a file");
  EXPECT_EQ(run("cermet run " + demo_onnx + " --output folder/deep").code, 0);
  EXPECT_TRUE(fs::exists(scratch / "folder/deep/probabilities.npy"));
  fs::create_directory(scratch / "z.npy");
  EXPECT_EQ(run("cermet run " + demo_onnx + " --output z.npy").code, 0);
  EXPECT_TRUE(fs::exists(scratch / "z.npy/probabilities.npy"));
  scratch.file("file", "");
  expect_refused("cermet run " + demo_onnx + " --output file", "--output file: expected a folder");
  expect_refused("cermet run " + demo_onnx + " --output file/folder",
                 "file/folder: cannot be created: Not a directory");
  expect_refused("cermet compile " + demo_onnx + " --dim batch=1 -o file/plan", "file/plan");
}

TEST_F(OutputOfVerbs, NoTwoResultsShareAFile) {
  scratch.file("two.graph", two_results);
  const float x[] = {-1, 2};
  OwnedTensor operand(DType::f32, Shape{2});
  std::copy(x, x + 2, operand.view.as<float>());
  write_npy(scratch / "x.npy", operand.view);
  const CommandResult made = run("cermet run two.graph --input x=x.npy --output o --json");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(read_npy(scratch / "o/a_b.npy").view.as<float>()[0], 1) << "a name that is a file's keeps it";
  EXPECT_EQ(read_npy(scratch / "o/a_b_2.npy").view.as<float>()[0], 0);
  EXPECT_EQ(made.json()["outputs"][0]["file"], "o/a_b_2.npy");
  EXPECT_EQ(made.json()["outputs"][1]["file"], "o/a_b.npy");
  expect_refused("cermet run two.graph --output both.npy",
                 "--output both.npy: expected a folder for the 2 results, found a file's name");
  EXPECT_FALSE(fs::exists(scratch / "both.npy"));
}

TEST_F(OutputOfVerbs, AFolderOutAFolderIn) {
  fs::create_directory(scratch / "place");
  fs::create_symlink("place", scratch / "link");
  const CommandResult made = run("cermet synth --config " CERMET_SOURCE_DIR "/" + tiny + "/config.json --out link");
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(fs::is_symlink(scratch / "link"));
  EXPECT_TRUE(fs::exists(scratch / "place/config.json"));
}

TEST_F(OutputOfVerbs, PathsThatNoFileCanHaveAreNoInternalErrors) {
  expect_refused("cermet run " + std::string(300, 'x'), std::string(80, 'x'));
  expect_refused("cermet inspect " + std::string(5000, 'y'), std::string(80, 'y'));
  fs::create_symlink("loop", scratch / "loop");
  expect_refused("cermet run loop", "loop");
}

}  // namespace
}  // namespace cermet::test
