#include "kernel/cuda/gemm/stream.hpp"

#include <algorithm>
#include <bit>

#include "base/checked.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/declare.hpp"
#include "kernel/cuda/narrow.hpp"
#include "op/products.hpp"

namespace cermet::cuda {
namespace {

constexpr std::int64_t most_stream_tokens = 64, most_rotated = 32;
/// The tensor cores add fp8 products with about 14 significant bits, so that sums move to float32 registers after every
/// stage (gemm/hopper.cpp).
constexpr std::int64_t shortest_stream_fp8 = 1024, two_slices_fp8 = 2048;
/// KiB of shared memory.
constexpr int default_ring = 160;
constexpr std::int64_t most_item_rows = 192;  ///< of an item, of all its weights

Decline declines_stream_operands(const Problem& p) {
  const DType x = p.input(0).dtype, w = p.input(1).dtype;
  const bool fp8 = dtypes::fp8.contains(x) && dtypes::fp8.contains(w);
  if (!fp8 && (x != w || (x != DType::bf16 && x != DType::f16 && x != DType::i8)))
    return fmt::format("no instruction multiplies {} with {}", name_of(x), name_of(w));
  if (const std::int64_t rows = max_rows(p, 0); rows > most_stream_tokens)
    return fmt::format("up to {} rows: {} would be read for each block", most_stream_tokens, rows);
  const Dim n = p.outputs[0].dims.back(), k = p.input(0).dims.back();
  if (!n.is_constant() || !k.is_constant()) return "N or K is not known beforehand";
  if (n.constant() == 0 || k.constant() == 0) return "N or K is 0";
  if (k.constant() * byte_size(w) % 16 != 0)
    return fmt::format("rows of {} {} do not have whole 16 bytes", k.constant(), name_of(w));
  if (fp8 && k.constant() < shortest_stream_fp8)
    return fmt::format("K is below {}: the tensor cores' sums of fp8 would show", shortest_stream_fp8);
  return std::nullopt;
}

/// Of a product and what follows it.
Decline declines_stream(const Region& region) {
  const Problem& p = region.problem();
  if (p.target->compute_capability != 90) return "needs compute capability 9.0";
  if (Decline reason = declines_stream_operands(p)) return reason;
  const bool rotates = RotatedHeads::end(region);
  if (rotates) {
    if (max_rows(p, 0) == 1) return "the heads of one row are rotated behind a GEMV";
    if (max_rows(p, 0) > most_rotated)
      return fmt::format("more than {} rows are rotated as soon by a launch of its own", most_rotated);
    if (Decline reason = RotatedHeads::declines(region)) return reason;
    if (RotatedHeads(region).most_neighbours() % 8 != 0) return "a head's pairs are not shared out by eights";
  }
  const Region own = rotates ? RotatedHeads::product_of(region) : region;
  if (Decline reason = Product::declines_after(own, GeneralProduct::loops)) return reason;
  const Product product(own, GeneralProduct::loops);
  if (product.blocked) return "scales cover blocks of the reduction";
  if (product.column_sums) return "a zero point needs the sums of the weight's columns";
  if (rotates) return std::nullopt;
  const std::int64_t columns = p.outputs[0].dims.back().constant() / (product.gated ? 2 : 1);
  if (columns * byte_size(product.out) % 16 != 0 ||
      (product.second && columns * byte_size(product.second->out) % 16 != 0))
    return fmt::format("rows of {} results do not have whole 16 bytes", columns);
  return std::nullopt;
}

}  // namespace

Decline StreamProduct::declines(const Region& region) {
  if (region.anchor != 0) return "computes nothing before the product";
  return declines_stream(region);
}

StreamProduct::StreamProduct(const Region& region, const Config& config)
    : heads_(RotatedHeads::end(region) ? std::optional<RotatedHeads>(region) : std::nullopt),
      product_(heads_ ? RotatedHeads::product_of(region) : region, GeneralProduct::loops),
      dtype_x_(region.problem().input(0).dtype),
      dtype_w_(region.problem().input(1).dtype),
      n_(region.problem().outputs[0].dims.back().constant() / (product_.gated ? 2 : 1)),
      k_(region.problem().input(0).dims.back().constant()),
      most_rows_(max_rows(region.problem(), 0)),
      weights_(product_.has_two_weights() ? 2 : 1),
      multiprocessors_(region.problem().target->multiprocessors),
      constant_(region.is_constant(static_cast<std::size_t>(product_.at.w)) &&
                (product_.at.w_up < 0 || region.is_constant(static_cast<std::size_t>(product_.at.w_up)))) {
  if (heads_) {
    rotation_ = heads_->config(region);
    gemv_.emplace(region, Config{{"stream", 0}});
  } else {
    general_.emplace(region, GeneralProduct::Programs::small);
  }
  for (int tokens = 8; shapes_.empty() || shapes_.back().tokens < most_rows_; tokens *= 2)
    shapes_.push_back(shape_of(tokens, config));
}

// Equal shares for all SMs, in as few rounds as leave room for many stages. What was measured
// (docs/notes/gemm-cuda.md): 160 KiB under way are better than two blocks of 112 that overlap, and a stage that is
// filled costs its warp as much as two copies do, so that one has several where they are small.
gemm::StreamShape StreamProduct::shape_of(int tokens, const Config& config) const {
  constexpr int most_stages = 24;
  gemm::StreamShape shape{.rows = 0, .tokens = tokens, .weights = weights_, .slices = 1, .sets = 1, .stages = 0};
  const std::int64_t rounds = config.empty() ? usual_rounds() : config.at("rounds");
  // Of pairs sets and slices are those of the product alone, so that its sums are added in the same order.
  shape.rows = equal_rows(heads_ ? rounds_alone() : rounds);
  shape.sets = shape.groups() == 1 ? 2 : 1;
  shape.rows = item_rows(rounds);
  shape.slices = config.empty() ? usual_slices(shape) : static_cast<int>(config.at("slices"));
  shape.pairs = heads_.has_value();
  const std::int64_t fills =
      div_up(k_ * byte_size(dtype_w_), static_cast<std::int64_t>(shape.slices) * gemm::StreamShape::slice);
  const auto most =
      std::min<std::int64_t>(most_stages, div_up(n_, shape.rows) > multiprocessors_ ? most_stages : fills);
  const int limit = config.empty() ? (tokens > 32 ? 226 : default_ring) : static_cast<int>(config.at("ring"));
  shape.stages = 2 * shape.sets;
  for (gemm::StreamShape more = shape; more.stages < most + shape.sets && more.shared_bytes() <= limit << 10;
       more.stages += more.sets)
    shape = more;
  return shape;
}

// Of pairs, as few rows for the SM that has most as heads allow. A further round takes as long as 16 rows more: 3072
// pairs of 8 tokens in 1 and 3 rounds took 1077 and 1083 us of a step of 8 layers, though the SM with most has 64 rows
// and 48.
std::int64_t StreamProduct::usual_rounds() const {
  constexpr std::int64_t least_rows = 16, round = 16;
  if (!heads_) return rounds_alone();
  std::int64_t best = 1, least = INT64_MAX;
  for (std::int64_t rounds = 1; rounds <= div_up(n_, multiprocessors_ * least_rows); ++rounds) {
    const std::int64_t rows = item_rows(rounds), taken = div_up(div_up(n_, rows), std::int64_t{multiprocessors_});
    if (rows <= most_item_rows && taken * (rows + round) < least) least = taken * (rows + round), best = rounds;
  }
  return best;
}

std::int64_t StreamProduct::rounds_alone() const {
  return div_up(n_, static_cast<std::int64_t>(multiprocessors_) * (most_item_rows / weights_));
}

int StreamProduct::equal_rows(std::int64_t rounds) const {
  return static_cast<int>(round_up(div_up(n_, multiprocessors_ * rounds), std::int64_t{8}));
}

int StreamProduct::item_rows(std::int64_t rounds) const {
  const int rows = equal_rows(rounds);
  if (!heads_) return rows;
  const std::int64_t most = heads_->most_neighbours();
  std::int64_t pairs = 8;
  while (pairs < most && (2 * pairs < rows || most % pairs != 0)) pairs += 8;
  return static_cast<int>(2 * pairs);
}

int StreamProduct::usual_slices(gemm::StreamShape shape) const {
  constexpr int stage_bytes = 16 << 10;
  if (dtypes::fp8.contains(dtype_w_)) return k_ >= two_slices_fp8 ? 2 : 1;
  if (heads_) shape.rows = equal_rows(rounds_alone());
  shape.slices = 1;
  while (shape.slices < 4 && 2 * shape.stage_bytes() <= stage_bytes) shape.slices *= 2;
  return shape.slices;
}

// Warps of a walk have 64 rows at a time.
Config StreamProduct::walk_config() const {
  gemm::StreamShape most = shapes_.back();
  std::int64_t rounds = div_up(n_, std::int64_t{multiprocessors_} * 64);
  while (heads_ && item_rows(rounds) > 64) ++rounds;
  most.rows = item_rows(rounds);
  return {{"rounds", rounds}, {"slices", usual_slices(most)}, {"ring", default_ring}};
}

bool StreamProduct::can_walk(const gemm::StreamShape& shape) const {
  const gemm::StreamShape walk = shape_of(shapes_.back().tokens, walk_config());
  return shape.can_walk() && shape.rows == walk.rows &&
         (shape.slices == usual_slices(shape) || shape.slices == walk.slices);
}

std::vector<Config> StreamProduct::configs() const {
  std::vector<Config> list(1);
  std::int64_t last = 0;
  for (std::int64_t rounds = 1; rounds <= 8 && list.size() < 18; ++rounds) {
    const std::int64_t rows = item_rows(rounds);
    if (rows * weights_ > 256 || rows == last) continue;
    last = rows;
    for (const int slices : {1, 2, 4}) {
      if (dtypes::fp8.contains(dtype_w_) && slices != shapes_.front().slices) continue;
      for (const int ring : {112, 160, 226}) {
        const Config config{{"rounds", rounds}, {"slices", slices}, {"ring", ring}};
        if (shape_of(shapes_.back().tokens, config).shared_bytes() <= ring << 10) list.push_back(config);
      }
    }
  }
  // For a walk: last, because nothing else should take it.
  if (const Config walk = walk_config(); !can_walk(shapes_.front()) && std::ranges::count(list, walk) == 0)
    list.push_back(walk);
  return list;
}

// What 50 products took on an H200 (docs/notes/selection.md): 3000 cycles beside reading from memory at 0.95 of the
// bandwidth, in proportion to the SMs that have rows; or 2.6 cycles for each row of 128 bytes that a block copies. The
// epilogue takes 600 cycles for each further 16 tokens, and nothing less than 8500 in all.
double StreamProduct::seconds(const DeviceLimits& limits) const {
  const gemm::StreamShape& shape = shapes_.back();
  const auto slices =
      static_cast<double>(div_up(k_ * byte_size(dtype_w_), static_cast<std::int64_t>(gemm::StreamShape::slice)));
  const std::int64_t items = div_up(n_, shape.rows), rounds = div_up(items, multiprocessors_);
  const auto rows = static_cast<double>(rounds * (shape.weights * shape.rows + most_rows_));
  const double busy = static_cast<double>(items) / static_cast<double>(rounds * multiprocessors_);
  const double bytes =
      static_cast<double>(k_ * byte_size(dtype_w_)) * static_cast<double>(shape.weights * n_ + most_rows_);
  const double copying = rows * slices * 2.6 / limits.clock_hz,
               reading = bytes / (0.95 * std::max(0.5, busy) * limits.read_bytes_per_second);
  const auto chunks = static_cast<double>(div_up(std::max<std::int64_t>(most_rows_, 1), shape.chunk()));
  return std::max(8500 / limits.clock_hz, (2400 + 600 * chunks) / limits.clock_hz + std::max(copying, reading));
}

Program StreamProduct::program(const gemm::StreamShape& shape) const {
  const GeneratedType epilogue = product_.epilogue();
  const gemm::StreamConfig config{.x = dtype_x_,
                                  .w = dtype_w_,
                                  .n = static_cast<int>(n_),
                                  .k = static_cast<int>(k_),
                                  .shape = shape,
                                  .preload_w = constant_,
                                  .promote = dtypes::fp8.contains(dtype_w_)};
  const std::string rotation =
      heads_ ? fmt::format(", cermet::gemm::RotateAndCache<cermet::rotation::Config{}>", config_text(rotation_)) : "";
  const std::string include = heads_ ? "#include \"kernel/cuda/device/gemm/stream_pairs.cuh\"\n" : "";
  constexpr int half = 113 * 1024;
  std::optional<Walk> walk;
  if (can_walk(shape))
    walk = Walk{.stage_bytes = shape.weight_stage_bytes(),
                .ring_bytes = std::int64_t{shape.stages} * shape.stage_bytes(),
                .body_bytes = shape.walk_bytes(),
                .feeding_threads = 64};
  const bool two_fit =
      shape.shared_bytes() <= half && shape.threads() <= 320 && shape.tokens <= 32;  // more leave no registers for two
  return {.header = "kernel/cuda/device/gemm/stream.cuh",
          .task = fmt::format("cermet::gemm::Stream<cermet::gemm::StreamConfig{}, {}{}>", config_text(config),
                              epilogue.name, rotation),
          .prelude = include + epilogue.source,
          .threads = shape.threads(),
          .shared_bytes = shape.shared_bytes(),
          .min_blocks = two_fit ? 2 : 1,
          .alternates = true,
          .walk = walk};
}

std::vector<Program> StreamProduct::programs() const {
  std::vector<Program> list;
  for (const gemm::StreamShape& shape : shapes_) list.push_back(program(shape));
  for (Program& program : as_fallbacks(gemv_ ? gemv_->programs() : general_->programs()))
    list.push_back(std::move(program));
  return list;
}

// ---- Launches

struct StreamProduct::View {
  std::int64_t m = 0, x_stride = 0, y_stride = 0, second_stride = 0, w_stride = 0, up_stride = 0;  ///< elements
  std::array<epilogue::Operand, epilogue::most_extras> extra{};
};

std::optional<StreamProduct::View> StreamProduct::view_of(const LaunchArgs& args) const {
  const ProductRows rows = product_.rows(args, y(args));
  if (rows.axes.rank > 1) return std::nullopt;
  View view;
  view.m = rows.axes.m();
  // A single row has no step, but a copy wants one.
  view.x_stride = view.m > 1 ? rows.row(ProductRows::X) : k_;
  view.y_stride = rows.row(ProductRows::Y);
  view.second_stride = rows.row(ProductRows::SECOND);
  view.w_stride = n_ > 1 ? w(args).strides[0] : k_;
  if (const TensorView up = product_.second_weight(args); up.present) view.up_stride = n_ > 1 ? up.strides[0] : k_;
  for (std::size_t i = 0; i < product_.extras().size(); ++i) {
    view.extra[i] = product_.operand(args, i);
    view.extra[i].row = rows.row(ProductRows::EXTRA + i);
  }
  return fits(args, view) ? std::optional(view) : std::nullopt;
}

/// Whether addresses and strides are what copies of 16 bytes need.
bool StreamProduct::fits(const LaunchArgs& args, const View& view) const {
  const auto suits = [](const TensorView& operand, std::int64_t stride) {
    const std::int64_t bytes = stride * byte_size(operand.dtype);
    return reinterpret_cast<std::uintptr_t>(operand.data) % 16 == 0 && bytes % 16 == 0;
  };
  const TensorView up = product_.second_weight(args);
  return view.x_stride != 0 && view.w_stride != 0 && suits(x(args), view.x_stride) && suits(w(args), view.w_stride) &&
         (heads_ || suits(args.outputs[product_.y], view.y_stride)) &&
         (!up.present || (view.up_stride != 0 && suits(up, view.up_stride))) &&
         (!product_.second || suits(args.outputs[product_.second->y], view.second_stride));
}

gemm::StreamRotatedParams StreamProduct::params(const LaunchArgs& args, const View& view,
                                                const gemm::StreamShape& shape) const {
  const auto map_of = [&](const TensorView& operand, std::int64_t rows, std::int64_t stride, std::int64_t box_rows) {
    const auto width = static_cast<std::uint32_t>(gemm::StreamShape::slice / size_of(operand.dtype));
    return std::bit_cast<TensorMapBytes>(
        args.queue->device().tensor_map({operand.data, operand.dtype, rows, k_, stride,
                                         static_cast<std::uint32_t>(box_rows), width, gemm::StreamShape::slice}));
  };
  gemm::StreamRotatedParams p{};
  p.w = map_of(w(args), n_, view.w_stride, shape.pairs ? shape.rows / 2 : shape.rows);
  if (const TensorView up = product_.second_weight(args); up.present)
    p.w_up = map_of(up, n_, view.up_stride, shape.rows);
  p.x = map_of(x(args), view.m, view.x_stride, view.m);
  if (heads_) heads_->set(args, p);
  p.y = y(args).data;
  p.y_stride = view.y_stride;
  if (product_.second) p.second = args.outputs[product_.second->y].data;
  p.second_stride = view.second_stride;
  p.m = narrow(view.m, "product", "rows");
  std::ranges::copy(view.extra, p.extra);
  return p;
}

void StreamProduct::launch(const LaunchArgs& args) const {
  if (y(args).elements() == 0) return;
  const std::optional<View> view = view_of(args);
  if (!view) return gemv_ ? gemv_->launch(args, shapes_.size()) : general_->launch(args, shapes_.size());
  const auto found =
      std::ranges::find_if(shapes_, [&](const gemm::StreamShape& shape) { return view->m <= shape.tokens; });
  const auto program = static_cast<std::size_t>(found - shapes_.begin());
  const gemm::StreamShape& shape = shapes_[program];
  const gemm::StreamRotatedParams p = params(args, *view, shape);
  if (gemv_) args.queue->run(program, items(shape), p, multiprocessors_);
  else args.queue->run(program, items(shape), static_cast<const gemm::StreamParams&>(p), multiprocessors_);
  OperandUse use;
  if (constant_) use.early = {&w(args), product_.given(args, product_.at.w_up)};
  declare_operands(args, use);
}

}  // namespace cermet::cuda

// ---- Kernels

namespace cermet::cuda::gemm_stream_kernels_file {
namespace {

Kernel kernel(const char* name, OpKind op, double model_error) {
  Kernel kernel = product_kernel(
      name, op,
      "up to 64 rows on Hopper: weights stream once through the tensor cores, where rows of x are the columns of wgmma",
      [](const Region& region, const Config& config) { return StreamProduct(region, config); });
  kernel.model_error = {.recorded = model_error};
  return kernel;
}

}  // namespace

extern const Kernel gemm_linear_stream, gemm_dual_linear_stream, gemm_scaled_mm_stream;
const Kernel gemm_linear_stream = kernel("gemm.linear.stream", OpKind::linear, 0.15);
const Kernel gemm_dual_linear_stream = kernel("gemm.dual_linear.stream", OpKind::dual_linear, 0.15);
const Kernel gemm_scaled_mm_stream = kernel("gemm.scaled_mm.stream", OpKind::scaled_mm, 0.2);

}  // namespace cermet::cuda::gemm_stream_kernels_file
