#include "kernel/cuda/rowwise/row_configs.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/roofline.hpp"

namespace cermet::cuda {
namespace {

constexpr int warp_lanes = 32, most_block_threads = 1024;
/// Threads of a block that shares a kernel with other tasks, and elements that each may hold then.
constexpr int few_threads = 256, most_elements = 64;

bool has_choice(const RowSpec& spec) {
  return spec.columns > 0 && spec.columns % spec.width == 0 && spec.columns / spec.width > warp_lanes &&
         spec.columns <= spec.most_columns;
}

RowTuning own_tuning(const RowSpec& spec) { return spec.columns <= 6144 ? spec.short_rows : spec.long_rows; }

Config config_of(RowTuning tuning, int cluster) {
  return {{"elements", tuning.elements}, {"registers", tuning.registers}, {"cluster", cluster}};
}

/// Bytes that a thread loads for each column.
double bytes_of_column(const RowSpec& spec) { return spec.loaded_bytes > 0 ? spec.loaded_bytes : 16.0 / spec.width; }

/// With so many elements for each thread in place of a tuning's.
int registers_for(const RowSpec& spec, const RowTuning& own, int elements) {
  const int more = static_cast<int>((elements - own.elements) * bytes_of_column(spec) / 4);  // that hold them
  return std::clamp(static_cast<int>(round_up(own.registers + more, 8)), 40, 168);
}

bool fits_few_threads(const RowSpec& spec) {
  return spec.columns > 2048 && spec.columns <= few_threads * most_elements;
}

/// As many elements for each thread as a block of them makes necessary.
Config config_of_few_threads(const RowSpec& spec) {
  const RowTuning own = own_tuning(spec);
  const int least = static_cast<int>(round_up(div_up(spec.columns, std::int64_t{few_threads}), 8));
  Config config = config_of(least > own.elements ? RowTuning{least, registers_for(spec, own, least)} : own, 1);
  config.set("threads", few_threads);
  return config;
}

}  // namespace

// On an H200 (bench/results/h200/tune/tables.json) softmax of 1024 x 2048 took 7.9 us with 64 threads for a row and 5.7
// with 128 or 256, rms_norm of 512 x 1536 2.4 us with 96 and 2.2 with 192. With as many threads as this, fewer elements
// are no faster.
RowSpec spread_over_device(RowSpec spec, std::int64_t rows) {
  constexpr int enough_threads = 768, fewest = 8;  // the first: on an SM
  if (!has_choice(spec) || !spec.target || rows <= spec.target->multiprocessors)
    return spec;  // so few lie otherwise: rowwise.cpp
  const std::int64_t threads = std::int64_t{spec.target->multiprocessors} * enough_threads;
  const auto holds = [&](int elements) {
    return elements >= std::max(fewest, spec.width) && std::int64_t{elements} * most_block_threads >= spec.columns;
  };
  for (RowTuning* tuning : {&spec.short_rows, &spec.long_rows}) {
    const RowTuning own = *tuning;
    while (holds(tuning->elements / 2) && rows * spec.columns / tuning->elements < threads) tuning->elements /= 2;
    if (tuning->elements != own.elements) tuning->registers = registers_for(spec, own, tuning->elements);
  }
  return spec;
}

std::vector<Config> row_configs(const RowSpec& spec) {
  std::vector<Config> list(1);
  if (!has_choice(spec)) return list;
  const RowTuning own = own_tuning(spec);
  for (const int elements : {8, 16, 32, 56, 64}) {
    if (elements == own.elements || elements < spec.width || std::int64_t{elements} * most_block_threads < spec.columns)
      continue;
    list.push_back(config_of({elements, registers_for(spec, own, elements)}, spec.few_cluster));
  }
  if (spec.few_cluster > 1) list.push_back(config_of(own, 1));
  // Last: only launches that share a kernel with others gain from it.
  if (fits_few_threads(spec)) list.push_back(config_of_few_threads(spec));
  return list;
}

ConfigSpace row_space(const RowSpec& spec) {
  if (!has_choice(spec)) return {};
  const RowTuning own = own_tuning(spec);
  std::vector<std::int64_t> elements{own.elements}, registers{own.registers}, clusters{1, spec.few_cluster};
  for (std::int64_t count = 8; count <= 64; count += 8) elements.push_back(count);
  for (std::int64_t count = 40; count <= 168; count += 16) registers.push_back(count);
  for (const Config& config : row_configs(spec)) {
    if (config.empty()) continue;
    elements.push_back(config.at("elements"));
    registers.push_back(config.at("registers"));
  }
  if (spec.few_cluster > 1) clusters.insert(clusters.end(), {2, 4, 8});
  ConfigSpace space;
  space.add(ConfigField::set("elements", std::move(elements))).add(ConfigField::set("registers", std::move(registers)));
  space.add(ConfigField::set("cluster", std::move(clusters)));
  if (fits_few_threads(spec)) {
    space.add(ConfigField::set("threads", {few_threads}).with_usual(most_block_threads));
    space.constrain("blocks of few threads are for rows that share a kernel with other tasks",
                    [only = config_of_few_threads(spec)](const Config& c) {
                      if (c.at("threads") == most_block_threads) return true;
                      return std::ranges::all_of(only.fields(),
                                                 [&](const auto& field) { return c.at(field.first) == field.second; });
                    });
  }
  space.constrain(fmt::format("a block of {} threads holds the row of {}, whole vectors of {} each", most_block_threads,
                              spec.columns, spec.width),
                  [spec, own](const Config& c) {
                    const std::int64_t each = c.at("elements");
                    return each == own.elements || (each >= spec.width && each * most_block_threads >= spec.columns);
                  });
  return space;
}

RowSpec configured(RowSpec spec, const Config& config) {
  if (config.empty()) return spec;
  spec.short_rows =
      spec.long_rows = {static_cast<int>(config.at("elements")), static_cast<int>(config.at("registers"))};
  spec.few_cluster = static_cast<int>(config.at("cluster"));
  spec.threads = static_cast<int>(config.find("threads").value_or(most_block_threads));
  return spec;
}

double row_cost(const Region& region, const RowSpec& spec, const DeviceLimits& limits) {
  const double least = roofline_seconds(region, limits.f32_operations_per_second, limits);
  if (!has_choice(spec) || !spec.target) return limits.launch_seconds + least;
  constexpr double latency = 1.1e-6;  // of memory under load, seconds
  const RowVariant many = RowVariants(spec).list().front();
  const auto rows_of_block = many.layout.threads / many.layout.lanes;
  const double in_flight = static_cast<double>(many.min_blocks * rows_of_block * spec.columns) * bytes_of_column(spec);
  const double wanted = limits.read_bytes_per_second / spec.target->multiprocessors * latency;
  return limits.launch_seconds + least * std::max(1.0, wanted / in_flight);
}

}  // namespace cermet::cuda
