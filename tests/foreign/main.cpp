// Besides the tests, the process in which a check runs a kernel: the command line's `kernel cases`, without the rest of
// the command line.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "runtime/kernel_cases.hpp"
#include "tests/model/scratch.hpp"

int main(int argc, char** argv) {
  if (argc == 8 && std::string_view(argv[1]) == "kernel" && std::string_view(argv[2]) == "cases")
    return cermet::run_kernel_cases(argv[3], argv[5], std::atoi(argv[7])) ? 0 : 2;
  const cermet::test::ScratchFolder cache;  // nothing of the user's is touched
  setenv("CERMET_CACHE_DIR", cache.path().c_str(), 1);
  setenv("CERMET_KERNELS", (cache / "shared").c_str(), 1);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
