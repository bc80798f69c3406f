#include "comm/call.hpp"

namespace cermet::comm {
namespace {

/// The result's type for an operand's.
TensorType expected_result(const CollectiveCall& call, int size) {
  TensorType type = call.x.type();
  if (joins_result(call.kind)) type.dims[0] = type.dims[0] * size;
  if (cuts_operand(call.kind) && call.kind != Collective::all_to_all) type.dims[0] = call.x.shape[0] / size;
  return type;
}

bool overlap(const TensorView& x, const TensorView& y) {
  const auto begin = [](const TensorView& view) { return reinterpret_cast<std::uintptr_t>(view.data); };
  const auto end = [&](const TensorView& view) {
    std::int64_t last = 0;
    for (int a = 0; a < view.shape.rank(); ++a) last += (view.shape[a] - 1) * view.strides[a];
    return begin(view) + static_cast<std::uintptr_t>((last + 1) * byte_size(view.dtype));
  };
  return x.elements() > 0 && y.elements() > 0 && begin(x) < end(y) && begin(y) < end(x);
}

bool may_coincide(Collective kind) {
  return kind == Collective::all_reduce || kind == Collective::reduce_to || kind == Collective::broadcast_from;
}

}  // namespace

DenseCall describe(const CollectiveCall& call, int rank, int size) {
  const std::string_view op = name_of(call.kind);
  const TensorView &x = call.x, &y = call.y;
  require(x.present && y.present, "{}: expected an operand and a result, found none", op);
  require(has_root(call.kind) ? call.root >= 0 && call.root < size : call.root == 0,
          "{}: root: expected a rank in [0, {}), found {}", op, has_root(call.kind) ? size : 1, call.root);
  const bool splits = cuts_operand(call.kind) || joins_result(call.kind);
  require(!splits || x.shape.rank() > 0, "{}: operand x: expected at least one dimension, found {}", op,
          x.type().to_string());
  const bool even = !call.counts.present;
  require(even || call.kind == Collective::all_to_all, "{}: expected no counts, found some", op);
  require(!cuts_operand(call.kind) || !even || x.shape[0] % size == 0,
          "{}: operand x: expected dimension 0 to be a multiple of the {} ranks, found {}", op, size,
          x.type().to_string());
  const TensorType expected = expected_result(call, size);
  require(y.type() == expected, "{}: operand y: expected {}, found {}", op, expected.to_string(), y.type().to_string());
  const bool same = x.data == y.data && x.strides == y.strides && may_coincide(call.kind);
  require(same || !overlap(x, y), "{}: operand y: expected memory of its own, found some of x", op);

  DenseCall dense{
      .kind = call.kind, .reduction = call.reduction, .dtype = x.dtype, .rank = rank, .size = size, .root = call.root};
  dense.rows = x.shape.rank() > 0 ? x.shape[0] : 1;
  dense.row_elements = 1;
  for (int a = 1; a < x.shape.rank(); ++a) dense.row_elements *= x.shape[a];
  dense.x_pieces = cuts_operand(call.kind) ? size : 1;
  dense.y_pieces = joins_result(call.kind) || call.kind == Collective::all_to_all ? size : 1;
  dense.piece = dense.rows * dense.row_elements / dense.x_pieces;
  if (even) return dense;
  const TensorType counts{call.counts.dtype, {size, size}};
  require(dtypes::index.contains(call.counts.dtype) && call.counts.type() == counts,
          "{}: operand counts: expected i32[{}, {}] or i64, found {}", op, size, size, call.counts.type().to_string());
  dense.counts.emplace(call.counts, dense.rows);
  dense.x_pieces = dense.y_pieces = 1;
  dense.piece = dense.rows * dense.row_elements;
  return dense;
}

}  // namespace cermet::comm
