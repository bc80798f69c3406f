// The node tests of the onnx package, but those in tests/onnx/expected_failures.txt, and random networks that it
// writes.
#include "tests/python/python.hpp"

namespace cermet::test {
namespace {

TEST(Onnx, NodeTests) {
  expect_python(CERMET_SOURCE_DIR "/tests/onnx/node_tests.py --cermet " CERMET_BINARY_DIR "/bin/cermet");
}

TEST(Onnx, WholeNetworksOfTheOnnxPackage) {
  expect_python(CERMET_SOURCE_DIR "/tests/onnx/node_tests.py --light --cermet " CERMET_BINARY_DIR "/bin/cermet");
}

TEST(Onnx, FusionKeepsTheBitsOfRandomImageNetworks) {
  expect_python(CERMET_SOURCE_DIR "/tests/onnx/image_networks.py --count 1000 --cermet " CERMET_BINARY_DIR
                                  "/bin/cermet");
}

}  // namespace
}  // namespace cermet::test
