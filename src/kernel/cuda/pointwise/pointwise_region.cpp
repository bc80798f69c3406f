#include "kernel/cuda/pointwise/pointwise_region.hpp"

#include "base/checked.hpp"
#include "kernel/cuda/device/pointwise/region_task.hpp"
#include "kernel/cuda/pointwise/pointwise.hpp"
#include "kernel/cuda/step_source.hpp"
#include "kernel/region_views.hpp"
#include "kernel/step_builder.hpp"

namespace cermet::cuda {
namespace {

constexpr std::size_t most_operands = pointwise::most_operands;
static_assert(most_operands <= StridedTiles::most_operands);

std::string element(DType dtype) { return fmt::format("Element<{}>", device_name(dtype)); }

/// One number for everything is not repeated for the places of a vector.
bool is_scalar(const TileProgram::Extra& extra) { return extra.extent == TileProgram::Extent::scalar; }

/// Bytes of the widest element, and of all that a thread loads for one element of the results.
struct ElementBytes {
  std::size_t widest = 1, loaded = 0;

  explicit ElementBytes(const TileProgram& program) {
    for (const auto& extra : program.extras) {
      if (is_scalar(extra)) continue;
      widest = std::max(widest, size_of(extra.dtype));
      loaded += size_of(extra.dtype);
    }
    for (const auto& result : program.results) widest = std::max(widest, size_of(result.dtype));
  }
};

/// Blocks on an SM: what a thread has loaded must fit beside what it computes with.
int min_blocks_of(const TileProgram& program, int width) {
  const std::size_t registers =
      ElementBytes(program).loaded * static_cast<std::size_t>(width) * 2 / 4;  // of two vectors
  return registers <= 24 ? 3 : registers <= 48 ? 2 : 1;
}

std::string prelude(const TileProgram& program) {
  std::string members, loads, values, results, stores, assignments;
  for (std::size_t i = 0; i < program.extras.size(); ++i) {
    const std::string type = element(program.extras[i].dtype);
    const bool scalar = is_scalar(program.extras[i]);
    members += scalar ? fmt::format("    {} x{};\n", type, i) : fmt::format("    Vector<{}, Width> x{};\n", type, i);
    loads += scalar ? fmt::format("    raw.x{0} = *static_cast<const {1}*>(operands[{0}].rows.data);\n", i, type)
                    : fmt::format("    raw.x{0} = load_tile<{1}>(operands[{0}], coord);\n", i, type);
    const std::string value = fmt::format("raw.x{}{}", i, scalar ? "" : "[k]");
    values += program.extras[i].dtype == DType::i32 ? fmt::format("      const int32_t x{} = {};\n", i, value)
                                                    : fmt::format("      const float x{} = to_float({});\n", i, value);
  }
  for (std::size_t i = 0; i < program.results.size(); ++i) {
    const TileProgram::Result& result = program.results[i];
    results += fmt::format("    Vector<{}, Coord::width> y{};\n", element(result.dtype), i);
    assignments += fmt::format("      y{}[k] = {};\n", i, result_source(program, result));
    stores += fmt::format("    store_tile(operands[{}], coord, y{});\n", program.extras.size() + i, i);
  }
  return fmt::format(R"(namespace cermet::pointwise {{
namespace {{

// {}
struct Body {{
  template <int Width>
  struct Raw {{
{}  }};
  template <class Coord>
  static CERMET_DEVICE Raw<Coord::width> load(const TileOperand* operands, const Coord& coord) {{
    Raw<Coord::width> raw;
{}    return raw;
  }}
  template <class Coord>
  static CERMET_DEVICE void store(const TileOperand* operands, const Coord& coord, const Raw<Coord::width>& raw) {{
{}#pragma unroll
    for (int k = 0; k < Coord::width; ++k) {{
{}{}{}    }}
{}  }}
}};

}}  // namespace
}}  // namespace cermet::pointwise
)",
                     program.to_string(), members, loads, results, values, step_source(program, "      "), assignments,
                     stores);
}

std::vector<Program> programs(const Region& region, const Config& config) {
  const TileProgram program = pointwise_program(region).program;
  const int width = tile_width(ElementBytes(program).widest);
  std::vector<Program> list = tile_programs(
      "kernel/cuda/device/pointwise/region_task.cuh",
      [&](Tiling tiling) {
        return fmt::format("cermet::pointwise::RegionTask<cermet::pointwise::Body, {}, {}>", name_of(tiling), width);
      },
      TileChoice(config, min_blocks_of(program, width)));
  for (Program& p : list) p.prelude = prelude(program);
  return list;
}

Launcher bind(const Region& region, const Config& config) {
  const TileProgram program = pointwise_program(region).program;
  struct Operand {
    std::size_t index;
    bool by_token;
    SeenAxes axes;
  };
  std::vector<Operand> operands;
  const RegionViews seen_as(region);
  for (const TileProgram::Extra& extra : program.extras)
    operands.push_back({extra.operand, extra.extent == TileProgram::Extent::row && goes_by_token(region, extra.operand),
                        seen_as.operands[extra.operand]});
  return [operands, results = program.results.size(), width = tile_width(ElementBytes(program).widest),
          vectors = TileChoice(config).vectors](const LaunchArgs& args) {
    std::array<TensorView, most_operands> views;
    std::array<const TensorView*, most_operands> given{};
    std::size_t count = 0;
    for (const Operand& operand : operands) {
      views[count] = seen(args.inputs[operand.index], operand.axes);
      if (operand.by_token) {
        views[count].shape.push_back(1);
        views[count].strides.push_back(1);
      }
      given[count] = &views[count];
      ++count;
    }
    for (std::size_t i = 0; i < results; ++i) given[count++] = &args.outputs[i];
    const StridedTiles strided(std::span(given.data(), count), width, vectors);
    pointwise::RegionParams params{strided.tiles().shape, {}};
    for (std::int64_t launch = 0; launch < strided.launches(); ++launch) {
      for (std::size_t i = 0; i < count; ++i) params.operands[i] = strided.operand(i, launch);
      args.queue->run(strided.tiles().program, strided.tiles().items, params);
    }
  };
}

int own_blocks(const Region& region) {
  const TileProgram program = pointwise_program(region).program;
  return min_blocks_of(program, tile_width(ElementBytes(program).widest));
}

Decline declines(const Region& region) {
  const TileProgramOrReason made = pointwise_program(region);
  if (made.reason) return made.reason;
  for (const TileProgram::Extra& extra : made.program.extras)
    if (extra.index) return fmt::format("operand {} of the region is read by index", extra.operand);
  const std::size_t count = made.program.extras.size() + made.program.results.size();
  if (count > most_operands)
    return fmt::format("reads and writes {} tensors, at most {} in one program", count, most_operands);
  return std::nullopt;
}

}  // namespace

Kernel with_regions(Kernel kernel) {
  kernel.fuses = true;
  kernel.declines = [](const Region& region) -> Decline {
    return region.is_single() ? std::nullopt : declines(region);
  };
  kernel.programs = [single = kernel.programs](const Region& region, const Config& config) {
    return region.is_single() ? single(region, config) : programs(region, config);
  };
  kernel.bind = [single = kernel.bind](const Region& region, const Config& config) {
    return region.is_single() ? single(region, config) : bind(region, config);
  };
  kernel.configs = [single = kernel.configs](const Region& region) {
    return region.is_single() ? single(region) : tile_configs(own_blocks(region));
  };
  kernel.space = [configs = kernel.configs](const Region& region) { return tile_space(configs(region)); };
  kernel.cost = [single = kernel.cost](const Region& region, const Config& config, const DeviceLimits& limits) {
    return region.is_single() ? single(region, config, limits)
                              : tile_cost(region, TileChoice(config, own_blocks(region)), limits);
  };
  return kernel;
}

}  // namespace cermet::cuda
