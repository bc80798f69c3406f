// Decoding attention whose values are the first 512 of the keys' 576 columns, in the same memory, as multi-head latent
// attention has them: no command names such operands. With each configuration of the kernel.
//   build/bin/bench_latent_attention [seconds for each figure]
#include <fmt/format.h>

#include <cstdlib>

#include "device/device.hpp"
#include "device/replay_timer.hpp"
#include "op/schema/region_text.hpp"
#include "select/bound_op.hpp"
#include "select/select.hpp"
#include "select/tune/operand_sets.hpp"

namespace cermet {
namespace {

void measure(std::int64_t sequences, std::int64_t tokens, std::int64_t heads, double seconds, const DeviceQueue& queue,
             ThreadPool& pool) {
  constexpr std::int64_t head_size = 576, value_size = 512, page = 16;
  constexpr std::size_t keys = 1, values = 2;
  const std::int64_t pages = tokens / page;
  Region region = parse_region(fmt::format(
      "incre_flash_attention(bf16[{0}, {1}, {2}], bf16[{3}, 1, {4}, {2}], bf16[{3}, 1, {4}, {5}], i32[{0}, {6}], "
      "i32[{0}], -, -, -, -, -)",
      sequences, heads, head_size, sequences * pages, page, value_size, pages));
  region.set_target(queue.device->target());
  const Kernel& kernel = *choose_by_name(region, "attention.decode_shared", "default").kernel;
  OperandSets sets(region, kernel, queue, pool, {.period = (1 << 22) - 1});
  sets.make(2);
  for (const Config& config : kernel.configs(region)) {
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
                 operations = 2 * number(sequences * tokens * heads * (head_size + value_size));
    fmt::print("B{} S{} MLA, {} heads, {}: {:.1f} us, {:.2f} TB/s, {:.0f} TFLOPS\n", sequences, tokens, heads,
               config.to_string(), 1e6 * times.median_seconds, 1e-12 * bytes / times.median_seconds,
               1e-12 * operations / times.median_seconds);
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
  for (const std::int64_t heads : {16, 32, 128}) measure(64, 4096, heads, seconds, queue, pool);
  measure(1, 131072, 16, seconds, queue, pool);
}
