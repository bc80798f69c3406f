// Host half of advance_tokens.
#include "kernel/cuda/device/sampling/advance_tokens.hpp"

#include "kernel/cuda/narrow.hpp"
#include "kernel/cuda/task.hpp"
#include "kernel/kernel.hpp"
#include "op/advance_tokens.hpp"

namespace cermet::cuda::sampling_advance_file {
namespace {

void launch(const LaunchArgs& args, std::int64_t block_size) {
  namespace at = advance;
  at::check_sizes(args.inputs);
  const auto in = [&](std::size_t operand) -> const TensorView& { return args.inputs[operand]; };
  const auto list = [&](std::size_t operand) { return in(operand).as<std::int32_t>(); };
  const advance_tokens::Params params{
      .chosen = list(at::chosen),
      .ids = list(at::ids),
      .positions = list(at::positions),
      .slots = list(at::slots),
      .context_lens = list(at::context_lens),
      .block_tables = list(at::block_tables),
      .draws = in(at::draws).as<std::int64_t>(),
      .made = list(at::made),
      .count = list(at::count),
      .chosen_stride = in(at::chosen).strides[0],
      .ids_stride = in(at::ids).strides[0],
      .positions_stride = in(at::positions).strides[0],
      .slots_stride = in(at::slots).strides[0],
      .lens_stride = in(at::context_lens).strides[0],
      .table_stride = in(at::block_tables).strides[0],
      .page_stride = in(at::block_tables).strides[1],
      .draws_stride = in(at::draws).strides[0],
      .made_stride = in(at::made).strides[0],
      .column_stride = in(at::made).strides[1],
      .made_rows = in(at::made).shape[0],
      .sequences = static_cast<std::uint32_t>(narrow(in(at::chosen).shape[0], "advance_tokens", "sequences")),
      .pages = static_cast<std::uint32_t>(narrow(in(at::block_tables).shape[1], "advance_tokens", "pages")),
      .block_size = static_cast<std::uint32_t>(block_size)};
  args.queue->run(0, 1, params);
}

}  // namespace

extern const Kernel sampling_advance_tokens;
const Kernel sampling_advance_tokens{
    .name = "sampling.advance_tokens",
    .op = OpKind::advance_tokens,
    .summary = "a block for all sequences; tokens are stored so that the host sees them at once",
    .bind = [](const Problem& p) -> Launcher {
      return [block_size = p.attributes.integer("block_size")](const LaunchArgs& args) { launch(args, block_size); };
    },
    .programs = [](const Problem&) -> std::vector<Program> {
      return {{.header = "kernel/cuda/device/sampling/advance_tokens.cuh",
               .task = "cermet::advance_tokens::Task",
               .threads = advance_tokens::threads}};
    }};

}  // namespace cermet::cuda::sampling_advance_file
