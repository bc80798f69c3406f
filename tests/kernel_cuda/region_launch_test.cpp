// What launches of regions are given, on the null device: every operand's rows where the region's wiring says.
#include <gtest/gtest.h>

#include "kernel/cuda/device/pointwise/region_task.hpp"
#include "kernel/cuda/device/rowwise/row_params.hpp"
#include "kernel/cuda/kernels.hpp"
#include "kernel/row_program.hpp"
#include "tests/kernel_cuda/recorded_launches.hpp"
#include "tests/support/row_regions.hpp"

namespace cermet {
namespace {

const Kernel* taking_kernel(const Region& region) {
  for (const Kernel* kernel : cuda::kernels_of(region.problem().op->kind))
    if (kernel->fuses && !kernel->declines(region)) return kernel;
  return nullptr;
}

/// Address of a row as device/rowwise/row_vectors.cuh computes it.
const std::byte* row_address(const RowOperand& operand, const RowDims& dims, std::uint32_t row, std::int64_t bytes) {
  const std::uint32_t outer = dims.inner ? row / dims.inner : 0;
  const std::int64_t at[3]{dims.inner ? row % dims.inner : row, dims.inner ? outer % dims.middle : 0,
                           dims.inner ? outer / dims.middle : 0};
  std::int64_t offset = 0;
  for (int axis = 0; axis < 3; ++axis) offset += at[axis] * operand.step[axis];
  return static_cast<const std::byte*>(operand.data) + offset * bytes;
}

/// Address of row `row`, by the leading dimensions of rows of these dimensions, of a view that broadcasts to them.
const std::byte* expected_address(const TensorView& view, const Dims& dims, std::uint32_t row, bool has_columns) {
  std::int64_t remaining = row, offset = 0;
  const int leading = static_cast<int>(dims.size()) - 1, own = view.shape.rank() - (has_columns ? 1 : 0);
  for (int axis = leading - 1; axis >= 0; --axis) {
    const std::int64_t size = dims[static_cast<std::size_t>(axis)].constant(), index = remaining % size;
    remaining /= size;
    const int at = axis - (leading - own);
    if (at >= 0 && view.shape[at] > 1) offset += index * view.strides[at];
  }
  return view.as<std::byte>() + offset * byte_size(view.dtype);
}

TEST(RegionLaunches, OfRowReductions) {
  const auto device = make_null_device(90);
  for (const auto& [name, region] : row_regions(device->target()))
    for (const std::int64_t padding : {0, 16, 3}) {
      SCOPED_TRACE(fmt::format("{}, padding {}", name, padding));
      const RowProgram program = row_program(region).program;
      NullLaunches null(region, *taking_kernel(region));
      const std::vector<TensorView> inputs = null.inputs(), outputs = null.outputs(padding);
      std::int64_t rows = 1;
      for (std::size_t i = 0; i + 1 < program.dims.size(); ++i) rows *= program.dims[i].constant();
      int seen = 0;
      null.stream->on_params = [&](const void* data) {
        const auto& p = *static_cast<const row_region::Params*>(data);
        ++seen;
        EXPECT_EQ(p.rows, rows);
        EXPECT_EQ(p.length, program.dims.back().constant());
        const auto expect_rows = [&](const RowOperand& operand, const TensorView& view, bool has_columns,
                                     std::string_view what) {
          for (std::uint32_t row = 0; row < p.rows; ++row)
            ASSERT_EQ(row_address(operand, p.dims, row, byte_size(view.dtype)),
                      expected_address(view, program.dims, row, has_columns))
                << what << ", row " << row;
        };
        const auto& tile = program.tile;
        for (std::size_t i = 0; i < tile.extras.size(); ++i) {
          const TensorView& view = inputs[tile.extras[i].operand];
          if (tile.extras[i].extent == TileProgram::Extent::scalar ||
              tile.extras[i].extent == TileProgram::Extent::column) {
            EXPECT_EQ(p.operands[i].data, view.data);
            EXPECT_EQ(p.operands[i].step[0], 0);
          } else {
            expect_rows(p.operands[i], view, true, fmt::format("operand {}", tile.extras[i].operand));
          }
        }
        for (std::size_t j = 0; j < tile.results.size(); ++j)
          expect_rows(p.operands[tile.extras.size() + j], outputs[tile.results[j].result], true,
                      fmt::format("result {}", tile.results[j].result));
        for (std::size_t r = 0; program.quantization && r < outputs.size(); ++r) {
          if (static_cast<std::size_t>(region.results[r].node) != program.quantization->node) continue;
          const bool codes = region.results[r].index == 0;
          expect_rows(codes ? p.out.values : p.out.scale, outputs[r],
                      outputs[r].shape.rank() == static_cast<int>(program.dims.size()), "quantized");
        }
      };
      EXPECT_FALSE(null.launch(inputs, outputs).empty());
      EXPECT_EQ(seen, 1);
    }
}

TEST(RegionLaunches, OfElementwiseOperators) {
  const auto device = make_null_device(90);
  for (const auto& [name, region] : pointwise_regions(device->target())) {
    SCOPED_TRACE(name);
    const TileProgram program = pointwise_program(region).program;
    NullLaunches null(region, *taking_kernel(region));
    const std::vector<TensorView> inputs = null.inputs(), outputs = null.outputs();
    null.stream->on_params = [&](const void* data) {
      const auto& p = *static_cast<const pointwise::RegionParams*>(data);
      EXPECT_EQ(p.shape.rows * p.shape.length, outputs[0].elements());
      for (std::size_t i = 0; i < program.extras.size(); ++i) {
        EXPECT_EQ(p.operands[i].rows.data, inputs[program.extras[i].operand].data) << "operand " << i;
        EXPECT_EQ(p.operands[i].along, program.extras[i].extent == TileProgram::Extent::element ||
                                           program.extras[i].extent == TileProgram::Extent::column);
      }
      for (std::size_t j = 0; j < outputs.size(); ++j)
        EXPECT_EQ(p.operands[program.extras.size() + j].rows.data, outputs[j].data) << "result " << j;
    };
    EXPECT_EQ(null.launch(inputs, outputs).size(), 1u);
  }
}

}  // namespace
}  // namespace cermet
