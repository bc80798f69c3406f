#include "comm/call.hpp"

namespace cermet::comm {
namespace {

/// FNV-1a over the counts: equal matrices have equal digests, and 0 stands for none.
std::uint64_t digest(const PairCounts& counts, int size) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (int from = 0; from < size; ++from)
    for (int to = 0; to < size; ++to) {
      auto value = static_cast<std::uint64_t>(counts.at(from, to));
      for (int byte = 0; byte < 8; ++byte, value >>= 8) hash = (hash ^ (value & 255u)) * 0x100000001b3u;
    }
  return hash == 0 ? 1 : hash;
}

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
    return begin(view) + static_cast<std::uintptr_t>((last + 1) * static_cast<std::int64_t>(size_of(view.dtype)));
  };
  return x.elements() > 0 && y.elements() > 0 && begin(x) < end(y) && begin(y) < end(x);
}

bool may_coincide(Collective kind) { return kind == Collective::all_reduce || kind == Collective::reduce_to || kind == Collective::broadcast_from; }

}  // namespace

std::string to_string(const CallHeader& header) {
  if (header.what == what_none) return "none";
  if (header.what == what_barrier) return fmt::format("call {}, barrier", header.number);
  if (header.what == what_text) return fmt::format("call {}, exchange of text", header.number);
  const auto kind = static_cast<Collective>(header.what);
  if (header.dtype == no_dtype) return fmt::format("call {}, {}", header.number, name_of(kind));
  std::string text =
      fmt::format("call {}, {} of {}[{} x {}]", header.number, name_of(kind), name_of(static_cast<DType>(header.dtype)), header.rows, header.row_elements);
  constexpr std::array<std::string_view, 5> reductions{"sum", "avg", "prod", "max", "min"};
  if (has_reduction(kind)) text += fmt::format(" by {}", reductions[header.reduction]);
  if (has_root(kind)) text += fmt::format(" with root {}", header.root);
  if (header.counts != 0) text += fmt::format(" with counts of digest {:x}", header.counts);
  return text;
}

DenseCall describe(const CollectiveCall& call, int rank, int size) {
  const std::string_view op = name_of(call.kind);
  const TensorView &x = call.x, &y = call.y;
  require(x.present && y.present, "{}: expected an operand and a result, found none", op);
  require(has_root(call.kind) ? call.root >= 0 && call.root < size : call.root == 0, "{}: root: expected a rank in [0, {}), found {}", op,
          has_root(call.kind) ? size : 1, call.root);
  const bool splits = cuts_operand(call.kind) || joins_result(call.kind);
  require(!splits || x.shape.rank() > 0, "{}: operand x: expected at least one dimension, found {}", op, x.type().to_string());
  const bool even = !call.counts.present;
  require(even || call.kind == Collective::all_to_all, "{}: expected no counts, found some", op);
  require(!cuts_operand(call.kind) || !even || x.shape[0] % size == 0, "{}: operand x: expected dimension 0 to be a multiple of the {} ranks, found {}", op,
          size, x.type().to_string());
  const TensorType expected = expected_result(call, size);
  require(y.type() == expected, "{}: operand y: expected {}, found {}", op, expected.to_string(), y.type().to_string());
  const bool same = x.data == y.data && x.strides == y.strides && may_coincide(call.kind);
  require(same || !overlap(x, y), "{}: operand y: expected memory of its own, found some of x", op);

  DenseCall dense{.kind = call.kind, .reduction = call.reduction, .dtype = x.dtype, .rank = rank, .size = size, .root = call.root};
  dense.rows = x.shape.rank() > 0 ? x.shape[0] : 1;
  dense.row_elements = 1;
  for (int a = 1; a < x.shape.rank(); ++a) dense.row_elements *= x.shape[a];
  dense.x_pieces = cuts_operand(call.kind) ? size : 1;
  dense.y_pieces = joins_result(call.kind) || call.kind == Collective::all_to_all ? size : 1;
  dense.piece = dense.rows * dense.row_elements / dense.x_pieces;
  if (even) return dense;
  const TensorType counts{call.counts.dtype, {size, size}};
  require(dtypes::index.contains(call.counts.dtype) && call.counts.type() == counts, "{}: operand counts: expected i32[{}, {}] or i64, found {}", op, size,
          size, call.counts.type().to_string());
  dense.counts.emplace(call.counts, dense.rows);
  dense.x_pieces = dense.y_pieces = 1;
  dense.piece = dense.rows * dense.row_elements;
  return dense;
}

CallHeader header_of(const DenseCall& call) {
  return {.what = static_cast<std::uint8_t>(call.kind),
          .reduction = static_cast<std::uint8_t>(has_reduction(call.kind) ? call.reduction : Reduction::sum),
          .dtype = static_cast<std::uint8_t>(call.dtype),
          .root = call.root,
          .rows = call.rows,
          .row_elements = call.row_elements,
          .counts = call.counts ? digest(*call.counts, call.size) : 0};
}

}  // namespace cermet::comm
