// What tiles of hopper.hpp may be: fields and constraints of its configurations.
#include "kernel/cuda/gemm/hopper.hpp"

namespace cermet::cuda {

ConfigSpace HopperProduct::space() const {
  ConfigSpace space;
  if (product_.blocked) space.add(ConfigField::fixed("tile_m", 128)).add(ConfigField::fixed("tile_n", work_.widest));
  else
    space.add(ConfigField::set("tile_m", {64, 128}))
        .add(ConfigField::set("tile_n", {32, 64, 96, 112, 128, 192, 224, 256}));
  space.add(ConfigField::range("stages", 2, 16));
  if (!grouped_) space.add(ConfigField::powers("raster", 1, 64).with_usual(gemm::hopper_raster));
  space.constrain(fmt::format("tile_n is 32 or below twice the {} columns", n_),
                  [n = n_](const Config& c) { return c.at("tile_n") == 32 || c.at("tile_n") < 2 * n; });
  space.constrain(fmt::format("registers hold the sums of tile_n columns, at most {}", work_.widest),
                  [widest = work_.widest](const Config& c) { return c.at("tile_n") <= widest; });
  space.constrain(fmt::format("stages * ({} * tile_m + {} * tile_n) * {} bytes, and rows of {}-byte results on their "
                              "way out, fit {} bytes of shared memory",
                              work_.a_parts, work_.b_parts, gemm::HopperShape::tile_row, work_.out_bytes,
                              gemm::HopperShape::shared_limit),
                  [work = work_](const Config& c) { return c.at("stages") <= most_hopper_stages(work, tile_of(c)); });
  return space;
}

HopperTile HopperProduct::tile_of(const Config& config) {
  const auto field = [&](std::string_view name) { return static_cast<int>(config.at(name)); };
  return {field("tile_m"), field("tile_n"), field("stages"),
          static_cast<int>(config.find("raster").value_or(gemm::hopper_raster))};
}

}  // namespace cermet::cuda
