// linear of float32 and bf16, and scaled_mm of int8, by oneDNN's products over packed weights: each thread multiplies
// pieces, and the epilogue runs over their sums.
#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/gemm/onednn_library.hpp"
#include "kernel/cpu/gemm/onednn_product.hpp"
#include "kernel/cpu/gemm/onednn_sums.hpp"
#include "kernel/cpu/isa.hpp"
#include "op/products.hpp"

namespace cermet::cpu {
namespace {

constexpr std::int64_t packed_piece_columns = 128, fewest_piece_rows = 16, usual_packed_rows = 256;
constexpr std::string_view packed_rows_field = "rows";

/// Pieces of the results, which meet as many pieces of the weight. Their rows differ by one at most, because oneDNN is
/// slow with a few that are left over; the last piece of the columns may be smaller than the others.
struct PackedPieces {
  DType type;
  std::int64_t rows, columns, length, row_pieces;

  PackedPieces(DType of, std::int64_t all_rows, std::int64_t all_columns, std::int64_t reduced, std::int64_t most_rows)
      : type(of), rows(all_rows), columns(all_columns), length(reduced), row_pieces(div_up(rows, most_rows)) {}
  PackedPieces(const Problem& p, const Config& config)
      : PackedPieces(p.input(1).dtype, max_rows(p, 0), p.size(1, 0), p.size(1, 1),
                     config.find(packed_rows_field).value_or(usual_packed_rows)) {}

  std::int64_t column_pieces() const { return div_up(columns, packed_piece_columns); }
  std::int64_t first_row(std::int64_t r) const { return r * rows / row_pieces; }
  OneDnnSizes sizes(std::int64_t r, std::int64_t c) const {
    return {type, first_row(r + 1) - first_row(r), std::min(packed_piece_columns, columns - c * packed_piece_columns),
            length};
  }
  bool is_longer(std::int64_t r) const { return first_row(r + 1) - first_row(r) > rows / row_pieces; }
  bool is_narrower(std::int64_t c) const { return c > 0 && (c + 1) * packed_piece_columns > columns; }
  std::int64_t row_bytes() const { return length * byte_size(type); }
  /// Of a thread: sums, and rows that are copied where they lie apart.
  std::int64_t sums_bytes() const {
    return div_up(rows, row_pieces) * packed_piece_columns * static_cast<std::int64_t>(sizeof(float));
  }
  std::int64_t rows_bytes() const { return round_up(div_up(rows, row_pieces) * row_bytes(), 64); }
};

PackedPieces pieces_of_weight(const TensorType& matrix) {
  return {matrix.dtype, fewest_piece_rows, matrix.dims[0].constant(), matrix.dims[1].constant(), fewest_piece_rows};
}
std::int64_t piece_step(const PackedPieces& pieces) {
  return round_up(OneDnnProduct(pieces.sizes(0, 0)).weight_bytes(), 64);
}

std::int64_t packed_bytes(const TensorType& matrix) {
  const PackedPieces pieces = pieces_of_weight(matrix);
  return pieces.column_pieces() * piece_step(pieces);
}

void pack_pieces(const TensorView& matrix, std::byte* destination, ThreadPool& pool) {
  const PackedPieces pieces = pieces_of_weight({matrix.dtype, to_dims(matrix.shape)});
  const std::int64_t step = piece_step(pieces), row = matrix.strides[0] * byte_size(matrix.dtype);
  pool.dynamic_for(pieces.column_pieces(), [&](std::int64_t c) {
    const OneDnnProduct product(pieces.sizes(0, c));
    CERMET_ASSERT(product.weight_bytes() <= step);
    product.pack(matrix.as<const std::byte>() + c * packed_piece_columns * row, matrix.strides[0],
                 destination + c * step);
  });
}

constexpr WeightLayout onednn_f32{"onednn.f32", packed_bytes, pack_pieces};
constexpr WeightLayout onednn_bf16{"onednn.bf16", packed_bytes, pack_pieces};
constexpr WeightLayout onednn_i8{"onednn.i8", packed_bytes, pack_pieces};

struct PackedPlan {
  AnchorOperands operands;
  BoundTileProgram epilogue;
  PackedPieces pieces;
  std::array<std::unique_ptr<OneDnnProduct>, 4> products;  ///< by product_index
  std::int64_t weight_step = 0, scratch_bytes = 0;

  PackedPlan(const Region& region, const Config& config)
      : operands(region),
        epilogue(product_epilogue(region).program),
        pieces(region.problem(), config),
        weight_step(piece_step(pieces)) {
    for (std::int64_t r = 0; r < pieces.row_pieces; ++r)
      for (const std::int64_t c : {std::int64_t{0}, pieces.column_pieces() - 1}) {
        std::unique_ptr<OneDnnProduct>& product = products[product_index(r, c)];
        if (product) continue;
        product = std::make_unique<OneDnnProduct>(pieces.sizes(r, c));
        scratch_bytes = std::max(scratch_bytes, round_up(product->scratch_bytes(), 64));
      }
  }
  std::size_t product_index(std::int64_t r, std::int64_t c) const {
    return (pieces.is_longer(r) ? 1U : 0U) + (pieces.is_narrower(c) ? 2U : 0U);
  }
  std::int64_t thread_bytes() const { return pieces.sums_bytes() + pieces.rows_bytes() + scratch_bytes; }
};

/// Rows [first, first + count), which are copied where they do not follow each other.
const std::byte* dense_rows(const Rows& x, std::int64_t first, std::int64_t count, std::int64_t row_bytes,
                            std::byte* copy) {
  const std::byte* const start = x.row(first);
  bool follow = true;
  for (std::int64_t r = 1; follow && r < count; ++r) follow = x.row(first + r) == start + r * row_bytes;
  if (follow) return start;
  for (std::int64_t r = 0; r < count; ++r) std::copy_n(x.row(first + r), row_bytes, copy + r * row_bytes);
  return copy;
}

void run_packed(const LaunchArgs& args, const PackedPlan& plan) {
  if (args.outputs[plan.epilogue.first_result()].elements() == 0) return;
  const Rows x(plan.operands(args, 0));
  const TensorView w = plan.operands(args, 1);
  const TileRun epilogue(plan.epilogue, args);
  const PackedPieces& pieces = plan.pieces;
  const std::int64_t items = pieces.row_pieces * pieces.column_pieces(), threads = args.pool->size();
  args.pool->run([&](int thread) {
    const OneDnnAlone alone;
    std::byte* const sums = args.workspace + thread * plan.thread_bytes();
    std::byte* const copy = sums + pieces.sums_bytes();
    for (std::int64_t item = thread * items / threads; item < (thread + 1) * items / threads;
         ++item) {  // those of a piece of the weight follow each other
      const std::int64_t c = item / pieces.row_pieces, r = item % pieces.row_pieces;
      const OneDnnSizes sizes = pieces.sizes(r, c);
      const TileRange piece{pieces.first_row(r), sizes.rows, c * packed_piece_columns, sizes.columns};
      plan.products[plan.product_index(r, c)]->run(dense_rows(x, piece.row, piece.rows, pieces.row_bytes(), copy),
                                                   w.as<const std::byte>() + c * plan.weight_step, sums,
                                                   copy + pieces.rows_bytes());
      finish_onednn_sums(epilogue, piece, reinterpret_cast<const float*>(sums));
    }
  });
}

Decline packed_declines(const Region& region) {
  const Problem& p = region.problem();
  const bool quantized = p.op->kind == OpKind::scaled_mm;
  const DType type = p.input(1).dtype;
  if (quantized ? type != DType::i8 : type != DType::f32 && type != DType::bf16)
    return fmt::format("{} is {}, not {}", p.input_name(1), name_of(type), quantized ? "i8" : "f32 or bf16");
  if (p.input(0).dtype != type)
    return fmt::format("{} is {}, not {}", p.input_name(0), name_of(p.input(0).dtype), name_of(type));
  if (!p.is_constant(1)) return "weight is not constant, so it cannot be prepacked";
  if (!std::ranges::all_of(p.input(0).dims, &Dim::is_constant))
    return "the number of rows is not known, and each needs code of its own";
  if (max_rows(p, 0) < fewest_piece_rows)
    return fmt::format("fewer than {} rows, for which oneDNN prefers another order of weights", fewest_piece_rows);
  if (p.size(1, 0) == 0 || p.size(1, 1) == 0) return "the weight has no elements";
  if (type == DType::bf16 && active_isa() < Isa::avx512_bf16)
    return fmt::format("{} has no bf16 dot product", name_of(active_isa()));
  if (quantized && active_isa() < Isa::avx512_vnni) return "its sums of int8 may saturate without byte dot products";
  if (Decline reason = onednn_sums_decline(region, quantized)) return reason;
  return onednn_primitives_missing();
}

const WeightLayout* packed_layout(const Region& region, std::size_t operand) {
  if (region.operand_of(1) != operand) return nullptr;
  const DType type = region.problem().input(1).dtype;
  return type == DType::f32 ? &onednn_f32 : type == DType::bf16 ? &onednn_bf16 : &onednn_i8;
}

Kernel packed_kernel(std::string name, OpKind op, std::string summary) {
  return {
      .name = std::move(name),
      .op = op,
      .summary = std::move(summary),
      .fuses = true,
      .declines = packed_declines,
      .bind = [](const Region& region, const Config& config) -> Launcher {
        const auto plan = std::make_shared<PackedPlan>(region, config);
        for (const auto& product : plan->products)
          if (product) product->prepare();
        return [plan](const LaunchArgs& args) { run_packed(args, *plan); };
      },
      .weight_layout = packed_layout,
      .workspace = [](const Region& region, const Config& config,
                      int threads) { return threads * PackedPlan(region, config).thread_bytes(); },
      .space =
          [](const Region& region) {
            ConfigSpace space;
            if (max_rows(region.problem(), 0) > 64)
              space.add(
                  ConfigField::set(std::string(packed_rows_field), {64, 128, 256, 512}).with_usual(usual_packed_rows));
            return space;
          },
  };
}

}  // namespace

extern const Kernel onednn_linear_packed =
    packed_kernel("onednn.linear.packed", OpKind::linear,
                  "float32 and bf16 products of 16 rows and more by oneDNN where it is installed, over weights in its "
                  "own order; not modelled");
extern const Kernel onednn_scaled_mm_packed =
    packed_kernel("onednn.scaled_mm.packed", OpKind::scaled_mm,
                  "as onednn.linear.packed, int8 without zero points and scales of blocks: the same bits as our own");

}  // namespace cermet::cpu
