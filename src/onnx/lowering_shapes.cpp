// Dimensions of values while a node is lowered: numbers, or what depends on the sizes of each run.
#include <algorithm>

#include "onnx/importer.hpp"
#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

Strings texts_of(const Dims& dims) {
  Strings texts;
  for (const Dim& d : dims) texts.push_back(d.to_string());
  return texts;
}

}  // namespace

Operand Lowering::reshape(Operand x, const Dims& to) {
  if (dims(x) == to) return x;
  x = elements_of(x);
  const Dims from = dims(x);
  if (from == to) return x;
  if (to.size() > static_cast<std::size_t>(Shape::max_rank)) return importer_.add_view(to, x);
  if (product(to) == Dim(0) && std::ranges::all_of(to, &Dim::is_constant))
    return filled(to, dtype(x), 0);  // a 0 in the attribute would stand for a size of x
  Ints shape;
  int inferred = 0;
  for (std::size_t i = 0; i < to.size(); ++i) {
    const bool kept = i < from.size() && from[i] == to[i];
    const bool written = to[i].is_constant() && to[i].constant() != 0;
    shape.push_back(written ? to[i].constant() : kept ? 0 : -1);
    inferred += !written && !kept ? 1 : 0;
  }
  if (inferred > 0 && product(to) == Dim(0)) return filled(to, dtype(x), 0);  // -1 is ambiguous
  if (inferred <= 1) return op(OpKind::reshape, {x}, {{"shape", std::move(shape)}});
  if (product(from) != product(to))
    throw NeedsSizes{
        fmt::format("node '{}' ({}) makes {} of {}", node_.name, node_.op, to_string(to), to_string(from))};
  return op(OpKind::reshape, {x}, {{"dims", texts_of(to)}});
}

Operand Lowering::unsqueeze(Operand x, const Ints& axes) {
  const int to_rank = rank(x) + static_cast<int>(axes.size());
  std::vector<bool> added(static_cast<std::size_t>(to_rank));
  for (const std::int64_t a : axes) {
    const auto at = static_cast<std::size_t>(axis(a, to_rank));
    expect(!added[at], "axes: expected each once, found {} twice", a);
    added[at] = true;
  }
  Dims to;
  std::size_t next = 0;
  const Dims from = dims(x);
  for (const bool one : added) to.push_back(one ? Dim(1) : from[next++]);
  return reshape(x, to);
}

Operand Lowering::squeeze(Operand x, const Ints& axes) {
  Dims to;
  std::vector<bool> removed(static_cast<std::size_t>(rank(x)));
  for (const std::int64_t a : axes) removed[static_cast<std::size_t>(axis(a, rank(x)))] = true;
  const Dims from = dims(x);
  for (std::size_t a = 0; a < from.size(); ++a) {
    expect(!removed[a] || equals(from[a], 1), "axis {}: expected size 1, found {}", a, from[a].to_string());
    if (!removed[a]) to.push_back(from[a]);
  }
  return reshape(x, to);
}

Operand Lowering::expand(Operand x, const Dims& to) {
  const Dims from = dims(x);
  const std::size_t rank = std::max(from.size(), to.size());
  Ints shape;
  Dims result;
  bool changes = rank > from.size(), symbolic = false;
  for (std::size_t i = 0; i < rank; ++i) {
    const bool is_new = i + from.size() < rank;
    const Dim have = is_new ? Dim(1) : from[i + from.size() - rank],
              want = i + to.size() < rank ? Dim(1) : to[i + to.size() - rank];
    bool keeps = have == want || want == Dim(1) || want == Dim(-1);
    // Both may be 1 for some sizes; where neither is, they must be the same.
    if (!keeps && !equals(have, 1)) {
      keeps = equals(want, 1) || equals(have, want);
      expect(keeps || (have.is_constant() && want.is_constant()),
             "shape: expected dimensions that {} broadcasts to, found {}", to_string(from), to_string(to));
    }
    result.push_back(keeps ? have : want);
    shape.push_back(!keeps && want.is_constant() ? want.constant() : is_new ? 1 : -1);
    symbolic = symbolic || (!keeps && !want.is_constant());
    changes = changes || !keeps;
  }
  if (!changes) return x;
  return symbolic ? op(OpKind::expand, {x}, {{"dims", texts_of(result)}})
                  : op(OpKind::expand, {x}, {{"shape", std::move(shape)}});
}

Operand Lowering::slice(Operand x, int axis, std::int64_t start, std::int64_t end, std::int64_t step) {
  return op(OpKind::slice, {x},
            {{"starts", Ints{start}}, {"ends", Ints{end}}, {"axes", Ints{axis}}, {"steps", Ints{step}}});
}

Operand Lowering::take(Operand x, int axis, const Dim& first, const Dim& count, std::int64_t step) {
  const Dim size = dim(x, axis);
  if (step == 1 && first == Dim(0) && count == size) return x;
  const Dim behind = first - size;  // a negative start counts from the end
  std::optional<std::int64_t> start;
  if (first.is_constant()) start = first.constant();
  else if (behind.is_constant() && behind.constant() < 0) start = behind.constant();
  if (!start) return op(OpKind::gather, {x, counting(count, first, step)}, {{"axis", std::int64_t{axis}}});
  return op(OpKind::slice, {x},
            {{"starts", Ints{*start}}, {"counts", texts_of({count})}, {"axes", Ints{axis}}, {"steps", Ints{step}}});
}

}  // namespace cermet::onnx
