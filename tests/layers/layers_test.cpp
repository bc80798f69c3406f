// Includes follow the table of src/README.md: to lower ranks, never to another backend, and from device code to device
// code alone.
#include <gtest/gtest.h>

#include "tests/layers/includes.hpp"
#include "tests/model/scratch.hpp"

namespace cermet::test {
namespace {

TEST(Layers, IncludesFollowTheTable) {
  const IncludeReport report = check_includes(CERMET_SOURCE_DIR);
  for (const std::string& line : report.broken) ADD_FAILURE() << line;
  EXPECT_GT(report.files, 400);
  EXPECT_GT(report.includes, 2000);
}

// ---- The checker itself: one file that includes one other ----

struct Row {
  const char *file, *include, *problem;  ///< "" where it may
};

const Row rows[]{
    {"op/a.cpp", "op/b.hpp", ""},
    {"op/a.cpp", "base/b.hpp", ""},
    {"base/a.hpp", "op/b.hpp", "expected a rank below 0, found 2"},
    {"op/a.inc", "graph/b.hpp", "expected a rank below 2, found 3"},
    {"graph/a.cpp", "kernel/b.hpp", "expected a rank below 3, found 3"},
    {"graph/a.cpp", "kernel/cpu/b.hpp", "expected a rank below 3, found 3"},
    {"kernel/cpu/a.cpp", "kernel/b.hpp", ""},
    {"kernel/cpu/a.cpp", "kernel/cuda/b.hpp", "expected nothing of another backend than cpu"},
    {"kernel/cuda/a.cpp", "kernel/cpu/b.hpp", "expected nothing of another backend than cuda"},
    {"kernel/cuda/a.cpp", "kernel/cuda/device/b.hpp", ""},
    {"kernel/cuda/a.cpp", "device/cuda/b.hpp", ""},
    {"kernel/cpu/a.cpp", "device/cuda/b.hpp", "expected nothing of another backend than cpu"},
    {"device/a.cpp", "device/cuda/b.hpp", ""},
    {"device/null/a.cpp", "device/cuda/b.hpp", "expected nothing of another backend than null"},
    {"device/cpu/a.cpp", "device/null/b.hpp", "expected nothing of another backend than cpu"},
    {"kernel/cuda/device/a.cuh", "kernel/cuda/device/ptx/b.cuh", ""},
    {"kernel/cuda/device/a.cuh", "format/half.hpp", ""},
    {"kernel/cuda/device/a.cuh", "format/element.hpp", "expected a header that cmake/embed.cmake gives to NVRTC"},
    {"kernel/cuda/device/gemm/a.hpp", "kernel/cuda/task.hpp",
     "expected a header that cmake/embed.cmake gives to NVRTC"},
    {"format/half.hpp", "base/dtype.hpp", "expected a header that cmake/embed.cmake gives to NVRTC"},
    {"kernel/cuda/device/a.cuh", "<cstdint>", "expected a header that cmake/embed.cmake gives to NVRTC"},
    {"kernel/cuda/device/a.hpp", "<cstdint>", ""},
    {"new/a.cpp", "base/b.hpp", "its folder is not in the table of src/README.md"},
    {"op/a.cpp", "neighbour.hpp", "expected a folder of the table of src/README.md"},
};

TEST(Layers, AForbiddenIncludeIsReportedByName) {
  for (const Row& row : rows) {
    const ScratchFolder tree;
    fs::create_directories(tree / "cmake");
    for (const char* name : {"src/README.md", "cmake/embed.cmake"}) {
      fs::create_directories((tree / name).parent_path());
      fs::copy_file(fs::path(CERMET_SOURCE_DIR) / name, tree / name);
    }
    const fs::path file = tree / "src" / row.file;
    fs::create_directories(file.parent_path());
    const std::string include = row.include;
    const bool angled = include.front() == '<';
    std::ofstream(file) << "#pragma once\n  # include " << (angled ? include : '"' + include + '"') << "\n";
    const IncludeReport report = check_includes(tree.path());
    EXPECT_EQ(report.includes, 1);
    const std::string name = angled ? include.substr(1, include.size() - 2) : include;
    const std::vector<std::string> expected{std::string("src/") + row.file + " includes " + name + ": " + row.problem};
    EXPECT_EQ(report.broken, *row.problem ? expected : std::vector<std::string>());
  }
}

}  // namespace
}  // namespace cermet::test
