// all_reduce, what elementwise operators make of the sum, and the norm or the quantization of the rows that follows:
// one launch, over peer memory.
#include "kernel/cuda/device/peer/rows.hpp"
#include "base/checked.hpp"
#include "kernel/communicator.hpp"
#include "kernel/cuda/config_text.hpp"
#include "kernel/cuda/peer/all_reduce_prologue.hpp"
#include "kernel/cuda/peer/group_memory.hpp"
#include "kernel/cuda/peer/reduction.hpp"
#include "kernel/cuda/rowwise/row_region_kernel.hpp"
#include "kernel/row_program.hpp"
#include "op/reduction.hpp"

namespace cermet::cuda::peer_rows_file {
namespace {

/// Rows at most: one for each channel of ranks with a GPU each. Of more bytes, a rank that reduces a share of them
/// moves less data (docs/notes/collectives.md).
constexpr std::int64_t most_rows = peer::most_channels, most_bytes = 512 << 10;

/// So that the next launch's block finds room on the SM, too: a product's 288 threads with 96 registers each.
constexpr int widest_threads = 512, registers_beside_products = 72;

std::int64_t dense_bytes_of(const TensorType& type, const SymbolValues& sizes) {
  std::int64_t bytes = byte_size(type.dtype);
  for (const Dim& dim : type.dims) bytes *= dim.value(sizes);
  return bytes;
}

/// Elements of a row, and of a vector that they consist of.
std::int64_t row_length(const Problem& sum) { return sum.input(0).dims.back().constant(); }
int width_of(const Problem& sum) {
  auto width = static_cast<int>(16 / size_of(sum.input(0).dtype));
  while (row_length(sum) % width != 0) width /= 2;
  return width;
}

Decline declines(const Kernel& rows, const Region& region) {
  const std::optional<AllReducePrologue> parts = all_reduce_prologue(region);
  if (!parts) return "has no all_reduce of a rank's operand in front";
  const TensorType& x = parts->sum.input(0);
  if (x.rank() != 2 || !x.dims[1].is_constant())
    return fmt::format("sums {}, not rows of constant length", x.to_string());
  if (!dtypes::real.contains(x.dtype)) return fmt::format("sums {}", name_of(x.dtype));
  if (parts->sum.attributes.integer("ranks") > peer::most_ranks)
    return fmt::format("more than {} ranks", peer::most_ranks);
  if (const std::int64_t most = x.dims[0].value(region.maximum()); most > most_rows)
    return fmt::format("up to {} rows, at most {}", most, most_rows);
  if (const std::int64_t most = dense_bytes_of(x, region.maximum()); most > most_bytes)
    return fmt::format("up to {} bytes, at most {}", most, most_bytes);
  if (parts->rows.is_single() && parts->rows.problem().op->kind == OpKind::all_reduce) return "reduces no rows";
  return rows.declines(parts->rows);
}

/// Where the row region reads the sum: its operand of the launch, and whether shared memory can stand in for it. It
/// cannot where the sum is read in another way than row by row, nor where a result overwrites it, which kernels load as
/// global memory.
struct SumOperand {
  std::size_t operand = 0;
  bool can_be_shared = false;
};
SumOperand sum_operand(const AllReducePrologue& parts) {
  const RowProgram program = row_program(parts.rows).program;
  const auto& extras = program.tile.extras;
  const auto reads_sum = [&](const TileProgram::Extra& extra) { return extra.operand == parts.operand; };
  const auto first = std::ranges::find_if(extras, reads_sum);
  CERMET_ASSERT(first != extras.end());
  const auto operand = static_cast<std::size_t>(first - extras.begin());
  const bool by_row = std::ranges::all_of(extras, [&](const TileProgram::Extra& extra) {
    return !reads_sum(extra) || (extra.extent == TileProgram::Extent::element && !extra.takes_part());
  });
  return {operand, by_row && program.overwritten != operand && program.trailing == 1};
}

std::vector<Program> programs(const Kernel& rows, const Region& region, const Config& config) {
  const AllReducePrologue parts = *all_reduce_prologue(region);
  std::vector<Program> list = rows.programs(parts.rows, config);
  const Reduction reduction = reduction_from_name(parts.sum.attributes.text("reduction"));
  const auto ranks = static_cast<int>(parts.sum.attributes.integer("ranks"));
  const SumOperand sum = sum_operand(parts);
  for (Program& program : list) {
    const std::int64_t offset = (program.shared_bytes + 15) / 16 * 16;
    program.header = "kernel/cuda/device/peer/rows.cuh";
    const peer::SummedOperand operand{.operand = static_cast<int>(sum.operand),
                                      .shared_offset = sum.can_be_shared ? static_cast<int>(offset) : -1,
                                      .leaves = parts.result.has_value()};
    program.task = fmt::format("cermet::peer::Rows<{}, {}, cermet::peer::SummedOperand{}>", program.task,
                               peer_reduction_config(parts.sum.input(0).dtype, reduction, ranks, width_of(parts.sum)),
                               config_text(operand));
    if (sum.can_be_shared) program.shared_bytes = offset + peer::summed_bytes;
    program.min_blocks = 1;
    if (program.threads == widest_threads && *program.held_columns > 0) {
      program.registers = registers_beside_products;
      program.may_spill = true;  // a word
    }
    program.held_columns.reset();  // items are channels
  }
  return list;
}

/// Those without clusters: a channel is one block.
std::vector<Config> configs(const Kernel& rows, const Region& region) {
  const Region reduced = all_reduce_prologue(region)->rows;
  std::vector<Config> list = rows.configs(reduced);
  std::erase_if(list, [&](const Config& config) {
    return std::ranges::any_of(rows.programs(reduced, config), [](const Program& p) { return p.cluster != 1; });
  });
  return list;
}

class Bound {
 public:
  Bound(const Kernel& rows, const Region& region, const Config& config)
      : parts_(*all_reduce_prologue(region)),
        rows_(rows.bind(parts_.rows, config)),
        length_(row_length(parts_.sum)),
        width_(width_of(parts_.sum)) {
    for (const Program& program : rows.programs(parts_.rows, config))
      shapes_.push_back({{}, program.threads, program.cluster, program.shared_bytes});
  }

  void operator()(const LaunchArgs& args) const {
    const TensorView& x = args.inputs[parts_.operand];
    require(x.is_dense(), "all_reduce: expected a dense operand on a GPU, found {} with strides", x.type().to_string());
    if (x.elements() == 0) return;
    for (const std::span<const TensorView> views :
         {args.inputs, args.outputs})  // by which rows are shared out, alike on every rank
      for (const TensorView& view : views)
        require(!view.present || reinterpret_cast<std::uintptr_t>(view.data) % 16 == 0,
                "all_reduce in front of {}: expected operands aligned to 16 bytes, found {}",
                parts_.rows.problem().op->name, view.data);
    // The row region as it would be launched, on the sum.
    TensorView sum = x;
    sum.data = parts_.result ? args.outputs[*parts_.result].data : args.workspace;
    std::vector<TensorView> inputs(args.inputs.begin(), args.inputs.end()), outputs;
    inputs[parts_.operand] = sum;
    for (std::size_t r = 0; r < args.outputs.size(); ++r)
      if (parts_.results[r]) outputs.push_back(args.outputs[r]);
    Plan plan;
    const TaskQueue queue(args.queue->device(), plan, shapes_);
    LaunchArgs on_sum = args;
    on_sum.inputs = inputs;
    on_sum.outputs = outputs;
    on_sum.queue = &queue;
    rows_(on_sum);
    CERMET_ASSERT(plan.launches().size() == 1);
    const Launch& launch = plan.launches()[0];
    peer::RowsParams params{};
    CERMET_ASSERT(plan.parameters(launch).size() == sizeof(params.region));
    std::memcpy(&params.region, plan.parameters(launch).data(), sizeof(params.region));
    const GroupMemory memory(args, parts_.sum.to_string(), static_cast<int>(parts_.sum.attributes.integer("ranks")));
    params.link = memory.link;
    params.x = x.data;
    params.sum = sum.data;
    params.row_units = length_ / width_;
    params.items = launch.items;
    read_ahead(args, x.shape[0], params);
    params.channels = static_cast<std::uint32_t>(std::min<std::int64_t>(launch.items, memory.channels));
    args.queue->run(launch.program, params.channels, params);
  }

 private:
  /// Operands other than the sum: those of an item's rows, and those that all rows have.
  void read_ahead(const LaunchArgs& args, std::int64_t rows, peer::RowsParams& params) const {
    constexpr std::int64_t most_ahead = 64 << 10;
    const std::int64_t rows_each = (rows + params.items - 1) / params.items;
    int next = 0;
    for (std::size_t i = 0; i < args.inputs.size() && next < peer::most_ahead; ++i) {
      const TensorView& view = args.inputs[i];
      if (i == parts_.operand || !view.present || !view.is_dense() || view.elements() == 0) continue;
      const bool by_row = view.shape.rank() > 1;
      if (by_row && view.shape[0] != rows) continue;
      const std::int64_t bytes = dense_bytes(view.dtype, view.shape), each = by_row ? bytes / rows * rows_each : bytes;
      if (each > most_ahead || (by_row && rows % rows_each != 0))
        continue;  // an item of fewer rows would read past the operand
      params.ahead[next++] = {static_cast<const char*>(view.data), by_row ? each : 0, static_cast<std::uint32_t>(each)};
    }
  }

  AllReducePrologue parts_;
  Launcher rows_;
  std::vector<LoadedProgram> shapes_;  ///< of the row region's programs, without functions: its launch is only read
  std::int64_t length_;
  int width_;
};

Kernel make(const char* name, OpKind op) {
  const Kernel rows = row_kernel(name, op, "");
  return {
      .name = name,
      .op = op,
      .summary =
          "behind an all_reduce over memory that the ranks' GPUs address: a block exchanges whole rows, sums them and "
          "goes on with them",
      .fuses = true,
      .communicates = true,
      .declines = [rows](const Region& region) { return declines(rows, region); },
      .bind = [rows](const Region& region, const Config& config) -> Launcher { return Bound(rows, region, config); },
      .workspace = [](const Region& region, int) -> std::int64_t {
        const AllReducePrologue parts = *all_reduce_prologue(region);
        return parts.result ? 0 : dense_bytes_of(parts.sum.input(0), region.maximum());
      },
      .programs = [rows](const Region& region, const Config& config) { return programs(rows, region, config); },
      .configs = [rows](const Region& region) { return configs(rows, region); }};
}

}  // namespace

extern const Kernel peer_rms_norm, peer_add_rms_norm, peer_rms_norm_quant, peer_add_rms_norm_quant, peer_layer_norm,
    peer_dynamic_quant;
const Kernel peer_rms_norm = make("peer.rms_norm", OpKind::rms_norm);
const Kernel peer_add_rms_norm = make("peer.add_rms_norm", OpKind::add_rms_norm);
const Kernel peer_rms_norm_quant = make("peer.rms_norm_quant", OpKind::rms_norm_quant);
const Kernel peer_add_rms_norm_quant = make("peer.add_rms_norm_quant", OpKind::add_rms_norm_quant);
const Kernel peer_layer_norm = make("peer.layer_norm", OpKind::layer_norm);
const Kernel peer_dynamic_quant = make("peer.dynamic_quant", OpKind::dynamic_quant);

}  // namespace cermet::cuda::peer_rows_file
