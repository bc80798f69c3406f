#include "graph/rewrite/derive/key_conditions.hpp"

#include <algorithm>

#include "format/element.hpp"
#include "graph/rewrite/derive/attention_layouts.hpp"
#include "graph/rewrite/derive/scores.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

bool is_signed_index(DType t) { return t == DType::i32 || t == DType::i64; }

class ConditionReader {
 public:
  ConditionReader(const GraphEditor& editor, Axes& axes, const AxisList& sequences, const AxisList& queries,
                  const AxisList& keys)
      : editor_(editor), axes_(axes), sequences_(sequences), queries_(queries), keys_(keys) {}

  void read(const IndexedValue& mask) {
    if (const auto number = uniform_of(editor_, mask.value); number && *number != 0) return;
    if (band(mask)) return;
    if (const auto before = axes_.before_any(editor_, mask)) return read(*before);
    const auto maker = maker_of(editor_, mask.value);
    if (maker && --budget_ >= 0) {
      if (maker->op == OpKind::logical_and && both(*maker, mask)) return;
      if (compared(*maker, mask, false)) return;
      if (maker->op == OpKind::logical_not && inverted(*maker, mask)) return;
    }
    found.others.push_back(mask);
  }

  KeyConditions found;

 private:
  std::optional<IndexedValue> operand(const Maker& maker, std::size_t i, const IndexedValue& result) const {
    auto dims = axes_.broadcast(result.dims, editor_.value(maker.inputs[i]).type.dims);
    if (!dims) return {};
    return IndexedValue{maker.inputs[i], std::move(*dims)};
  }

  bool both(const Maker& maker, const IndexedValue& mask) {
    const auto a = operand(maker, 0, mask), b = operand(maker, 1, mask);
    if (!a || !b) return false;
    read(*a);
    read(*b);
    return true;
  }

  bool inverted(const Maker& maker, const IndexedValue& mask) {
    IndexedValue value{maker.inputs[0], mask.dims};
    while (auto before = axes_.before_any(editor_, value)) value = std::move(*before);
    const auto inner = maker_of(editor_, value.value);
    return inner && compared(*inner, value, true, &mask);
  }

  /// a >= b is a - b >= 0, a > b is a - b - 1 >= 0; their negations swap the sides.
  bool compared(const Maker& maker, const IndexedValue& value, bool negated, const IndexedValue* from = nullptr) {
    const bool at_least = maker.op == OpKind::greater_equal || maker.op == OpKind::less_equal,
               swaps = maker.op == OpKind::less || maker.op == OpKind::less_equal;
    if (!at_least && maker.op != OpKind::greater && maker.op != OpKind::less) return false;
    const auto left = operand(maker, swaps ? 1 : 0, value), right = operand(maker, swaps ? 0 : 1, value);
    if (!left || !right) return false;
    const auto a = linear(negated ? *right : *left), b = linear(negated ? *left : *right);
    if (!a || !b) return false;
    auto difference = sum(*a, *b, -1);
    if (!difference) return false;
    if (at_least == negated) --difference->constant;
    difference->from = from ? *from : value;
    found.linear.push_back(std::move(*difference));
    return true;
  }

  static std::optional<LinearCondition> sum(const LinearCondition& a, const LinearCondition& b, std::int64_t sign) {
    LinearCondition both = a;
    if (a.term && b.term) return {};
    both.constant += sign * b.constant;
    both.query += sign * b.query;
    both.key += sign * b.key;
    if (b.term) both.term = b.term, both.sign = sign * b.sign;
    return both;
  }

  std::optional<LinearCondition> linear(const IndexedValue& value) {
    const TensorType& type = editor_.value(value.value).type;
    if (!is_signed_index(type.dtype)) return {};
    if (const TensorData* data = editor_.value(value.value).data()) return progression(value, *data);
    if (const auto before = axes_.before_any(editor_, value)) return linear(*before);
    const auto maker = maker_of(editor_, value.value);
    if (maker && --budget_ >= 0 && (maker->op == OpKind::add || maker->op == OpKind::sub)) {
      const auto left = operand(*maker, 0, value), right = operand(*maker, 1, value);
      const auto a = left ? linear(*left) : std::nullopt, b = right ? linear(*right) : std::nullopt;
      if (a && b) return sum(*a, *b, maker->op == OpKind::add ? 1 : -1);
    }
    const AxisList own = axes_.flat(value.dims), sequences = axes_.resolve(sequences_);
    if (!std::ranges::all_of(own, [&](Axis a) { return std::ranges::find(sequences, a) != sequences.end(); }))
      return {};
    return LinearCondition{.sign = 1, .term = value};
  }

  /// A constant that counts along one axis, or is one number.
  std::optional<LinearCondition> progression(const IndexedValue& value, const TensorData& data) const {
    constexpr std::int64_t most = std::int64_t{1} << 40;
    const AxisList own = axes_.flat(value.dims);
    const std::int64_t count = data.type().elements().constant();
    const auto element = [&](std::int64_t i) {
      return static_cast<std::int64_t>(format::load_element(data.bytes().data(), data.type().dtype, i));
    };
    if (count < 1 || own.size() > 1) return {};
    LinearCondition line{.constant = element(0)};
    const std::int64_t step = count > 1 ? element(1) - element(0) : 0;
    for (std::int64_t i = 0; i < count; ++i)
      if (std::abs(element(i)) > most || element(i) != line.constant + i * step) return {};
    if (step == 0) return line;
    if (own == axes_.resolve(queries_)) line.query = step;
    else if (own == axes_.resolve(keys_)) line.key = step;
    else return {};
    return line;
  }

  /// A constant that is true between two lines of slope 1, as a triangle is.
  bool band(const IndexedValue& mask) {
    const TensorData* data = editor_.value(mask.value).data();
    const AxisList own = axes_.flat(mask.dims), queries = axes_.resolve(queries_), keys = axes_.resolve(keys_);
    const AxisList of_scores = joined_axes({&queries, &keys});
    if (!data || own.size() < of_scores.size() || !std::equal(of_scores.rbegin(), of_scores.rend(), own.rbegin()))
      return false;
    const std::int64_t rows = axes_.extent(queries).constant(), columns = axes_.extent(keys).constant();
    if (rows < 1 || columns < 1) return false;
    const std::span<const std::byte> bytes = data->bytes();  // of every sequence and head the same
    const auto each = static_cast<std::size_t>(rows * columns);
    if (bytes.size() > each &&
        !std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(each), bytes.end(), bytes.begin()))
      return false;
    const auto sees = [&](std::int64_t i, std::int64_t j) {
      return bytes[static_cast<std::size_t>(i * columns + j)] != std::byte{0};
    };
    std::int64_t below = -columns, above = rows;  // the least i - j that is seen in a row whose last key is not, ..
    bool ends = false, begins = false;
    for (std::int64_t i = 0; i < rows; ++i) {
      std::int64_t first = 0, last = columns - 1;
      while (first < columns && !sees(i, first)) ++first;
      while (last >= 0 && !sees(i, last)) --last;
      if (first > last) return false;
      if (last < columns - 1) below = i - last, ends = true;
      if (first > 0) above = i - first, begins = true;
    }
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        if (sees(i, j) != ((!ends || i - j >= below) && (!begins || i - j <= above))) return false;
    if (ends) found.linear.push_back({.constant = -below, .query = 1, .key = -1, .from = mask});
    if (begins) found.linear.push_back({.constant = above, .query = -1, .key = 1, .from = mask});
    return true;
  }

  const GraphEditor& editor_;
  Axes& axes_;
  const AxisList &sequences_, &queries_, &keys_;
  int budget_ = 64;
};

}  // namespace

KeyConditions key_conditions(const GraphEditor& editor, Axes& axes, const IndexedValue& mask, const AxisList& sequences,
                             const AxisList& queries, const AxisList& keys) {
  ConditionReader reader(editor, axes, sequences, queries, keys);
  reader.read(mask);
  return std::move(reader.found);
}

}  // namespace cermet
