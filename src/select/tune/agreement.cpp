#include "select/tune/agreement.hpp"

#include <algorithm>
#include <cmath>

#include "base/buffer.hpp"
#include "device/stream.hpp"
#include "format/element.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr std::int64_t piece = 4096, most_pieces = 256;

/// The value, or of fp8 its place among the representable values, counted from zero.
double value_of(const std::byte* data, DType dtype, std::int64_t i) {
  if (!dtypes::fp8.contains(dtype)) return format::load_element(data, dtype, i);
  const auto bits = static_cast<int>(data[i]);
  return bits & 0x80 ? -(bits & 0x7f) : bits & 0x7f;
}

/// Distance between adjacent values of a type that is rounded to, around a value.
double unit_in_last_place(DType dtype, double value) {
  const int mantissa = dtype == DType::f64 ? 52 : dtype == DType::f32 ? 23 : dtype == DType::f16 ? 10 : 7;
  const int smallest = dtype == DType::f64 ? -1022 : dtype == DType::f16 ? -14 : -126;
  return std::ldexp(1.0, (value == 0 ? smallest : std::max(std::ilogb(value), smallest)) - mantissa);
}

/// The longest chain of roundings of any operator, and the largest difference in quantization steps.
struct Allowed {
  double depth = 0;
  int slack = 0;

  explicit Allowed(const Region& region) {
    for (const RegionNode& node : region.nodes) {
      const OpDefinition& op = definition(node.problem);
      depth += op.rounding_depth ? op.rounding_depth(node.problem) : op.operations ? 8 : 0;
      // A sum that is off by its bound may round to the next quantized value.
      slack = std::max({slack, op.integer_slack, region.is_single() ? 0 : 1});
    }
  }
};

bool is_finite(double value) { return std::isfinite(value); }

}  // namespace

std::vector<double> sampled_values(const TensorView& result, const DeviceQueue& queue) {
  const std::int64_t count = result.elements(), size = byte_size(result.dtype);
  const std::int64_t pieces = std::min(most_pieces, (count + piece - 1) / piece);
  std::vector<double> values;
  AlignedBuffer host(queue.device ? piece * size : 0);
  for (std::int64_t i = 0; i < pieces; ++i) {
    const std::int64_t length = std::min(piece, count), first = pieces == 1 ? 0 : (count - length) * i / (pieces - 1);
    const std::byte* from = result.as<const std::byte>() + first * size;
    if (queue.device) {
      queue.stream->download(host.data(), from, length * size);
      queue.stream->synchronize();
      from = host.data();
    }
    for (std::int64_t e = 0; e < length; ++e) values.push_back(value_of(from, result.dtype, e));
  }
  return values;
}

std::string disagreement(const Region& region, std::size_t result, const std::vector<double>& expected,
                         const std::vector<double>& found) {
  const DType dtype = region.result_type(result).dtype;
  const Allowed allowed(region);
  const bool is_real = dtypes::real.contains(dtype) || dtype == DType::f64;
  double largest = 0;
  for (const double value : expected)
    if (is_finite(value)) largest = std::max(largest, std::abs(value));
  const double unit = dtype == DType::f64 ? 0x1p-52 : 0x1p-24;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double want = expected[i], got = found[i];
    if (want == got || (std::isnan(want) && std::isnan(got))) continue;
    const double bound =
        is_real ? unit_in_last_place(dtype, is_finite(want) ? want : 0) + 2 * allowed.depth * unit * largest
                : allowed.slack;
    if (is_finite(want) && is_finite(got) && std::abs(want - got) <= bound) continue;
    return fmt::format("result {}, compared element {}: expected {}, found {}, bound {}", result, i, want, got, bound);
  }
  return "";
}

}  // namespace cermet
