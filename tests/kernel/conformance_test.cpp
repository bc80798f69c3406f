// The one conformance harness: every kernel against its operator's reference, over the operator's own cases,
// instruction sets and thread counts.
#include "tests/kernel/conformance.hpp"
#include "tests/support/every_operator.hpp"

#include "op/schema/operator.hpp"

#include "kernel/cpu/kernels.hpp"

namespace cermet {
namespace {

class Conformance : public testing::TestWithParam<const OpDefinition*> {};

TEST_P(Conformance, EveryKernelMatchesTheReference) {
  expect_conforms(*GetParam(), cpu::kernels_of(GetParam()->kind), true);
}

INSTANTIATE_TEST_SUITE_P(Operators, Conformance, testing::ValuesIn(every_operator()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace cermet
