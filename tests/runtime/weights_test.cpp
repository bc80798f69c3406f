#include "runtime/weights.hpp"

#include <gtest/gtest.h>

#include "op/schema/reference.hpp"
#include "tests/runtime/reversed.hpp"
#include "tests/support/error_text.hpp"

namespace cermet {
namespace {

const WeightLayout other{"other", reversed_bytes, reverse_rows};

/// Loads element i of matrix e as 100 e + i, and notes every request.
struct Source {
  ThreadPool pool{1};
  std::vector<std::string> requests;
  WeightStore store{[this](const std::string& name, std::int64_t slice, const TensorView& destination) {
                      requests.push_back(fmt::format("{}[{}] {}", name, slice, destination.shape.to_string()));
                      if (name == "absent") fail(Status::invalid_file, "tensor 'absent': expected one, found none");
                      for (std::int64_t i = 0; i < destination.elements(); ++i)
                        cermet::store(destination, i, static_cast<double>(i + 100 * std::max<std::int64_t>(slice, 0)));
                    },
                    pool};
};

/// A layout of all of a weight: its elements backwards.
void reverse_all(const TensorView& weight, std::byte* destination, ThreadPool&) {
  const TensorView to(destination, weight.dtype, weight.shape);
  for (std::int64_t i = 0; i < weight.elements(); ++i) store(to, weight.elements() - 1 - i, load(weight, i));
}
const WeightLayout backwards{"backwards", reversed_bytes, reverse_all};

TEST(WeightStore, PacksAKernelOfAConvolutionWhole) {
  Source source;
  const TensorView packed = source.store.get("w", {DType::f32, {3, 2, 1, 2}}, &backwards);
  EXPECT_EQ(source.requests, std::vector<std::string>{"w[-1] [3, 2, 1, 2]"});
  for (std::int64_t i = 0; i < 12; ++i) EXPECT_EQ(load(packed, i), static_cast<double>(11 - i));
}

TEST(WeightStore, ReadsOnceForEachFormAndType) {
  Source source;
  const TensorType type{DType::f32, {3, 2}}, half{DType::bf16, {3, 2}};
  const TensorView plain = source.store.get("w", type, nullptr), packed = source.store.get("w", type, &reversed);
  EXPECT_EQ(source.store.get("w", type, nullptr).data, plain.data);
  EXPECT_EQ(source.store.get("w", type, &reversed).data, packed.data);
  EXPECT_EQ(source.requests.size(), 2u);
  EXPECT_EQ(source.store.bytes(), 48);
  EXPECT_NE(source.store.get("w", type, &other).data, packed.data);
  EXPECT_EQ(source.store.get("w", half, nullptr).dtype, DType::bf16);
  EXPECT_EQ(source.store.bytes(), 48 + 24 + 12);
  EXPECT_EQ(load(plain, 0), 0);
  EXPECT_EQ(load(packed, 0), 4);
  EXPECT_EQ(packed.shape, type.is_constant() ? bind(type.dims, {}) : Shape())
      << "a packed weight keeps its logical shape";
}

TEST(WeightStore, PacksStacksMatrixByMatrix) {
  Source source;
  const TensorView packed = source.store.get("experts", {DType::f32, {3, 5, 2}}, &reversed);
  EXPECT_EQ(source.requests, (std::vector<std::string>{"experts[0] [5, 2]", "experts[1] [5, 2]", "experts[2] [5, 2]"}));
  for (std::int64_t e = 0; e < 3; ++e)  // matrices at 64-byte steps: 16 floats for 10
    EXPECT_EQ(packed.as<float>()[e * 16], static_cast<float>(100 * e + 8));
  source.requests.clear();
  source.store.get("experts", {DType::f32, {3, 5, 2}}, nullptr);
  EXPECT_EQ(source.requests, (std::vector<std::string>{"experts[-1] [3, 5, 2]"}));
}

TEST(WeightStore, EmptyWeightsAndErrors) {
  Source source;
  EXPECT_EQ(source.store.get("none", {DType::f32, {0, 4}}, nullptr).elements(), 0);
  EXPECT_EQ(source.store.get("none", {DType::f32, {0, 3, 4}}, &reversed).elements(), 0);
  for (int attempt = 0; attempt < 2; ++attempt)
    EXPECT_EQ(error_text([&] {
                source.store.get("absent", {DType::f32, {2, 2}}, nullptr);
              }),
              "tensor 'absent': expected one, found none");
  EXPECT_EQ(source.store.bytes(), 0) << "what failed to load is not held";
}

}  // namespace
}  // namespace cermet
