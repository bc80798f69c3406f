// bf16 weights in 12 bits an element: the layout, element by element, and products of such rows beside those of plain
// ones.
#include "kernel/cuda/gemv/compact.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "kernel/cuda/kernels.hpp"
#include "op/schema/operator.hpp"
#include "tests/kernel_cuda/kernel_named.hpp"
#include "tests/kernel_cuda/operands.hpp"
#include "tests/kernel_cuda/region_case.hpp"

namespace cermet {
namespace {

constexpr std::int64_t length = 512;

float value_of(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

struct Packed {
  std::vector<std::byte> bytes;
  std::int64_t rows;

  explicit Packed(std::vector<std::uint16_t>& elements) : rows(static_cast<std::int64_t>(elements.size()) / length) {
    ThreadPool pool(2);
    const TensorView matrix(reinterpret_cast<std::byte*>(elements.data()), DType::bf16, {rows, length});
    AlignedBuffer buffer(packed_bytes(cuda::compact_rows, matrix.type()));
    pack_weight(cuda::compact_rows, matrix, buffer.data(), pool);
    bytes.assign(buffer.data(), buffer.data() + buffer.size());
  }
  float factor(std::int64_t row) const {
    float f;
    std::memcpy(&f, bytes.data() + rows * length * 3 / 2 + row * 4, sizeof f);
    return f;
  }
  /// As the layout is documented: bit by bit, in double.
  double element(std::int64_t row, std::int64_t k) const {
    const std::byte* const piece = bytes.data() + row * length * 3 / 2 + k / 256 * 384;
    const std::int64_t lane = k % 256 / 8, i = k % 8;
    std::uint32_t word;
    std::memcpy(&word, piece + 256 + 4 * lane, sizeof word);
    const auto bit = [&](std::int64_t of_byte) {
      return word >> ((8 * (i % 4) + of_byte + (i < 4 ? 0 : 32 - 4)) % 32) & 1u;
    };
    const auto low = static_cast<std::uint32_t>(piece[k % 256]);
    const std::uint32_t exponent = bit(2) << 3 | bit(1) << 2 | bit(0) << 1 | low >> 7;
    const double mantissa = low & 0x7f,
                 magnitude = exponent == 0 ? std::ldexp(mantissa, -7 - 126)
                                           : std::ldexp(128 + mantissa, static_cast<int>(exponent) - 7 - 127);
    return (bit(7) != 0 ? -magnitude : magnitude) * factor(row) * 0x1p64;
  }
};

TEST(CompactRows, KeepWhatIsNotSmall) {
  std::mt19937 random(7);
  for (const int largest : {1, 9, 15, 16, 40, 127, 200, 206}) {
    std::vector<std::uint16_t> elements(4 * length);
    for (std::uint16_t& e : elements) {
      const int exponent = std::max(0, largest - static_cast<int>(random() % 15));
      e = static_cast<std::uint16_t>((random() % 2) << 15 | static_cast<unsigned>(exponent) << 7 | random() % 128);
    }
    for (std::size_t row = 0; row < 4; ++row)
      elements[row * length + 3] = static_cast<std::uint16_t>(largest << 7 | 127), elements[row * length + 7 + row] = 0;
    const Packed packed(elements);
    for (std::size_t i = 0; i < elements.size(); ++i)
      EXPECT_EQ(packed.element(static_cast<std::int64_t>(i) / length, static_cast<std::int64_t>(i) % length),
                value_of(elements[i]))
          << largest << ", element " << i;
  }
}

TEST(CompactRows, RoundWhatIsSmall) {
  std::mt19937 random(8);
  std::vector<std::uint16_t> elements(length);
  for (std::uint16_t& e : elements)
    e = static_cast<std::uint16_t>((random() % 2) << 15 | (random() % 127) << 7 | random() % 128);
  elements[0] = 127 << 7;               // 1
  elements[1] = 113 << 7 | 1;           // the smallest power of two with all its bits: 2^-14
  elements[2] = 112 << 7 | 1;           // one bit less: 2^-15 + 2^-22, a tie that goes down
  elements[3] = 0x8000 | 112 << 7 | 3;  // -(2^-15 + 3 * 2^-22), a tie that goes up
  elements[4] = 112 << 7 | 127;         // rounds to 2^-14
  elements[5] = 104 << 7;               // 2^-23: less than half of 2^-21
  const Packed packed(elements);
  EXPECT_EQ(packed.element(0, 1), 0x1.02p-14);
  EXPECT_EQ(packed.element(0, 2), 0x1p-15);
  EXPECT_EQ(packed.element(0, 3), -(0x1p-15 + 0x1p-20));
  EXPECT_EQ(packed.element(0, 4), 0x1p-14);
  EXPECT_EQ(packed.element(0, 5), 0);
  for (std::int64_t k = 0; k < length; ++k) {
    const double want = value_of(elements[static_cast<std::size_t>(k)]);
    EXPECT_LE(std::abs(packed.element(0, k) - want), std::abs(want) < 0x1p-14 ? 0x1p-22 : 0) << k;
  }
}

TEST(CompactRows, SayNaNOfWhatTheyCannotHold) {
  for (const std::uint16_t bad : std::initializer_list<std::uint16_t>{0x7f80, 0xff80, 0x7fc0, 207 << 7}) {
    std::vector<std::uint16_t> elements(2 * length, 0x3f80);
    elements[length + 100] = bad;
    const Packed packed(elements);
    EXPECT_EQ(packed.element(0, 9), 1);
    EXPECT_TRUE(std::isnan(packed.factor(1))) << bad;
  }
}

CaseOperand matrix(DType dtype, std::vector<Dim> dims, Fill fill, bool constant = true) {
  return {{dtype, std::move(dims)}, std::move(fill), 0, constant};
}

TEST(CompactProduct, SaysWhyNot) {
  Target target{.name = "GPU",
                .compute_capability = 90,
                .multiprocessors = 132,
                .shared_bytes = 232448,
                .l2_bytes = 1 << 25,
                .memory_bytes = std::int64_t{1} << 36};
  const auto reason = [&](DType w, std::int64_t rows, std::int64_t k, bool constant,
                          std::string_view kernel = "gemv.compact_linear") {
    CaseData data = make_case_data(definition(OpKind::linear),
                                   {"", {real(DType::f32, {rows, k}), matrix(w, {40, k}, normal(0.2), constant)}});
    data.problem.target = &target;
    return kernel_named(OpKind::linear, kernel).declines(data.problem).value_or("");
  };
  EXPECT_EQ(reason(DType::bf16, 1, 512, true), "weights are held once, as they are: compact_weights is off");
  EXPECT_EQ(reason(DType::bf16, 1, 512, true, "gemv.linear"), "");
  target.compact_weights = true;
  EXPECT_EQ(reason(DType::bf16, 1, 512, true), "");
  EXPECT_EQ(reason(DType::bf16, 1, 512, true, "gemv.linear"), "its weights are held in 12 bits");
  EXPECT_EQ(reason(DType::bf16, 2, 512, true), "up to 2 rows: a weight is read once for each of them");
  EXPECT_EQ(reason(DType::f16, 1, 512, true), "a weight of f16: 12 bits are enough for bf16");
  EXPECT_EQ(reason(DType::f16, 1, 512, true, "gemv.linear"), "");
  EXPECT_EQ(reason(DType::bf16, 1, 512, false), "a weight is not constant, so it cannot be prepacked");
  EXPECT_EQ(reason(DType::bf16, 1, 520, true), "rows of 520 elements are no multiple of 256");
  target.compute_capability = 89;
  EXPECT_EQ(reason(DType::bf16, 1, 512, true), "weights do not stream through shared memory before sm_90");
}

/// Normal weights within the bound of the operator's reference; those without small elements with the bits of plain
/// rows.
TEST(CompactProduct, GivesTheBitsOfPlainRows) {
  TestDevice& gpu = TestDevice::get();
  if (!gpu.device) GTEST_SKIP() << gpu.reason;
  Target compact = *gpu.device->target();
  compact.compact_weights = true;
  for (const OpKind kind : {OpKind::linear, OpKind::dual_linear})
    for (const std::int64_t k : {256, 512, 768, 2048, 3072, 4096, 5632, 8192, 14336})
      for (const std::int64_t n : {1, 45, 300})
        for (const bool small : {true, false}) {
          std::vector<std::optional<CaseOperand>> operands{
              real(DType::f32, {1, k}), matrix(DType::bf16, {n, k}, small ? normal(0.2) : integers(-127, 127))};
          if (kind == OpKind::dual_linear) operands.push_back(operands[1]);
          const OpDefinition& op = definition(kind);
          CaseData data =
              make_case_data(op, Case{.name = "product", .inputs = operands, .attributes = {{"out_dtype", "f32"}}});
          const Expected expected = run_reference(data);
          const std::string what = fmt::format("{} {} x {}, {}", op.name, n, k, small ? "normal" : "integers");
          const auto results = [&](const Target* target, std::string_view name) {
            data.problem.target = target;
            const Kernel& kernel = kernel_named(kind, name);
            EXPECT_EQ(run_on_device(data, expected, kernel, 0, gpu.queue(), gpu.pool), "")
                << what << ", kernel " << name;
            const std::vector<DeviceResult> found = run_region(Region(data.problem), data.inputs, kernel, 0, gpu);
            const auto* const y = found[0].view.as<const float>();
            return std::vector<float>(y, y + n);
          };
          const std::string own(op.name);
          const auto packed = results(&compact, "gemv.compact_" + own),
                     plain = results(gpu.device->target(), "gemv." + own);
          if (!small) {
            EXPECT_EQ(packed, plain) << what;
          }
        }
}

}  // namespace
}  // namespace cermet
