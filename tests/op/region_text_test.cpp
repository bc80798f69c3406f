// Regions as text: what is printed is read back, and what is not a region is answered with the column at fault.
#include "op/schema/region_text.hpp"

#include <gtest/gtest.h>

#include <random>

#include "op/schema/operator.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/region.hpp"

namespace cermet {
namespace {

/// A region of float32 rows: nodes read earlier results, strict or fast, and operands, new or known. What nobody reads
/// leaves.
Region random_region(std::mt19937& random) {
  constexpr OpKind kinds[] = {OpKind::silu,         OpKind::add,     OpKind::rms_norm,
                              OpKind::add_rms_norm, OpKind::softmax, OpKind::where};
  const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const TensorType row{DType::f32, {Dim::symbol("T") * 2, 64}};
  Region region;
  std::vector<RegionPlace> made, unread;
  for (std::size_t n = 0, count = 2 + below(6); n < count; ++n) {
    const OpDefinition& op = definition(kinds[below(std::size(kinds))]);
    std::vector<std::optional<TensorType>> types;
    std::vector<RegionInput> inputs;
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const bool is_condition = op.kind == OpKind::where && i == 0, is_weight = op.inputs[i].name == "weight";
      const TensorType type = is_condition ? TensorType{DType::boolean, row.dims}
                              : is_weight  ? TensorType{DType::f32, {64}}
                                           : row;
      if (op.inputs[i].optional && below(2) == 0) {
        types.emplace_back();
        inputs.emplace_back();
        continue;
      }
      types.emplace_back(type);
      if (type == row && !made.empty() && below(3) != 0) {
        const RegionPlace from = made[below(made.size())];
        std::erase(unread, from);
        inputs.push_back(RegionInput::inside(static_cast<std::size_t>(from.node), static_cast<std::size_t>(from.index),
                                             below(2) ? Rounding::strict : Rounding::fast));
        continue;
      }
      std::size_t operand = below(region.operands.size() + 1);
      if (operand < region.operands.size() && region.operand_type(operand) != type) operand = region.operands.size();
      inputs.push_back(RegionInput::outside(operand));
      if (operand == region.operands.size()) {
        region.operands.push_back({static_cast<std::int32_t>(n), static_cast<std::int32_t>(i)});
        region.nodes.resize(n + 1);  // operand_type() looks at the node that is being made
        region.nodes[n].problem.inputs = types;
      }
    }
    region.nodes.resize(n + 1);
    region.nodes[n] = {make_problem(op, types, {}), inputs};
    for (std::size_t o = 0; o < region.nodes[n].problem.outputs.size(); ++o) {
      made.push_back({static_cast<std::int32_t>(n), static_cast<std::int32_t>(o)});
      unread.push_back(made.back());
    }
  }
  region.anchor = static_cast<std::int32_t>(below(region.nodes.size()));
  region.results = unread;
  return region;
}

TEST(RegionText, IsReadBackAsItIsPrinted) {
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const Region region = random_region(random);
    ASSERT_EQ(find_fault(region), std::nullopt) << region.to_string();
    const Region read = parse_region(region.to_string());
    EXPECT_EQ(read.to_string(), region.to_string());
    EXPECT_EQ(read.operands, region.operands);
    EXPECT_EQ(read.results, region.results);
    EXPECT_EQ(read.anchor, region.anchor);
    ASSERT_EQ(read.nodes.size(), region.nodes.size());
    for (std::size_t n = 0; n < read.nodes.size(); ++n) {
      EXPECT_EQ(read.nodes[n].inputs, region.nodes[n].inputs) << n << " of " << region.to_string();
      EXPECT_EQ(read.nodes[n].problem.to_string(), region.nodes[n].problem.to_string());
    }
  }
}

TEST(RegionText, AnOperatorAloneIsARegionOfOneNode) {
  const Region region = parse_region(R"(linear(f32[T, 64], bf16[32, 64], -) {out_dtype = "bf16"})");
  EXPECT_TRUE(region.is_single());
  EXPECT_EQ(region.to_string(), R"(linear(f32[T, 64], bf16[32, 64], -) {out_dtype = "bf16"})");
  EXPECT_TRUE(is_region_text("linear(f32[2, 64])"));
  EXPECT_FALSE(is_region_text("linear"));
}

TEST(RegionText, AttributesThatAreNotWrittenHaveTheirDefaults) {
  const Region region =
      parse_region("{n0=rms_norm($0:f32[1,64],$1:f32[64]);n1=linear(strict n0,$2:bf16[32,64])}anchor n1->n1");
  EXPECT_EQ(region.to_string(),
            R"({n0 = rms_norm($0: f32[1, 64], $1: f32[64]) {eps = 1e-06, out_dtype = "", weight_offset = 0.0}; )"
            R"(n1 = linear(strict n0, $2: bf16[32, 64], -) {out_dtype = ""}} anchor n1 -> n1)");
}

TEST(RegionText, MustFail) {
  const struct {
    const char *text, *error;
  } cases[] = {
      {"{", "expected 'n0' at column 2, found the end"},
      {"{}", "expected 'n0' at column 2, found \"}\""},
      {"{n1 = silu($0: f32[2])} anchor n0 -> n0", "expected 'n0' at column 2, found \"n1 = silu($0: f32[2]...\""},
      {"{n0 = sillu($0: f32[2])} anchor n0 -> n0",
       "expected an operator's name, as `cermet ops` lists them at column 7, found \"sillu($0: f32[2])} a...\""},
      {"{n0 = silu($1: f32[2])} anchor n0 -> n0",
       "expected 0, the first operand at column 13, found \"1: f32[2])} anchor n...\""},
      {"{n0 = add($0: f32[2], $2: f32[2])} anchor n0 -> n0",
       "expected an operand from 0 to 0, or 1, the next at column 24, found \"2: f32[2])} anchor n...\""},
      {"{n0 = add($0: f32[2], $0: f32[3])} anchor n0 -> n0",
       "expected f32[2], the type of $0 at column 27, found \"f32[3])} anchor n0 -...\""},
      {"{n0 = silu(strict n0)} anchor n0 -> n0",
       "expected an operand from outside: there is no node before this one at column 19, found \"n0)} anchor n0 -> "
       "n0\""},
      {"{n0 = silu(n0)} anchor n0 -> n0",
       "expected an operand: '-', '$0: TYPE', 'strict n0' or 'fast n0' at column 12, found \"n0)} anchor n0 -> n0\""},
      {"{n0 = silu($0: f32[2]); n1 = silu(strict n1)} anchor n1 -> n1",
       "expected n0, the only node before at column 42, found \"n1)} anchor n1 -> n1\""},
      {"{n0 = silu($0: f99[2])} anchor n0 -> n0", "expected an element type"},
      {"{n0 = silu($0: f32[2])} anchor n1 -> n0", "expected n0, the only node before at column 32, found \"n1 -> n0\""},
      {"{n0 = silu($0: f32[2])} anchor n0 - n0", "expected '>' at column 36, found \" n0\""},
      {"{n0 = silu($0: f32[2])} anchor n0", "expected '-' at column 34, found the end"},
      {"{n0 = silu($0: f32[2])} n0 -> n0", "expected 'anchor' at column 25, found \"n0 -> n0\""},
      {"{n0 = silu($0: f32[2])} anchor n0 -> n0 n0", "expected nothing more at column 41, found \"n0\""},
      {"{n0 = add_rms_norm($0: f32[2, 4], $1: f32[2, 4], -)} anchor n0 -> n0",
       "expected '.' at column 69, found the end"},
      {"{n0 = add_rms_norm($0: f32[2, 4], $1: f32[2, 4], -)} anchor n0 -> n0.2",
       "expected a result from 0 to 1 at column 70, found \"2\""},
      {"{n0 = silu($0: f32[2]); n1 = silu($0: f32[2])} anchor n1 -> n1",
       "region: n0 (silu): expected a reader of its results, found none"},
      {"{n0 = silu($0: f32[2]) {slope = 1}} anchor n0 -> n0", "region, n0: silu"},
      {"{n0 = rms_norm($0: f32[2, 8], $1: f32[7])} anchor n0 -> n0", "region, n0: rms_norm: operand 1 (weight)"},
      {"{n0 = silu($99999999999999999999: f32[2])} anchor n0 -> n0", "below 2^63"},
      {"sillu(f32[2])", "expected an operator, as `cermet ops` lists them, found \"sillu\""},
  };
  for (const auto& c : cases) {
    const std::string error = error_text([&] { parse_region(c.text); });
    EXPECT_NE(error.find(c.error), std::string::npos) << c.text << "\n  " << error;
  }
}

/// Texts with some characters replaced, erased, repeated or swapped are refused with Error or are regions that print
/// and read alike.
TEST(RegionText, DamagedTextsAreRefusedOrSound) {
  std::mt19937 random(2);
  int refused = 0, sound = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = random_region(random).to_string();
    for (std::size_t edits = 1 + random() % 3; edits > 0 && !text.empty(); --edits) {
      const std::size_t at = random() % text.size(), other = random() % text.size();
      switch (random() % 5) {
        case 0: text[at] = "{}()$:;,.-=n0129 \"["[random() % 19]; break;
        case 1: text.erase(at, 1 + random() % 4); break;
        case 2: text.insert(at, text.substr(other, random() % 8)); break;
        case 3: std::swap(text[at], text[other]); break;
        default: text[at] = static_cast<char>(random() % 256); break;
      }
    }
    try {
      const Region region = parse_region(text);
      EXPECT_EQ(find_fault(region), std::nullopt) << text;
      EXPECT_EQ(parse_region(region.to_string()).to_string(), region.to_string()) << text;
      ++sound;
    } catch (const Error& error) {
      EXPECT_TRUE(error.status() == Status::invalid_argument || error.status() == Status::unsupported) << text << "\n"
                                                                                                       << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 10000);
  EXPECT_GT(sound, 100);
}

}  // namespace
}  // namespace cermet
