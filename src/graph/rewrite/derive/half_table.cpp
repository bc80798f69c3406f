#include "graph/rewrite/derive/half_table.hpp"

#include <algorithm>
#include <cstring>

#include "op/schema/axes.hpp"
#include "op/schema/operator.hpp"

namespace cermet {
namespace {

std::int64_t width_of(const GraphEditor& editor, ValueId id) {
  const Dims& dims = editor.value(id).type.dims;
  return dims.empty() ? 1 : dims.back().is_constant() ? dims.back().constant() : 0;
}

bool data_stands_twice(const TensorData& data, std::int64_t columns, PairOrder order) {
  const std::size_t element = size_of(data.type().dtype), width = static_cast<std::size_t>(columns);
  const std::byte* bytes = data.bytes().data();
  for (std::size_t row = 0; row < data.bytes().size(); row += width * element)
    for (std::size_t i = 0; i < width / 2; ++i) {
      const bool neighbours = order == PairOrder::neighbours;
      const std::size_t first = neighbours ? 2 * i : i, second = neighbours ? 2 * i + 1 : i + width / 2;
      if (std::memcmp(bytes + row + first * element, bytes + row + second * element, element) != 0) return false;
    }
  return true;
}

bool is_elementwise(const Maker& maker) {
  return maker.op == OpKind::cast || definition(maker.op).category == "Elementwise";
}

bool is_along_last(const GraphEditor& editor, const Maker& maker) {
  const auto* axis = maker.attributes.find("axis");
  const int rank = editor.value(maker.inputs[0]).type.rank();
  return wrap_axis(axis ? std::get<std::int64_t>(*axis) : 0, rank) == rank - 1;
}

/// What stands twice: the operand of a joint of one value with itself, or of an expansion to pairs.
std::optional<ValueId> doubled(const GraphEditor& editor, const Maker& maker, std::int64_t width, PairOrder order) {
  if (order == PairOrder::halves) {
    const bool twice = maker.op == OpKind::concat && maker.inputs.size() == 2 && maker.inputs[0] == maker.inputs[1] &&
                       is_along_last(editor, maker);
    return twice ? std::optional(maker.inputs[0]) : std::nullopt;
  }
  if (maker.op != OpKind::reshape) return {};
  const auto pairs = maker_of(editor, maker.inputs[0]);
  if (!pairs || width_of(editor, maker.inputs[0]) != 2) return {};
  const bool twice = (pairs->op == OpKind::expand && width_of(editor, pairs->inputs[0]) == 1) ||
                     (pairs->op == OpKind::concat && pairs->inputs.size() == 2 &&
                      pairs->inputs[0] == pairs->inputs[1] && is_along_last(editor, *pairs));
  const Dims& dims = editor.value(maker.inputs[0]).type.dims;
  if (!twice || dims.size() < 2 || dims[dims.size() - 2] != Dim(width / 2)) return {};
  return pairs->inputs[0];  // [.., D / 2, 1]
}

class HalfTable {
 public:
  HalfTable(const GraphEditor& editor, PairOrder order, std::int64_t width)
      : editor_(editor), order_(order), width_(width) {}

  bool proves(ValueId id) {
    if (width_of(editor_, id) != width_ || --budget_ < 0) return false;
    if (const TensorData* data = editor_.value(id).data()) return data_stands_twice(*data, width_, order_);
    const auto maker = maker_of(editor_, id);
    if (!maker) return false;
    if (doubled(editor_, *maker, width_, order_)) return true;
    if (is_elementwise(*maker))
      return std::ranges::all_of(
          maker->inputs, [&](ValueId input) { return !input || width_of(editor_, input) == 1 || proves(input); });
    if (!keeps_rows(*maker, id)) return false;
    return proves(maker->inputs[0]);
  }

  std::optional<ValueId> build(Arranger& arranger, ValueId id) {
    Dims dims = editor_.value(id).type.dims;
    dims.back() = width_ / 2;
    const auto maker = maker_of(editor_, id);
    if (editor_.value(id).data() || !maker) {
      Attributes half{{"axes", Ints{-1}},
                      {"starts", Ints{0}},
                      {"ends", Ints{order_ == PairOrder::neighbours ? width_ : width_ / 2}}};
      if (order_ == PairOrder::neighbours) half.set("steps", Ints{2});
      return arranger.apply_once(OpKind::slice, {id}, half);
    }
    if (const auto once = doubled(editor_, *maker, width_, order_)) return arranger.reshape(*once, dims);
    std::vector<ValueId> inputs = maker->inputs;
    for (ValueId& input : inputs) {
      if (!input || width_of(editor_, input) != width_ || (&input != inputs.data() && !is_elementwise(*maker)))
        continue;
      const auto half = build(arranger, input);
      if (!half) return {};
      input = *half;
    }
    if (maker->op == OpKind::reshape) return arranger.reshape(inputs[0], dims);
    Attributes attributes = maker->attributes;
    if (maker->op == OpKind::expand) {
      Ints shape = std::get<Ints>(*attributes.find("shape"));
      if (shape.back() != -1) shape.back() = width_ / 2;
      attributes.set("shape", shape);
    }
    return arranger.apply_once(maker->op, inputs, attributes);
  }

 private:
  /// Operators that move whole rows, or choose some.
  bool keeps_rows(const Maker& maker, ValueId result) const {
    const int rank = editor_.value(maker.inputs[0]).type.rank();
    if (width_of(editor_, maker.inputs[0]) != width_) return false;
    switch (maker.op) {
      case OpKind::reshape: return true;
      case OpKind::expand: return rank > 0 && editor_.value(result).type.rank() >= rank;
      case OpKind::transpose: return permutation_of(editor_, maker).back() == rank - 1;
      case OpKind::gather: return !is_along_last(editor_, maker);
      default: return false;
    }
  }

  const GraphEditor& editor_;
  PairOrder order_;
  std::int64_t width_;
  int budget_ = 64;
};

}  // namespace

bool stands_twice(const GraphEditor& editor, ValueId table, PairOrder order) {
  const std::int64_t width = width_of(editor, table);
  return width > 0 && width % 2 == 0 && HalfTable(editor, order, width).proves(table);
}

std::optional<ValueId> one_of_each_pair(Arranger& arranger, const GraphEditor& editor, ValueId table, PairOrder order) {
  return HalfTable(editor, order, width_of(editor, table)).build(arranger, table);
}

}  // namespace cermet
