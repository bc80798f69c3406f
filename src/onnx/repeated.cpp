// Constants that have one value everywhere, however large: a mask of zeros, a filled tensor. Elementwise operators read the one element, which broadcasts.
#include <algorithm>

#include "onnx/importer.hpp"
#include "op/schema/operator.hpp"

namespace cermet::onnx {
namespace {

bool is_elementwise(OpKind kind) { return kind == OpKind::cast || kind == OpKind::where || definition(kind).category == "Elementwise"; }

bool only_moves(OpKind kind) { return kind == OpKind::expand || kind == OpKind::reshape || kind == OpKind::transpose || kind == OpKind::slice; }

}  // namespace

/// As a tensor without dimensions; none where elements differ or are not known.
Operand Importer::repeated(Operand x) {
  if (!x || slot(x).repeated) return x ? slot(x).repeated : x;
  const TensorType type = slot(x).type;
  if ((!slot(x).data && !slot(x).tensor) || !std::ranges::all_of(type.dims, [](const Dim& d) { return d == Dim(1); })) return {};
  if (type.dims.empty()) return x;
  Slot one{.name = {}, .type = {type.dtype, {}}, .data = {}, .symbolic = {}};
  one.data.emplace(one.type, known(x).bytes());
  return add(std::move(one));
}

/// Marks the result of a constant application whose operands have one value each.
void Importer::note_repeated(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes, Operand result) {
  const bool moves = only_moves(kind);
  if (!moves && !is_elementwise(kind)) return;
  std::vector<Operand> ones;
  for (const Operand x : inputs) {
    ones.push_back(repeated(x));
    if (x && !ones.back()) return;
    if (moves) break;
  }
  if (moves) slot(result).repeated = ones.at(0);
  else if (const auto made = fold(kind, ones, attributes); made && made->size() == 1) slot(result).repeated = made->at(0);
}

/// Dimensions that only some sizes let broadcast are told apart before the operator refuses them for all.
void Importer::check_broadcast(const std::vector<Operand>& inputs, OpKind kind) const {
  if (ranges_.empty() || !is_elementwise(kind)) return;
  Dims all;
  for (const Operand x : inputs) {
    if (!x) continue;
    const Dims& dims = state_.slots.at(static_cast<std::size_t>(x.slot)).type.dims;
    if (dims.size() > all.size()) all.insert(all.begin(), dims.size() - all.size(), Dim(1));
    for (std::size_t i = 0; i < dims.size(); ++i) {
      Dim& known = all[all.size() - dims.size() + i];
      if (known == Dim(1)) known = dims[i];
      if (dims[i] == known || dims[i] == Dim(1)) continue;
      for (const auto& [a, b] : {std::pair(dims[i], Dim(1)), std::pair(known, Dim(1)), std::pair(dims[i], known)})
        if (!equals(a, b, ranges_))
          throw NeedsSizes{fmt::format("{}: sizes in the range differ in whether {} is {}", here(), a.to_string(), b.to_string()), a - b};
    }
  }
}

/// The operands of an elementwise operator with one element in place of such a constant, wherever that leaves the result's dimensions.
std::vector<Operand> Importer::with_one_element(OpKind kind, const std::vector<Operand>& inputs, const Attributes& attributes) {
  if (!is_elementwise(kind) || std::ranges::none_of(inputs, [&](Operand x) { return x && slot(x).repeated; })) return inputs;
  const auto result_of = [&](const std::vector<Operand>& operands) {
    std::vector<std::optional<TensorType>> types;
    for (const Operand x : operands) types.push_back(x ? std::optional(slot(x).type) : std::nullopt);
    return make_problem(definition(kind), std::move(types), attributes).outputs.at(0);
  };
  const TensorType whole = result_of(inputs);
  std::vector<Operand> operands = inputs;
  for (Operand& x : operands) {
    if (!x || !slot(x).repeated) continue;
    const Operand before = std::exchange(x, slot(x).repeated);
    if (result_of(operands) != whole) x = before;
  }
  return operands;
}

}  // namespace cermet::onnx
