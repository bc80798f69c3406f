// The skeletons of an operator, a kernel and a compile step, checked like the real ones.
#include <gtest/gtest.h>

#include "graph/idle_casts.hpp"
#include "graph/text.hpp"
#include "graph/verify.hpp"
#include "op/operator.hpp"
#include "tests/kernel/conformance.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/golden.hpp"

namespace cermet {

OpSpec define_center();
namespace cpu {
extern const Kernel rowwise_rms_norm_plain;
}

namespace {

OpDefinition center() { return {{{}, "center"}, define_center()}; }  // a row of ops.inc would give kind and name

TEST(Operator, ReferenceCentresRows) {
  const OpDefinition op = center();
  for (const Case& test_case : op.cases()) {
    const CaseData data = make_case_data(op, test_case);
    const Expected expected = run_reference(data);
    ASSERT_EQ(expected.outputs.size(), 1u);
    const TensorView& y = expected.outputs[0].view;
    ASSERT_EQ(y.shape, data.inputs[0].shape) << test_case.name;
    const double strength = data.problem.attributes.number("strength");
    for (std::int64_t row = 0; row < y.elements(); row += y.shape.back()) {
      double before = 0, after = 0;
      for (std::int64_t i = row; i < row + y.shape.back(); ++i) {
        before += load(data.inputs[0], i);
        after += load(y, i);
      }
      EXPECT_TRUE(std::isnan(before) ? std::isnan(after) : std::abs(after - (1 - strength) * before) < 1e-9) << test_case.name;
    }
  }
}

TEST(Operator, RefusesByName) {
  const OpDefinition op = center();
  const auto error = [&](TensorType type, const Attributes& attributes) { return error_text([&] { make_problem(op, {type}, attributes); }); };
  EXPECT_EQ(error({DType::f32, {Dim::symbol("T"), 4}}, {}), "no error");
  EXPECT_EQ(error({DType::f32, {}}, {}), "center: operand 0 (x): expected at least 1 dimensions, found f32[]");
  EXPECT_EQ(error({DType::f32, {4}}, {{"strength", -1.0}}), "center: attribute 'strength': expected a non-negative number, found -1.0");
}

TEST(Kernel, Conforms) {
  const Kernel* const kernel = &cpu::rowwise_rms_norm_plain;
  expect_conforms(definition(OpKind::rms_norm), {&kernel, 1}, false);
}

TEST(CompileStep, KeepsWhatMatters) {
  const Graph before = parse_graph(read_file(CERMET_SOURCE_DIR "/examples/skeleton/test/idle_casts.before.graph"));
  const Graph after = remove_idle_casts(before);
  verify(after);
  expect_golden("../examples/skeleton/test/idle_casts.after.graph", to_text(after));
}

}  // namespace
}  // namespace cermet
