#include "graph/rewrite/value_range.hpp"

#include <algorithm>
#include <cmath>

#include "format/element.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

constexpr int most_operators_back = 6;
constexpr std::size_t most_range_elements = 1024;
constexpr double infinite = std::numeric_limits<double>::infinity();

ValueRange range_of_type(DType dtype) {
  if (is_floating(dtype)) return {};
  if (dtype == DType::boolean) return {0, 1, false};
  const int bits = static_cast<int>(size_of(dtype)) * 8;
  const bool is_unsigned = dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32 || dtype == DType::u64;
  return is_unsigned ? ValueRange{0, std::ldexp(1, bits), false}
                     : ValueRange{-std::ldexp(1, bits - 1), std::ldexp(1, bits - 1), false};
}

ValueRange range_of_data(const TensorData& data) {
  const DType dtype = data.type().dtype;
  const std::size_t count = data.bytes().size() / size_of(dtype);
  if (count == 0 || count > most_range_elements) return range_of_type(dtype);
  ValueRange range{infinite, -infinite, false};
  for (std::size_t i = 0; i < count; ++i) {
    const double element = format::load_element(data.bytes().data(), dtype, static_cast<std::int64_t>(i));
    if (std::isnan(element)) range.may_be_nan = true;
    range.low = std::min(range.low, std::isnan(element) ? range.low : element);
    range.high = std::max(range.high, std::isnan(element) ? range.high : element);
  }
  return range.low > range.high ? ValueRange{} : range;
}

/// A rounded result may lie a little outside of what exact ones are between; zero and one are exact.
ValueRange loosened(ValueRange range) {
  const auto loose = [](double bound, double sign) {
    return bound == 0 || std::isinf(bound) ? bound : bound + sign * std::abs(bound) / 64;
  };
  return {loose(range.low, -1), loose(range.high, 1), range.may_be_nan};
}

/// Values beyond what a type holds are infinite.
ValueRange stored(ValueRange range, DType dtype) {
  const double most = dtype == DType::f16 ? 65000 : dtype == DType::f64 ? 1e300 : 3e38;
  if (range.low < -most) range.low = -infinite;
  if (range.high > most) range.high = infinite;
  return range;
}

class RangeFinder {
 public:
  explicit RangeFinder(const GraphEditor& editor) : editor_(editor) {}

  ValueRange find(ValueId id, int depth) const {
    const Value& value = editor_.value(id);
    if (const TensorData* data = value.kind == ValueKind::constant ? value.data() : nullptr)
      return range_of_data(*data);
    const NodeId producer = value.kind == ValueKind::intermediate ? editor_.producer(id) : no_node;
    if (producer == no_node || depth == 0 || !is_floating(value.type.dtype)) return range_of_type(value.type.dtype);
    return stored(loosened(of_node(editor_.node(producer), depth - 1)), value.type.dtype);
  }

 private:
  ValueRange operand(const Node& node, std::size_t i, int depth) const { return find(node.inputs[i], depth); }
  double number(const Node& node, std::string_view name) const {
    const AttributeValue* value = node.attributes.find(name);
    if (!value)
      for (const AttributeSpec& spec : definition(node.op).attributes)
        if (spec.name == name) value = &spec.fallback;
    return std::get<double>(*value);
  }

  bool flag(const Node& node, std::string_view name) const {
    const AttributeValue* value = node.attributes.find(name);
    return value && std::get<bool>(*value);
  }

  ValueRange of_node(const Node& node, int depth) const {
    const ValueRange x = node.inputs.empty() || !node.inputs[0] ? ValueRange{} : operand(node, 0, depth);
    const bool nan = x.may_be_nan, may_be_infinite = std::isinf(x.low) || std::isinf(x.high);
    switch (node.op) {
      case OpKind::exp: return {0, x.high < 80 ? std::exp(x.high) : infinite, nan};
      case OpKind::sigmoid: return {0, 1, nan};
      case OpKind::softmax: return flag(node, "log") ? ValueRange{-infinite, 0, true} : ValueRange{0, 1, true};
      case OpKind::tanh:
      case OpKind::erf:
      case OpKind::sign: return {-1, 1, nan};
      case OpKind::sin:
      case OpKind::cos: return {-1, 1, nan || may_be_infinite};
      case OpKind::abs:
        return {x.low > 0 ? x.low : x.high < 0 ? -x.high : 0, std::max(std::abs(x.low), std::abs(x.high)), nan};
      case OpKind::square: {
        const double least = x.low > 0    ? x.low
                             : x.high < 0 ? -x.high
                                          : 0,
                     most = std::max(std::abs(x.low), std::abs(x.high));
        return {least > 1e-15 ? least * least : 0, most * most, nan};
      }
      case OpKind::relu: return {std::max(x.low, 0.0), std::max(x.high, 0.0), nan};
      case OpKind::clip: {  // limits the wrong way round: the upper one everywhere
        const double low = number(node, "low"), high = number(node, "high");
        return {std::min(low, high), high, nan};
      }
      case OpKind::softplus: return {0, infinite, nan};
      case OpKind::sqrt: return {std::sqrt(std::max(x.low, 0.0)), std::sqrt(std::max(x.high, 0.0)), nan || x.low < 0};
      case OpKind::rsqrt: return {x.low > 0 ? 0 : -infinite, infinite, nan || x.low < 0};
      case OpKind::reciprocal:
        return x.low > 0 ? ValueRange{1 / x.high, 1 / x.low, nan} : ValueRange{-infinite, infinite, nan};
      case OpKind::neg: return {-x.high, -x.low, nan};
      case OpKind::reduce_sum:
        return {x.low >= 0 ? 0 : -infinite, x.high <= 0 ? 0 : infinite,
                nan || (x.low == -infinite && x.high == infinite)};
      case OpKind::reduce_mean: return {x.low, x.high, true};
      case OpKind::reshape:
      case OpKind::transpose:
      case OpKind::slice:
      case OpKind::expand:
      case OpKind::split:
      case OpKind::gather: return x;
      case OpKind::cast: {
        const DType to = editor_.value(node.outputs[0]).type.dtype;
        return size_of(to) == 1 ? ValueRange{} : x;  // which may hold no infinities, or no negative numbers
      }
      case OpKind::floor:
      case OpKind::ceil:
      case OpKind::round: return {std::floor(x.low), std::ceil(x.high), nan};
      case OpKind::add:
      case OpKind::sub:
      case OpKind::mul:
      case OpKind::max:
      case OpKind::min: return of_pair(node, x, operand(node, 1, depth));
      case OpKind::div: {
        const ValueRange y = operand(node, 1, depth);
        const bool is_positive = x.low >= 0 && y.low > 0;  // the reciprocal of -0 is -infinity
        return {is_positive ? 0 : -infinite, infinite, true};
      }
      case OpKind::where: {
        const ValueRange a = operand(node, 1, depth), b = operand(node, 2, depth);
        return {std::min(a.low, b.low), std::max(a.high, b.high), a.may_be_nan || b.may_be_nan};
      }
      default: return {};
    }
  }

  static ValueRange of_pair(const Node& node, const ValueRange& a, const ValueRange& b) {
    const bool nan = a.may_be_nan || b.may_be_nan,
               infinities = std::isinf(a.low) || std::isinf(a.high) || std::isinf(b.low) || std::isinf(b.high);
    const auto sum = [](double x, double y, double doubtful) { return std::isnan(x + y) ? doubtful : x + y; };
    switch (node.op) {
      case OpKind::max: return {std::max(a.low, b.low), std::max(a.high, b.high), nan};
      case OpKind::min: return {std::min(a.low, b.low), std::min(a.high, b.high), nan};
      case OpKind::add:
        return {sum(a.low, b.low, -infinite), sum(a.high, b.high, infinite),
                nan || (a.low == -infinite && b.high == infinite) || (a.high == infinite && b.low == -infinite)};
      case OpKind::sub:
        return {sum(a.low, -b.high, -infinite), sum(a.high, -b.low, infinite),
                nan || (a.low == -infinite && b.low == -infinite) || (a.high == infinite && b.high == infinite)};
      default: break;
    }
    if (node.inputs[0] == node.inputs[1]) return {0, infinite, nan};
    if (a.low >= 0 && b.low >= 0) return {0, sum(a.high * b.high, 0, infinite), nan || infinities};
    if (infinities) return {-infinite, infinite, true};
    const auto [low, high] = std::minmax({a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
    return {low, high, nan};
  }

  const GraphEditor& editor_;
};

}  // namespace

ValueRange range_of(const GraphEditor& editor, ValueId id) { return RangeFinder(editor).find(id, most_operators_back); }

}  // namespace cermet
