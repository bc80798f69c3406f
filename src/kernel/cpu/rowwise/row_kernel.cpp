#include "kernel/cpu/rowwise/row_kernel.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "base/checked.hpp"
#include "kernel/cpu/rowwise/row_passes.hpp"
#include "kernel/cpu/rowwise/row_steps.hpp"

namespace cermet::cpu {
namespace {

constexpr auto most_values = static_cast<std::int64_t>(BoundTileProgram::most_values),
               least_columns = static_cast<std::int64_t>(BoundTileProgram::least_columns);
constexpr std::int64_t most_rows = most_values / least_columns,
                       most_kept = 32768;  // the last: float32 of rows that are kept between passes
constexpr std::size_t most_reductions = 3;

/// A region as it was bound.
struct RowRegion {
  RowProgram program;
  RowPasses keeping, forgetting;
  QuantizedFormat format;

  explicit RowRegion(const Region& region)
      : program(row_program(region).program),
        keeping(row_passes(program, true)),
        forgetting(row_passes(program, false)) {
    if (program.quantization) format = quantized_format(region.nodes[program.quantization->node].problem.attributes);
  }
};

/// Dimensions of the rows of a launch.
Shape rows_of(const RowProgram& p, const LaunchArgs& args) {
  if (p.quantization) return args.outputs[p.quantization->results[0]].shape;
  for (std::size_t r = 0; r < p.tile.results.size(); ++r)
    if (!p.results_by_row[r]) return args.outputs[p.tile.results[r].result].shape;
  Shape shape = args.outputs[p.tile.results[0].result].shape;
  for (const TileProgram::Extra& extra : p.tile.extras)
    if (extra.extent == TileProgram::Extent::element || extra.extent == TileProgram::Extent::column)
      shape[shape.rank() - 1] = args.inputs[extra.operand].shape.back();
  return shape;
}

/// The programs of one launch, which threads share.
class RowRun {
 public:
  using Pass = RowPasses::Pass;

  RowRun(const RowRegion& region, const LaunchArgs& args)
      : p_(region.program),
        shape_(rows_of(p_, args)),
        columns_(shape_.back()),
        format_(region.format),
        steps_(row_steps()) {
    for (int axis = 0; axis + 1 < shape_.rank(); ++axis) rows_ *= shape_[axis];
    tile_columns_ = std::clamp<std::int64_t>(columns_, 1, most_values);
    tile_rows_ = std::max<std::int64_t>(1, std::min(rows_, most_values / std::max(tile_columns_, least_columns)));
    kept_step_ = round_up(columns_, static_cast<std::int64_t>(TileOperand::repeated));
    const auto kept = static_cast<std::int64_t>(region.keeping.kept.size());
    passes_ = kept * tile_rows_ * kept_step_ <= most_kept ? &region.keeping : &region.forgetting;
    for (const Pass& pass : passes_->reductions) add(pass, args);
    if (passes_->quantized) add(*passes_->quantized, args);
    add(passes_->row_values, args);
    if (passes_->results) add(*passes_->results, args);
    if (passes_->by_row) add(*passes_->by_row, args);
    if (p_.quantization) open_quantized(args);
  }

  std::int64_t blocks() const { return rows_ == 0 ? 0 : div_up(rows_, tile_rows_); }
  void run(std::int64_t first, std::int64_t end) const;

 private:
  static constexpr std::size_t most_runs = 2 * (most_reductions + 2) + RowPasses::most_inputs;
  struct Thread;
  /// Memory for a run that is not touched before it is made.
  union Run {
    Run() {}  // NOLINT(modernize-use-equals-default): that would leave no constructor
    TileRun run;
  };
  static_assert(std::is_trivially_destructible_v<TileRun>);
  void add(const BoundTileProgram& program, const LaunchArgs& args) {
    new (&runs_.at(count_++).run) TileRun(program, args, shape_);
  }
  void add(const std::vector<RowPasses::RowValue>& values, const LaunchArgs& args) {
    for (const auto& value : values) add(value.program, args);
  }
  void add(const Pass& pass, const LaunchArgs& args) {
    add(pass.row_values, args);
    add(pass.program, args);
  }
  void open_quantized(const LaunchArgs& args) {
    const std::vector<std::size_t>& results = p_.quantization->results;
    const int trailing = format_.group != 0 ? 1 : 0;
    for (std::size_t i = 0; i < results.size(); ++i)
      quantized_[i].emplace(args.outputs[results[i]], i == 0 ? 1 : trailing);
  }

  const RowProgram& p_;
  Shape shape_;
  std::int64_t columns_, rows_ = 1, tile_columns_ = 1, tile_rows_ = 1, kept_step_ = 0;
  const RowPasses* passes_;
  QuantizedFormat format_;
  RowSteps steps_;
  std::array<Run, most_runs> runs_;  ///< in the order in which they run
  std::size_t count_ = 0;
  std::array<std::optional<Rows>, 3> quantized_;  ///< values, scales, zero points
};

/// What one thread holds, and the block of rows that it is at.
struct RowRun::Thread {
  const RowRun& all;
  std::int64_t row = 0, rows = 0;
  std::size_t next = 0;  ///< of the runs
  TileRun::Memory memory;
  std::array<TileOperand, RowPasses::most_inputs> inputs{};
  alignas(64) float of_rows[RowPasses::most_inputs][most_rows][TileOperand::repeated];
  alignas(64) float tile[BoundTileProgram::most_values];
  RowPart parts[most_rows];
  alignas(64) float kept[most_kept];

  explicit Thread(const RowRun& run) : all(run) {}

  const TileRun& take() { return all.runs_[next++].run; }
  template <class Body>
  void for_tiles(Body&& body) {
    for (std::int64_t column = 0; column < all.columns_; column += all.tile_columns_)
      body(column, std::min(all.tile_columns_, all.columns_ - column));
  }

  float* kept_at(std::size_t input) {
    const auto place = std::ranges::find(all.passes_->kept, input) - all.passes_->kept.begin();
    return kept + place * all.tile_rows_ * all.kept_step_;
  }
  /// Kept inputs from a column on.
  void look_at(std::int64_t column) {
    for (const std::size_t input : all.passes_->kept)
      inputs[input] = {kept_at(input) + column, static_cast<std::size_t>(all.kept_step_), 1};
  }
  void set(std::size_t input, std::int64_t r, float value) {
    std::ranges::fill(of_rows[input][r], value);
    inputs[input] = {of_rows[input][0], TileOperand::repeated, 0};
  }

  void compute(const std::vector<RowPasses::RowValue>& values) {
    for (const auto& value : values) {
      const TileOperand made = take().value(inputs.data(), {row, rows, 0, 1}, memory,
                                            {tile, TileOperand::repeated, static_cast<std::size_t>(rows), 1});
      for (std::int64_t r = 0; r < rows; ++r)
        set(value.input, r, made.data[static_cast<std::size_t>(r) * made.row_step]);
    }
  }

  /// Calls use(r, values, columns) for the rows of the tiles of a pass.
  template <class Use>
  void pass(const Pass& what, Use&& use) {
    compute(what.row_values);
    const TileRun& run = take();
    for_tiles([&](std::int64_t column, std::int64_t columns) {
      look_at(column);
      TileTarget to{tile, static_cast<std::size_t>(columns), static_cast<std::size_t>(rows),
                    static_cast<std::size_t>(columns)};
      if (what.kept) to.data = kept_at(*what.kept) + column, to.row_step = static_cast<std::size_t>(all.kept_step_);
      const TileOperand made = run.value(inputs.data(), {row, rows, column, columns}, memory, to);
      CERMET_ASSERT(!what.kept || made.data == to.data);
      for (std::int64_t r = 0; r < rows; ++r)
        use(r, made.data + static_cast<std::size_t>(r) * made.row_step, static_cast<std::size_t>(columns));
    });
  }

  void reduce(std::size_t i) {
    const RowProgram::Reduction& reduction = all.p_.reductions[i];
    for (std::int64_t r = 0; r < rows; ++r) all.steps_.begin(reduction.kind, parts[r]);
    pass(all.passes_->reductions[i], [&](std::int64_t r, const float* values, std::size_t columns) {
      all.steps_.reduce(reduction.kind, values, columns, parts[r]);
    });
    for (std::int64_t r = 0; r < rows; ++r)
      set(i, r, all.steps_.end(reduction.kind, parts[r], all.columns_, reduction.eps));
  }

  QuantizedRow quantized_row(std::int64_t r) const {
    const auto& to = all.quantized_;
    return {to[0]->row(row + r), reinterpret_cast<float*>(to[1]->row(row + r)),
            to[2] ? reinterpret_cast<std::int32_t*>(to[2]->row(row + r)) : nullptr};
  }
  void quantize(const Pass& what) {
    const auto length = static_cast<std::size_t>(all.columns_);
    if (what.kept) {
      pass(what, [](std::int64_t, const float*, std::size_t) {});
      for (std::int64_t r = 0; r < rows; ++r) {
        float* const values = kept_at(*what.kept) + r * all.kept_step_;
        const auto read = [](void* at, std::size_t first, std::size_t) -> const float* {
          return static_cast<const float*>(at) + first;
        };
        all.steps_.quantize({values, read}, length, all.format_, quantized_row(r));
      }
      return;
    }
    compute(what.row_values);
    One one{*this, take(), 0};
    for (; one.r < rows; ++one.r) all.steps_.quantize({&one, One::read}, length, all.format_, quantized_row(one.r));
  }
  /// Computes the values of one row whenever they are asked for.
  struct One {
    Thread& thread;
    const TileRun& run;
    std::int64_t r;
    static const float* read(void* state, std::size_t first, std::size_t count) {
      const One& one = *static_cast<One*>(state);
      const auto column = static_cast<std::int64_t>(first), columns = static_cast<std::int64_t>(count);
      one.thread.look_at(column);
      std::array<TileOperand, RowPasses::most_inputs> inputs = one.thread.inputs;
      for (TileOperand& input : inputs)
        if (input.data) input.data += static_cast<std::size_t>(one.r) * input.row_step;
      return one.run
          .value(inputs.data(), {one.thread.row + one.r, 1, column, columns}, one.thread.memory,
                 {one.thread.tile, count, 1, count})
          .data;
    }
  };

  void run(std::int64_t block) {
    next = 0;
    row = block * all.tile_rows_;
    rows = std::min(all.tile_rows_, all.rows_ - row);
    for (std::size_t i = 0; i < all.passes_->reductions.size(); ++i) reduce(i);
    if (all.passes_->quantized) quantize(*all.passes_->quantized);
    compute(all.passes_->row_values);
    if (all.passes_->results) {  // last: they may overwrite what was read
      const TileRun& results = take();
      for_tiles([&](std::int64_t column, std::int64_t columns) {
        look_at(column);
        results(inputs.data(), {row, rows, column, columns});
      });
    }
    if (all.passes_->by_row) take()(inputs.data(), {row, rows, 0, 1});
  }
};

void RowRun::run(std::int64_t first, std::int64_t end) const {
  Thread thread(*this);
  for (std::int64_t block = first; block < end; ++block) thread.run(block);
}

void launch(const RowRegion& region, const LaunchArgs& args) {
  const RowRun run(region, args);
  args.pool->parallel_for(run.blocks(), 1, [&](std::int64_t first, std::int64_t end) { run.run(first, end); });
}

Decline declines_rows(const Region& region) {
  RowProgramOrReason made = row_program(region);
  if (made.reason) return made.reason;
  const RowProgram& program = made.program;
  if (program.reductions.size() > most_reductions)
    return fmt::format("reduces its rows {} times, at most {} in one launch", program.reductions.size(),
                       most_reductions);
  if (program.trailing > 1) return "its rows are several dimensions";
  return declines_row_passes(program);
}

Launcher bind_rows(const Region& region) {
  return [bound = std::make_shared<const RowRegion>(region)](const LaunchArgs& args) { launch(*bound, args); };
}

}  // namespace

Kernel row_kernel(std::string name, OpKind op, std::string summary) {
  return {.name = std::move(name),
          .op = op,
          .summary = std::move(summary),
          .fuses = true,
          .declines = declines_rows,
          .bind = bind_rows};
}

Kernel with_row_regions(Kernel kernel) {
  kernel.fuses = true;
  kernel.declines = [single = kernel.declines](const Region& region) {
    return region.is_single() ? single(region) : declines_rows(region);
  };
  kernel.bind = [single = kernel.bind](const Region& region) {
    return region.is_single() ? single(region) : bind_rows(region);
  };
  return kernel;
}

}  // namespace cermet::cpu
