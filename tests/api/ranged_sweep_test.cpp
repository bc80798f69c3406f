// Every operator, over its own cases: a varying first dimension gives the same bits as a constant one, or an error that says what must be known.
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "cermet/cermet.h"
#include "op/case_data.hpp"
#include "op/operator.hpp"
#include "op/reference.hpp"
#include "tests/support/every_operator.hpp"

namespace cermet {
namespace {

/// Kinds of operators whose first dimension must be known: ranks, experts or blocks, not tokens.
const std::set<std::string_view> known_first_dimension{"all_reduce",   "reduce_to",      "reduce_scatter", "all_gather", "gather_to",
                                                       "scatter_from", "broadcast_from", "all_to_all",     "ep_moe",     "merge_attention_states"};

/// A view as DLPack has it; points into the view.
DLTensor dl(const TensorView& view) {
  std::uint8_t code = kDLInt;
  if (view.dtype == DType::bf16) code = kDLBfloat;
  else if (view.dtype == DType::boolean || (is_floating(view.dtype) && size_of(view.dtype) == 1)) code = kDLUInt;
  else if (is_floating(view.dtype)) code = kDLFloat;
  else if (name_of(view.dtype).front() == 'u') code = kDLUInt;
  const auto bits = static_cast<std::uint8_t>(8 * size_of(view.dtype));
  return {view.data,
          {kDLCPU, 0},
          view.shape.rank(),
          {code, bits, 1},
          const_cast<std::int64_t*>(view.shape.begin()),
          const_cast<std::int64_t*>(view.strides.begin()),
          0};
}

struct Attribute {
  std::string name;
  AttributeValue value;
  mutable std::vector<const char*> texts = {};
  cermet_attribute get() const {
    cermet_attribute a{name.c_str(), CERMET_INT, 0, 0, nullptr, nullptr, 0, nullptr, nullptr};
    if (const auto* flag = std::get_if<bool>(&value)) a.kind = CERMET_BOOL, a.integer = *flag;
    if (const auto* integer = std::get_if<std::int64_t>(&value)) a.integer = *integer;
    if (const auto* number = std::get_if<double>(&value)) a.kind = CERMET_FLOAT, a.number = *number;
    if (const auto* text = std::get_if<std::string>(&value)) a.kind = CERMET_STRING, a.string = text->c_str();
    if (const auto* list = std::get_if<Ints>(&value)) a.kind = CERMET_INTS, a.integers = list->data(), a.count = list->size();
    if (const auto* list = std::get_if<Floats>(&value)) a.kind = CERMET_FLOATS, a.numbers = list->data(), a.count = list->size();
    if (const auto* list = std::get_if<Strings>(&value)) {
      texts.clear();
      for (const std::string& text : *list) texts.push_back(text.c_str());
      a.kind = CERMET_STRINGS, a.strings = texts.data(), a.count = texts.size();
    }
    return a;
  }
};

class RangedOperator : public testing::TestWithParam<const OpDefinition*> {
 protected:
  static void SetUpTestSuite() { ASSERT_EQ(cermet_create("cpu", 2, &handle), CERMET_OK); }
  static void TearDownTestSuite() { cermet_destroy(handle); }

  /// Creates the case's operator; dimension 0 of operands that are `size` long varies, where `size` >= 0: of operand 0 alone, or of all.
  static cermet_status create(const CaseData& data, std::int64_t size, bool everywhere, cermet_op** op) {
    std::vector<std::vector<std::int64_t>> shapes;
    std::vector<cermet_descriptor> inputs;
    for (std::size_t i = 0; i < data.inputs.size(); ++i) {
      const TensorView& view = data.inputs[i];
      shapes.emplace_back(view.shape.begin(), view.shape.end());
      const bool constant = view.present && data.problem.is_constant(i);
      if (size >= 0 && !constant && view.present && !shapes.back().empty() && shapes.back()[0] == size && (i == 0 || everywhere))
        shapes.back()[0] = CERMET_DIM('M');
      inputs.push_back({view.present ? name_of(view.dtype).data() : nullptr, view.shape.rank(), shapes.back().data(), nullptr, constant ? 1 : 0});
    }
    std::vector<Attribute> attributes;
    std::vector<cermet_attribute> list;
    for (const auto& [name, value] : data.problem.attributes) attributes.push_back({std::string(name), value});
    for (const Attribute& a : attributes) list.push_back(a.get());
    const cermet_range range{'M', size + 5};
    return cermet_op_create_ranged(handle, data.problem.op->name.data(), inputs.data(), inputs.size(), list.data(), list.size(), &range, size >= 0 ? 1 : 0, op);
  }

  /// Runs on copies of operands that are updated in place, and returns the bytes of the results.
  static std::vector<std::vector<std::byte>> run(cermet_op* op, const CaseData& data) {
    std::vector<DLTensor> tensors;
    std::vector<OwnedTensor> results;
    std::vector<const DLTensor*> in;
    std::vector<DLTensor*> out;
    tensors.reserve(data.inputs.size() + data.problem.outputs.size());
    for (std::size_t i = 0; i < data.inputs.size(); ++i) {
      tensors.push_back(dl(data.inputs[i]));
      in.push_back(data.inputs[i].present ? &tensors.back() : nullptr);
      if (!data.inputs[i].present || !data.problem.is_constant(i)) continue;
      EXPECT_EQ(cermet_op_set_constant(op, i, &tensors.back()), CERMET_OK) << cermet_last_error_message();
      in.back() = nullptr;
    }
    results.reserve(data.problem.outputs.size());
    for (std::size_t o = 0; o < data.problem.outputs.size(); ++o) {
      const TensorType& type = data.problem.outputs[o];
      std::vector<std::int64_t> shape(Shape::max_rank);
      EXPECT_EQ(cermet_op_output_shape(op, o, in.data(), in.size(), shape.data()), CERMET_OK) << cermet_last_error_message();
      EXPECT_TRUE(std::equal(type.dims.begin(), type.dims.end(), shape.begin(), [](const Dim& d, std::int64_t n) { return d.constant() == n; }));
      results.emplace_back(type.dtype, cermet::bind(type.dims, {}));
      const TensorView& view = results.back().view;
      if (view.elements() > 0) std::memset(view.data, 0, static_cast<std::size_t>(results.back().memory.size()));
      tensors.push_back(dl(view));
      out.push_back(&tensors.back());
      const int alias = cermet_op_output_alias(op, o);
      if (alias < 0) continue;
      const TensorView& state = data.inputs[static_cast<std::size_t>(alias)];
      for (std::int64_t e = 0; e < state.elements(); ++e) copy_element(state, e, view, e);
      tensors[static_cast<std::size_t>(alias)] = dl(view);
    }
    EXPECT_EQ(cermet_op_run(op, in.data(), in.size(), out.data(), out.size(), nullptr, 0, nullptr), CERMET_OK) << cermet_last_error_message();
    std::vector<std::vector<std::byte>> bytes;
    for (const OwnedTensor& r : results) bytes.emplace_back(r.memory.data(), r.memory.data() + r.memory.size());
    return bytes;
  }

  static inline cermet_handle* handle = nullptr;
};

TEST_P(RangedOperator, GivesTheBitsOfTheNumber) {
  const OpDefinition& op = *GetParam();
  int taken = 0;
  for (const Case& test_case : op.cases()) {
    if (!test_case.inputs[0] || test_case.inputs[0]->constant || test_case.inputs[0]->type.rank() == 0) continue;
    const std::int64_t size = test_case.inputs[0]->type.dims[0].constant();
    const CaseData data = make_case_data(op, test_case);
    cermet_op* known = nullptr;
    ASSERT_EQ(create(data, -1, false, &known), CERMET_OK) << test_case.name << ": " << cermet_last_error_message();
    const auto expected = run(known, data);
    cermet_op_destroy(known);
    for (const bool everywhere : {false, true}) {
      cermet_op* ranged = nullptr;
      const cermet_status status = create(data, size, everywhere, &ranged);
      if (status != CERMET_OK) {
        EXPECT_TRUE(status == CERMET_INVALID_ARGUMENT || status == CERMET_UNSUPPORTED) << test_case.name << ": " << cermet_last_error_message();
        continue;
      }
      ++taken;
      EXPECT_EQ(run(ranged, data), expected) << test_case.name;
      cermet_op_destroy(ranged);
    }
  }
  EXPECT_EQ(taken == 0, known_first_dimension.contains(op.name)) << taken << " cases may have a first dimension that varies";
}

INSTANTIATE_TEST_SUITE_P(Operators, RangedOperator, testing::ValuesIn(every_operator()), [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace cermet
