// Attention whose values are the first 512 of the keys' 576 columns, in the same memory, as multi-head latent attention
// has them: no command names such operands. Decoding and prefill, with each configuration of the kernel.
//   build/bin/bench_latent_attention [seconds for each figure] [substring of the kernel's name] [configuration]
#include <fmt/format.h>

#include <cstdlib>
#include <optional>
#include <span>
#include <string_view>

#include "device/device.hpp"
#include "device/replay_timer.hpp"
#include "op/schema/region_text.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"
#include "select/tune/operand_sets.hpp"

namespace cermet {
namespace {

struct Sizes {
  std::int64_t sequences, queries, tokens, heads;  ///< queries and tokens: of each sequence
};

/// With all configurations, unless one is wanted.
void measure(const char* name, const Sizes& sizes, const std::optional<Config>& wanted, double seconds,
             const DeviceQueue& queue, ThreadPool& pool) {
  constexpr std::int64_t head_size = 576, value_size = 512, page = 16;
  constexpr std::size_t keys = 1, values = 2;
  const auto [sequences, queries, tokens, heads] = sizes;
  const std::int64_t pages = tokens / page;
  Region region = parse_region(fmt::format(
      "incre_flash_attention(bf16[{0}, {1}, {2}], bf16[{3}, 1, {4}, {2}], bf16[{3}, 1, {4}, {5}], i32[{6}, {7}], "
      "i32[{6}], {8}, -, -, -, -)",
      sequences * queries, heads, head_size, sequences * pages, page, value_size, sequences, pages,
      queries == 1 ? "-" : fmt::format("i32[{}]", sequences + 1)));
  region.set_target(queue.device->target());
  const Kernel& kernel = *choose_by_name(region, name, "default").kernel;
  OperandSets sets(region, kernel, queue, pool, {.period = (1 << 22) - 1});
  sets.make(2);
  for (const Config& config : wanted ? std::vector{*wanted} : kernel.configs(region)) {
    BoundOp op(region, Choice(kernel, config), pool, queue);
    const auto run = [&](std::int64_t set) {
      const std::span<const TensorView> made = sets.inputs(set);
      std::vector<TensorView> inputs(made.begin(), made.end());
      inputs[values] = inputs[keys];
      inputs[values].shape[3] = value_size;
      op.run(inputs, sets.outputs(set));
    };
    const ReplayTimes times = time_replays(*queue.stream, sets.count(), run, {.seconds = seconds});
    const auto number = [](std::int64_t value) { return static_cast<double>(value); };
    const double bytes = 2 * number(sequences * tokens * head_size),
                 seen = number(sequences * queries) * (number(tokens) - 0.5 * number(queries - 1)),
                 operations = 2 * seen * number(heads * (head_size + value_size));
    fmt::print("B{} S{} MLA, {} queries, {} heads, {} {}: {:.1f} us, {:.2f} TB/s, {:.0f} TFLOPS\n", sequences, tokens,
               queries, heads, name, config.to_string(), 1e6 * times.median_seconds,
               1e-12 * bytes / times.median_seconds, 1e-12 * operations / times.median_seconds);
  }
}

}  // namespace
}  // namespace cermet

int main(int argc, char** argv) {
  using namespace cermet;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.1;
  const std::unique_ptr<Device> device = make_device("cuda");
  const std::unique_ptr<Stream> stream = device->make_stream();
  ProgramStore programs(*device);
  ThreadPool pool(8);
  const DeviceQueue queue{device.get(), stream.get(), &programs};
  const std::string_view wanted = argc > 2 ? argv[2] : "";
  const std::optional<Config> config = argc > 3 ? std::optional(parse_config(argv[3])) : std::nullopt;
  constexpr Sizes decoding[] = {{64, 1, 4096, 16}, {64, 1, 4096, 32}, {64, 1, 4096, 128}, {1, 1, 131072, 16}},
                  prefill[] = {{1, 4096, 4096, 16}, {1, 2048, 8192, 128}, {64, 1, 4096, 128}};
  for (const char* kernel : {"attention.decode_shared", "attention.prefill_paged_wide", "attention.prefill_paged"}) {
    const std::string_view kernel_name = kernel;
    if (kernel_name.find(wanted) == std::string_view::npos) continue;
    for (const Sizes& sizes : kernel_name.starts_with("attention.decode") ? std::span<const Sizes>(decoding)
                                                                          : std::span<const Sizes>(prefill))
      measure(kernel, sizes, config, seconds, queue, pool);
  }
}
