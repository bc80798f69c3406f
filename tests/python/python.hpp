// Python programs with the packages of requirements.txt. Nothing skips here: without the packages these tests fail, and
// script/test-python installs them.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/model/scratch.hpp"

namespace cermet::test {

/// Runs `python3 ARGUMENTS` with the interpreter that CERMET_TEST_PYTHON names and expects it to succeed.
inline void expect_python(const std::string& arguments) {
  const ScratchFolder scratch;
  const char* python = std::getenv("CERMET_TEST_PYTHON");
  ASSERT_TRUE(python) << "CERMET_TEST_PYTHON: expected an interpreter with the packages of "
                         "tests/python/requirements.txt, found none: run script/test-python";
  const int status =
      std::system((std::string(python) + " " + arguments + " >" + (scratch / "log").string() + " 2>&1").c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << content_of(scratch / "log");
}

}  // namespace cermet::test
