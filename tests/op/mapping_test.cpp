#include "op/schema/mapping.hpp"

#include <gtest/gtest.h>

#include "op/schema/type_text.hpp"

namespace cermet {
namespace {

/// Mappings of a call's operands to a result: "One-to-One, -, barrier".
std::string mappings(std::string_view text, std::size_t output = 0, std::uint64_t constants = 0) {
  const OperatorCall call = parse_call(text);
  Problem problem = make_problem(*find_operator(call.name), call.inputs, call.attributes);
  problem.constant_inputs = constants;
  std::string list;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const auto mapping = mapping_of(problem, i, output);
    list += fmt::format("{}{}", i ? ", " : "", mapping ? name_of(*mapping) : "-");
  }
  return list;
}

TEST(MappingOf, DependsOnWhetherAnOperandBroadcasts) {
  EXPECT_EQ(mappings("add(f32[T, 8], f32[T, 8])"), "One-to-One, One-to-One");
  EXPECT_EQ(mappings("add(f32[T, 8], f32[8])"), "One-to-One, One-to-Many");
  EXPECT_EQ(mappings("add(f32[T, 1], f32[T, 8])"), "One-to-Many, One-to-One");
  EXPECT_EQ(mappings("add(f32[T, 1], f32[1, 8])"), "One-to-Many, One-to-Many");
  EXPECT_EQ(mappings("add(f32[1, 8], f32[8])"), "One-to-One, One-to-One") << "an axis of length 1 repeats nothing";
  EXPECT_EQ(mappings("add(f32[T, 8], f32[8])", 0, 2), "One-to-One, One-to-One")
      << "a constant comes from no other node";
  EXPECT_EQ(mappings("where(bool[T, 1], f32[T, 8], f32[])"), "One-to-Many, One-to-One, One-to-Many");
}

TEST(MappingOf, OperatorsThatChangeNothing) {
  EXPECT_EQ(mappings("reshape(f32[T, 8]) {shape = [0, 2, 4]}"), "Reorganize");
  EXPECT_EQ(mappings("reshape(f32[T, 8]) {shape = [0, 8]}"), "One-to-One");
  EXPECT_EQ(mappings("expand(f32[1, 8]) {shape = [4, 8]}"), "One-to-Many");
  EXPECT_EQ(mappings("expand(f32[4, 8]) {shape = [4, 8]}"), "One-to-One");
  EXPECT_EQ(mappings("expand(f32[8]) {shape = [1, 8]}"), "Reorganize");
  EXPECT_EQ(mappings("transpose(f32[T, 8]) {permutation = [1, 0]}"), "Shuffle");
  EXPECT_EQ(mappings("transpose(f32[T, 1, 8]) {permutation = [1, 0, 2]}"), "Reorganize");
  EXPECT_EQ(mappings("transpose(f32[T, 8]) {permutation = [0, 1]}"), "One-to-One");
}

TEST(MappingOf, DiffersBetweenResults) {
  EXPECT_EQ(mappings("add_rms_norm(f32[T, 8], f32[T, 8], f32[8])", 0, 4), "Many-to-Many, Many-to-Many, One-to-One");
  EXPECT_EQ(mappings("add_rms_norm(f32[T, 8], f32[T, 8], f32[8])", 1, 4), "One-to-One, One-to-One, -");
}

TEST(MappingOf, KeepsTheSchemasElsewhere) {
  EXPECT_EQ(mappings("concat(f32[1, 8], f32[T, 8])"), "One-to-One, One-to-One") << "not a broadcast";
  EXPECT_EQ(mappings("split(f32[T, 8]) {axis = 1, parts = 2}", 1), "One-to-One");
  EXPECT_EQ(mappings("softmax(f32[T, 8])"), "Many-to-Many");
}

}  // namespace
}  // namespace cermet
