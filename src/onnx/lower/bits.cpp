// com.microsoft's weights and tables of 2, 4 or 8 bits, in blocks that share a scale.
#include "onnx/lowering.hpp"

namespace cermet::onnx {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1}
                                       << 40;  ///< of a weight: none is as large, and sizes made of it do not overflow

/// Bytes [.., n] as the numbers that are packed in them, lowest bits first: u8 [.., n * 8 / bits].
Operand unpacked_bits(Lowering& l, Operand bytes, std::int64_t bits) {
  if (bits == 8) return bytes;
  const Dims given = l.dims(bytes);
  std::vector<Operand> parts;
  for (std::int64_t at = 0; at < 8; at += bits) {
    Operand part = bytes;
    if (at > 0) part = l.binary(OpKind::shift_right, part, static_cast<double>(at));
    if (at + bits < 8) part = l.binary(OpKind::bitwise_and, part, static_cast<double>((1 << bits) - 1));
    parts.push_back(l.unsqueeze(part, {l.rank(bytes)}));
  }
  Dims to = given;
  to.back() = to.back() * (8 / bits);
  return l.reshape(l.concat(parts, l.rank(bytes)), to);
}

}  // namespace

void lower_matmul_nbits(Lowering& l) {
  const Operand a = l.in(0);
  const std::int64_t rows = l.integer("N", 0), columns = l.integer("K", 0), block = l.integer("block_size", 0),
                     bits = l.integer("bits", 4);
  if (bits != 2 && bits != 4 && bits != 8) l.unsupported("attribute bits: expected 2, 4 or 8, found {}", bits);
  if (l.integer("weight_prepacked", 0) != 0)
    l.unsupported("attribute weight_prepacked: {} is not supported: weights are read as the format has them",
                  l.integer("weight_prepacked", 0));
  l.expect(
      rows > 0 && columns > 0 && columns < (1 << 30) && rows <= most_elements / columns && block >= 16 &&
          block <= (1 << 20) && (block & (block - 1)) == 0,
      "attributes N, K and block_size: expected positive sizes and a power of two of at least 16, found {}, {} and {}",
      rows, columns, block);
  l.expect(l.dim(a, -1) == Dim(columns), "A: expected {} columns, found {}", columns, l.type(a).to_string());
  const std::int64_t blocks = (columns + block - 1) / block, blob = block * bits / 8;
  const auto shaped = [&](std::size_t i, std::string_view name, const Dims& dims) {
    l.expect(product(l.dims(l.in(i))) == product(dims), "{}: expected {}, found {}", name, to_string(dims),
             l.type(l.in(i)).to_string());
    return l.reshape(l.in(i), dims);
  };
  l.expect(l.dtype(l.in(1)) == DType::u8, "B: expected u8, found {}", name_of(l.dtype(l.in(1))));
  l.make_room(l.in(1), 16 * rows * blocks * block);  // steps from bits to what they stand for, in 32 bits
  Operand values = l.reshape(unpacked_bits(l, shaped(1, "B", {rows, blocks, blob}), bits), {rows, blocks, block});
  Operand scale = l.cast(shaped(2, "scales", {rows, blocks}), DType::f32), zero;
  if (!l.has(3)) {
    zero = l.scalar(DType::u8, static_cast<double>(1 << (bits - 1)));
  } else if (l.dtype(l.in(3)) == DType::u8) {
    zero = unpacked_bits(l, shaped(3, "zero_points", {rows, (blocks * bits + 7) / 8}), bits);
    if (l.size(zero, 1) != blocks) zero = l.slice(zero, 1, 0, blocks);
  } else {
    zero = l.cast(shaped(3, "zero_points", {rows, blocks}), DType::f32);
  }
  if (l.has(4)) {  // the block of each column
    Operand groups = l.in(4);
    l.expect(l.rank(groups) == 1 && l.size(groups, 0) >= columns, "g_idx: expected [{}], found {}", columns,
             l.type(groups).to_string());
    if (l.size(groups, 0) != columns) groups = l.slice(groups, 0, 0, columns);
    const auto spread = [&](Operand parameter) {
      return l.op(OpKind::gather, {parameter, groups}, {{"axis", std::int64_t{1}}});
    };
    values = l.reshape(values, {rows, blocks * block});
    if (blocks * block != columns) values = l.slice(values, 1, 0, columns);
    scale = spread(scale);
    if (l.has(3)) zero = spread(zero);
  } else {
    scale = l.unsqueeze(scale, {2});
    if (l.has(3)) zero = l.unsqueeze(zero, {2});
  }
  Operand weight = l.op(OpKind::dequantize, {values, scale, zero},
                        {{"granularity", "broadcast"}, {"out_dtype", std::string(name_of(l.dtype(a)))}});
  if (!l.has(4)) {
    weight = l.reshape(weight, {rows, blocks * block});
    if (blocks * block != columns) weight = l.slice(weight, 1, 0, columns);
  }
  std::vector<Operand> operands{a, weight};
  if (l.has(5)) operands.push_back(l.in(5));
  l.set(0, l.op(OpKind::linear, operands));
}

/// A weight [N, K] of 4 bits that number the values of a table, high bits first; blocks run through all elements.
void lower_matmul_bnb4(Lowering& l) {
  const Floats tables[] = {
      {0, 0.00520833333, 0.66666667, 1, 0.33333333, 0.5, 0.16666667, 0.25, -0.0, -0.00520833333, -0.66666667, -1,
       -0.33333333, -0.5, -0.16666667, -0.25},
      {-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1}};
  const Operand a = l.in(0), bytes = l.in(1);
  const std::int64_t rows = l.integer("N", 0), columns = l.integer("K", 0), block = l.integer("block_size", 0),
                     kind = l.integer("quant_type", 0);
  if (l.integer("transB", 1) == 0) l.unsupported("attribute transB: 0 is not supported");
  l.expect(kind == 0 || kind == 1, "attribute quant_type: expected 0 (FP4) or 1 (NF4), found {}", kind);
  l.expect(
      rows > 0 && columns > 0 && rows <= most_elements / columns && block > 0 && rows * columns % 2 == 0 &&
          rows * columns % block == 0,
      "attributes N, K and block_size: expected sizes whose product is a multiple of block_size, found {}, {} and {}",
      rows, columns, block);
  const std::int64_t elements = rows * columns;
  l.expect(l.dtype(bytes) == DType::u8 && l.elements(bytes) == elements / 2 && l.elements(l.in(2)) == elements / block,
           "B and absmax: expected u8[{}] and [{}], found {} and {}", elements / 2, elements / block,
           l.type(bytes).to_string(), l.type(l.in(2)).to_string());
  l.make_room(bytes, 32 * elements);
  const Operand flat = l.reshape(bytes, {elements / 2, 1});
  const Operand numbers =
      l.concat({l.binary(OpKind::shift_right, flat, 4.0), l.binary(OpKind::bitwise_and, flat, 15.0)}, 1);
  const Operand values = l.op(OpKind::gather, {l.vector(DType::f32, tables[kind]), l.cast(numbers, DType::i32)},
                              {{"axis", std::int64_t{0}}});
  const Operand scaled = l.binary(OpKind::mul, l.reshape(values, {elements / block, block}),
                                  l.reshape(l.cast(l.in(2), DType::f32), {elements / block, 1}));
  l.set(0, l.op(OpKind::linear, {a, l.cast(l.reshape(scaled, {rows, columns}), l.dtype(a))}));
}

/// Rows of a table of bytes, in blocks along the last axis; what they stand for.
void lower_gather_block_quantized(Lowering& l) {
  const Operand table = l.in(0), scales = l.in(2);
  const std::int64_t bits = l.integer("bits", 4), block = l.integer("block_size", 128);
  const int rank = l.rank(table);
  if (l.dtype(table) != DType::u8 || (bits != 2 && bits != 4 && bits != 8))
    l.unsupported("data: expected u8 of 2, 4 or 8 bits an element, found {} of {}", l.type(table).to_string(), bits);
  if (rank != 2 || l.axis(l.integer("gather_axis", 0), rank) != 0 || l.axis(l.integer("quantize_axis", 1), rank) != 1)
    l.unsupported("expected rows of a table with blocks along them, found {} with gather_axis {} and quantize_axis {}",
                  l.type(table).to_string(), l.integer("gather_axis", 0), l.integer("quantize_axis", 1));
  const std::int64_t columns = l.size(table, 1) * 8 / bits;
  l.expect(
      block >= 16 && block <= (1 << 20) && l.rank(scales) == 2 && l.size(scales, 1) == (columns + block - 1) / block,
      "scales: expected one for each {} of {} columns, found {}", block, columns, l.type(scales).to_string());
  const auto rows = [&](Operand x) {
    return l.op(OpKind::gather, {x, dtypes::index.contains(l.dtype(l.in(1))) ? l.in(1) : l.cast(l.in(1), DType::i64)},
                {{"axis", std::int64_t{0}}});
  };
  const std::int64_t blocks = l.size(scales, 1);
  const auto spread = [&](Operand x) {  // [.., blocks] as [.., columns]
    Dims each = l.dims(x), all = each;
    each.push_back(block);
    all.back() = blocks * block;
    const int last = l.rank(x) - 1;
    const Operand y = l.reshape(l.expand(l.unsqueeze(x, {last + 1}), each), all);
    return blocks * block == columns ? y : l.slice(y, last, 0, columns);
  };
  const Operand values = unpacked_bits(l, rows(table), bits);
  Operand zero = l.scalar(DType::u8, static_cast<double>(1 << (bits - 1)));
  if (l.has(3)) {
    zero = unpacked_bits(l, rows(l.in(3)), bits);
    if (l.size(zero, -1) != blocks) zero = l.slice(zero, l.rank(zero) - 1, 0, blocks);
    zero = spread(zero);
  }
  l.set(0, l.op(OpKind::dequantize, {values, spread(l.cast(rows(scales), DType::f32)), zero},
                {{"granularity", "broadcast"}, {"out_dtype", std::string(name_of(l.dtype(scales)))}}));
}

}  // namespace cermet::onnx
