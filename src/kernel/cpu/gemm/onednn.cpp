// linear of float32 and scaled_mm of int8 by oneDNN: it multiplies pieces, each on one of the pool's threads, and the
// epilogue runs over their sums.
#include "kernel/cpu/gemm/onednn_library.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/gemm/binding.hpp"
#include "kernel/cpu/gemm/onednn_sums.hpp"
#include "kernel/cpu/isa.hpp"
#include "op/products.hpp"

namespace cermet::cpu {
namespace {

constexpr std::int64_t piece_columns = 1024;  ///< of the sums that a thread holds
constexpr std::int64_t usual_piece_rows = 512;
constexpr std::string_view piece_rows_field = "rows";

struct OneDnnPlan {
  AnchorOperands operands;
  BoundTileProgram epilogue;
  bool quantized;  ///< int8, whose sums are i32
  std::int64_t piece_rows;

  OneDnnPlan(const Region& region, const Config& config)
      : operands(region),
        epilogue(product_epilogue(region).program),
        quantized(region.problem().op->kind == OpKind::scaled_mm),
        piece_rows(config.find(piece_rows_field).value_or(usual_piece_rows)) {}
};

void check_onednn(int status) {
  if (status != 0) fail(Status::internal, "oneDNN: expected status 0 of a product, found {}", status);
}

/// sums[rows, columns] of rows of x that are `step` elements apart.
void multiply_quantized(const std::byte* x, std::int64_t step, const std::byte* w, std::int64_t w_step,
                        std::int64_t rows, std::int64_t columns, std::int64_t length, float* sums) {
  const std::int32_t none = 0;
  check_onednn(onednn().gemm_s8s8s32('N', 'T', 'F', rows, columns, length, 1, reinterpret_cast<const std::int8_t*>(x),
                                     step, 0, reinterpret_cast<const std::int8_t*>(w), w_step, 0, 0,
                                     reinterpret_cast<std::int32_t*>(sums), columns, &none));
}
void multiply_floats(const std::byte* x, std::int64_t step, const std::byte* w, std::int64_t w_step, std::int64_t rows,
                     std::int64_t columns, std::int64_t length, float* sums) {
  check_onednn(onednn().sgemm('N', 'T', rows, columns, length, 1, reinterpret_cast<const float*>(x), step,
                              reinterpret_cast<const float*>(w), w_step, 0, sums, columns));
}

/// What the threads of a launch share.
class OneDnnLaunch {
 public:
  OneDnnLaunch(const LaunchArgs& args, const OneDnnPlan& plan)
      : plan_(plan),
        x_(plan.operands(args, 0)),
        w_(plan.operands(args, 1)),
        columns_(w_.shape[0]),
        length_(w_.shape[1]),
        element_(byte_size(w_.dtype)),
        epilogue_(plan.epilogue, args) {}

  std::int64_t rows() const { return x_.count(); }
  std::int64_t columns() const { return columns_; }

  /// Rows [first, last) and columns [begin, end) of the results.
  void run(std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end, float* sums) const {
    const OneDnnAlone alone;
    for (std::int64_t r = first; r < last; r += plan_.piece_rows)
      for (std::int64_t c = begin; c < end; c += piece_columns) {
        const TileRange piece{r, std::min(plan_.piece_rows, last - r), c, std::min(piece_columns, end - c)};
        multiply(piece, sums);
        finish_onednn_sums(epilogue_, piece, sums);
      }
  }

 private:
  void multiply(const TileRange& piece, float* sums) const {
    if (length_ == 0) {  // the bits of an integer's zero, too
      std::fill_n(sums, piece.rows * piece.columns, 0.0F);
      return;
    }
    const std::byte* const w = w_.as<const std::byte>() + piece.column * w_.strides[0] * element_;
    const auto product = plan_.quantized ? multiply_quantized : multiply_floats;
    for (std::int64_t r = 0; r < piece.rows;) {  // as many rows as are the same distance apart
      const std::byte* const x = x_.row(piece.row + r);
      const std::int64_t step = r + 1 < piece.rows ? x_.row(piece.row + r + 1) - x : length_ * element_;
      std::int64_t together = 1;
      while (r + together < piece.rows && step >= length_ * element_ &&
             x_.row(piece.row + r + together) == x + together * step)
        ++together;
      product(x, std::max(step / element_, length_), w, std::max(w_.strides[0], length_), together, piece.columns,
              length_, sums + r * piece.columns);
      r += together;
    }
  }

  const OneDnnPlan& plan_;
  Rows x_;
  TensorView w_;
  std::int64_t columns_, length_, element_;
  TileRun epilogue_;
};

void run_onednn(const LaunchArgs& args, const OneDnnPlan& plan) {
  if (args.outputs[plan.epilogue.first_result()].elements() == 0) return;
  const OneDnnLaunch launch(args, plan);
  const bool by_rows = launch.rows() > launch.columns();
  const std::int64_t total = by_rows ? launch.rows() : launch.columns(), threads = args.pool->size();
  const std::int64_t share = round_up(div_up(total, threads), 16), held = plan.piece_rows * piece_columns;
  args.pool->run([&](int thread) {
    const std::int64_t first = std::min(total, thread * share), last = std::min(total, first + share);
    float* const sums = reinterpret_cast<float*>(args.workspace) + thread * held;
    if (by_rows) launch.run(first, last, 0, launch.columns(), sums);
    else launch.run(0, launch.rows(), first, last, sums);
  });
}

Decline onednn_declines(const Region& region) {
  const Problem& p = region.problem();
  const bool quantized = p.op->kind == OpKind::scaled_mm;
  const DType type = quantized ? DType::i8 : DType::f32;
  for (const std::size_t i : {std::size_t{0}, std::size_t{1}})
    if (p.input(i).dtype != type)
      return fmt::format("{} is {}, not {}", p.input_name(i), name_of(p.input(i).dtype), name_of(type));
  if (!quantized && !std::ranges::all_of(p.input(0).dims, &Dim::is_constant))
    return "the number of rows is not known, and with few of them bits would be others than with many";
  if (quantized && active_isa() < Isa::avx512_vnni) return "its sums of int8 may saturate without byte dot products";
  return onednn_sums_decline(region, quantized);
}

Kernel onednn_kernel(std::string name, OpKind op, std::string summary) {
  return {
      .name = std::move(name),
      .op = op,
      .summary = std::move(summary),
      .fuses = true,
      .declines = onednn_declines,
      .bind = [](const Region& region, const Config& config) -> Launcher {
        return [plan = OneDnnPlan(region, config)](const LaunchArgs& args) { run_onednn(args, plan); };
      },
      .workspace =
          [](const Region& region, const Config& config, int threads) {
            return threads * OneDnnPlan(region, config).piece_rows * piece_columns *
                   static_cast<std::int64_t>(sizeof(float));
          },
      .space =
          [](const Region& region) {
            ConfigSpace space;
            if (max_rows(region.problem(), 0) > 128)
              space.add(ConfigField::set(std::string(piece_rows_field), {128, 512, 2048}).with_usual(usual_piece_rows));
            return space;
          },
  };
}

}  // namespace

extern const Kernel onednn_linear = onednn_kernel(
    "onednn.linear", OpKind::linear,
    "float32 products by oneDNN where it is installed, over the weight as it lies in memory; not modelled, so that "
    "it is taken where it was measured to be the fastest");
extern const Kernel onednn_scaled_mm =
    onednn_kernel("onednn.scaled_mm", OpKind::scaled_mm,
                  "as onednn.linear, int8 without zero points and scales of blocks: the same bits as our own");

}  // namespace cermet::cpu
