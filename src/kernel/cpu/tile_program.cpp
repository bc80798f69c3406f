#include "kernel/cpu/tile_program.hpp"

#include <algorithm>
#include <cstring>

#include "base/checked.hpp"
#include "op/scales.hpp"
#include "op/schema/reference.hpp"

namespace cermet::cpu {
namespace {

constexpr auto float_bytes = static_cast<std::int64_t>(sizeof(float));

/// An element as the bits of a float32 or of an integer.
float load_value(const std::byte* at, DType dtype, RunConverter convert) {
  float value;
  if (size_of(dtype) == sizeof value) std::memcpy(&value, at, sizeof value);
  else convert(at, reinterpret_cast<std::byte*>(&value), 1);
  return value;
}

/// With a constant step the loop becomes shuffles.
template <std::int64_t step>
void take_every(const float* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i * step];
}

/// The rows of an operand that go with those of the results: it may have fewer dimensions, and repeat along some.
Rows rows_beside(const TensorView& view, TileProgram::Extent extent, const Shape& result) {
  const int lead = result.rank() - 1;
  if (extent == TileProgram::Extent::row &&
      std::equal(view.shape.begin(), view.shape.end(), result.begin(), result.begin() + lead))
    return Rows(view, 0);  // a value for each row, without a dimension for it
  TensorView repeated(view.data, view.dtype, {}, {});
  for (int axis = 0; axis < result.rank(); ++axis) {
    const int own = axis - (result.rank() - view.shape.rank());
    const bool repeats = own < 0 || (axis < lead && view.shape[own] == 1);
    repeated.shape.push_back(axis < lead ? result[axis] : view.shape[own]);
    repeated.strides.push_back(repeats ? 0 : view.strides[own]);
  }
  return Rows(repeated);
}

}  // namespace

TileRun::TileRun(const BoundTileProgram& program, const LaunchArgs& args, const Shape& result) : program_(program) {
  for (std::size_t e = 0; e < program.extras_.size(); ++e) {
    extras_[e].view = &args.inputs[program.extras_[e].what.operand];
    if (const auto index = program.extras_[e].what.index) look_at_indices(e, args.inputs[*index], result);
    else look_at(e, result);
    if (extras_[e].form == Form::repeated) numbers_[program.inputs_ + e] = {extras_[e].scalar.data(), 0, 0};
    else expanded_[expanded_count_++] = static_cast<std::uint8_t>(e);
  }
  for (std::size_t n = 0; n < program.numbers_.size(); ++n)
    numbers_[program.inputs_ + program.extras_.size() + n] = {program.numbers_[n].data(), 0, 0};
  for (std::size_t s = 0; s < program.stores_.size(); ++s) results_[s].emplace(args.outputs[program.stores_[s].result]);
  ends_in_place_ = program.ends_in_store_ && args.outputs[program.stores_[0].result].is_dense();
}

void TileRun::look_at(std::size_t extra, const Shape& result) {
  ExtraView& to = extras_[extra];
  const BoundTileProgram::Extra& e = program_.extras_[extra];
  const TensorView& view = *to.view;
  to.element_bytes = byte_size(view.dtype);
  to.data = view.as<const std::byte>() + e.what.first * to.element_bytes;
  if (e.what.extent == TileProgram::Extent::column) return look_at_columns(extra, result);
  if (e.what.extent != TileProgram::Extent::scalar)
    return void(to.rows.emplace(rows_beside(view, e.what.extent, result)));
  to.form = Form::repeated;
  to.scalar.fill(load_value(view.as<const std::byte>(), view.dtype, e.convert));
}

/// Rows of a matrix by integers that go with the rows of the results, among some of which they may repeat.
void TileRun::look_at_indices(std::size_t extra, const TensorView& indices, const Shape& result) {
  ExtraView& to = extras_[extra];
  to.element_bytes = byte_size(to.view->dtype);
  to.rows.emplace(*to.view);
  TensorView repeated(indices.data, indices.dtype, {}, {});
  for (int axis = 0; axis + 1 < result.rank(); ++axis) {
    const int own = axis - (result.rank() - 1 - indices.shape.rank());
    repeated.shape.push_back(result[axis]);
    repeated.strides.push_back(own < 0 || indices.shape[own] == 1 ? 0 : indices.strides[own]);
  }
  to.indices.emplace(repeated, 0);
  to.wide_indices = indices.dtype == DType::i64;
}

/// Where a row of an operand is. Throws where an index is outside of the matrix.
inline const std::byte* TileRun::row_of(std::size_t extra, std::int64_t row) const {
  const ExtraView& e = extras_[extra];
  if (!e.indices) return e.rows->row(row);
  const std::byte* const at = e.indices->row(row);
  const std::int64_t index =
      e.wide_indices ? *reinterpret_cast<const std::int64_t*>(at) : *reinterpret_cast<const std::int32_t*>(at);
  return e.rows->row(checked_signed_index("gather", "1 (indices)", index, e.view->shape[0]));
}

void TileRun::look_at_columns(std::size_t extra, const Shape& result) {
  ExtraView& to = extras_[extra];
  const BoundTileProgram::Extra& e = program_.extras_[extra];
  const TensorView& view = *to.view;
  const bool grouped = e.grouped;
  if (grouped) to.group_step = view.strides[0] * to.element_bytes;
  for (int axis = view.shape.rank() - 1; axis >= (grouped ? 1 : 0); --axis) {
    if (view.shape[axis] == 1) continue;
    to.column_step = view.strides[axis] * e.what.step * to.element_bytes;
    to.shared =
        view.shape[axis] >= result.back() ? 1 : scale_block;  // more: the operand has two values for each column
    break;
  }
  if (to.column_step == to.element_bytes && to.shared == 1)
    to.form = to.element_bytes == float_bytes ? Form::columns_in_place : Form::columns;
}

/// Columns that share a value, or are apart.
TileOperand TileRun::expand_columns(std::size_t extra, const TileRange& range, float* to) const {
  const ExtraView& e = extras_[extra];
  const RunConverter convert = program_.extras_[extra].convert;
  const std::byte* const from = e.data + range.group * e.group_step + range.column / e.shared * e.column_step;
  if (e.column_step == 0 || e.shared > 1) {  // whole panels share one
    std::fill_n(to, TileOperand::repeated, load_value(from, e.view->dtype, convert));
    return {to, 0, 0};
  }
  for (std::int64_t c = 0; c < range.columns; ++c) to[c] = load_value(from + c * e.column_step, e.view->dtype, convert);
  return {to, 0, 1};
}

TileOperand TileRun::expand_rows(std::size_t extra, const TileRange& range, float* to) const {
  const ExtraView& e = extras_[extra];
  for (std::int64_t r = 0; r < range.rows; ++r)
    std::fill_n(to + r * static_cast<std::int64_t>(TileOperand::repeated), TileOperand::repeated,
                load_value(e.rows->row(range.row + r), e.view->dtype, program_.extras_[extra].convert));
  return {to, TileOperand::repeated, 0};
}

TileOperand TileRun::expand_elements(std::size_t extra, const TileRange& range, float* to) const {
  const TileProgram::Extra& what = program_.extras_[extra].what;
  if (what.step != 1) return expand_apart(extra, range, to);
  const std::int64_t bytes = extras_[extra].element_bytes, skipped = (what.first + range.column) * bytes;
  if (bytes == float_bytes) {  // as they lie in memory, where rows are evenly apart
    const std::byte* const first = row_of(extra, range.row);
    const std::int64_t step = range.rows > 1 ? row_of(extra, range.row + 1) - first : 0;
    bool even = step >= 0 && step % float_bytes == 0;
    for (std::int64_t r = 2; r < range.rows; ++r) even = even && row_of(extra, range.row + r) - first == r * step;
    if (even) return {reinterpret_cast<const float*>(first + skipped), static_cast<std::size_t>(step / float_bytes), 1};
  }
  for (std::int64_t r = 0; r < range.rows; ++r)
    program_.extras_[extra].convert(row_of(extra, range.row + r) + skipped,
                                    reinterpret_cast<std::byte*>(to + r * range.columns), range.columns);
  return {to, static_cast<std::size_t>(range.columns), 1};
}

/// Elements of which some are left out between.
TileOperand TileRun::expand_apart(std::size_t extra, const TileRange& range, float* to) const {
  const TileProgram::Extra& what = program_.extras_[extra].what;
  const ExtraView& e = extras_[extra];
  alignas(64) float run[BoundTileProgram::most_values];
  const std::int64_t most = static_cast<std::int64_t>(BoundTileProgram::most_values) / what.step;
  for (std::int64_t r = 0; r < range.rows; ++r)
    for (std::int64_t c = 0; c < range.columns; c += most) {
      const std::int64_t count = std::min(most, range.columns - c);
      const std::byte* const from =
          e.rows->row(range.row + r) + (what.first + (range.column + c) * what.step) * e.element_bytes;
      program_.extras_[extra].convert(from, reinterpret_cast<std::byte*>(run), (count - 1) * what.step + 1);
      float* const row = to + r * range.columns + c;
      if (what.step == 2) take_every<2>(run, row, count);
      else
        for (std::int64_t i = 0; i < count; ++i) row[i] = run[i * what.step];
    }
  return {to, static_cast<std::size_t>(range.columns), 1};
}

inline TileOperand TileRun::expand(std::size_t extra, const TileRange& range, float* to) const {
  const ExtraView& e = extras_[extra];
  if (e.form != Form::other) {
    const std::byte* const from = e.data + range.group * e.group_step + range.column * e.element_bytes;
    if (e.form == Form::columns_in_place) return {reinterpret_cast<const float*>(from), 0, 1};
    program_.extras_[extra].convert(from, reinterpret_cast<std::byte*>(to), range.columns);
    return {to, 0, 1};
  }
  switch (program_.extras_[extra].what.extent) {
    case TileProgram::Extent::column: return expand_columns(extra, range, to);
    case TileProgram::Extent::row: return expand_rows(extra, range, to);
    default: return expand_elements(extra, range, to);
  }
}

void TileRun::add_and_store(const TileOperand* inputs, const TileRange& range) const {
  alignas(64) float expanded[BoundTileProgram::most_values];
  const TileOperand operands[] = {inputs[0],
                                  expanded_count_ == 0 ? numbers_[program_.inputs_] : expand(0, range, expanded)};
  program_.stores_[0].function(operands, *results_[0], range);
}

TileOperand TileRun::value(const TileOperand* inputs, const TileRange& range, Memory& memory,
                           const TileTarget& to) const {
  const TileOperand made = run(inputs, range, memory, &to)[*program_.value_];
  if (made.column_step == 1) return made;
  for (std::int64_t r = 0; r < range.rows; ++r)
    std::fill_n(to.data + static_cast<std::size_t>(r) * to.row_step, range.columns,
                made.data[static_cast<std::size_t>(r) * made.row_step]);
  return {to.data, to.row_step, 1};
}

TileRun::Values TileRun::run(const TileOperand* inputs, const TileRange& range, Memory& memory,
                             const TileTarget* value) const {
  auto& slots = memory.slots;
  const std::size_t read = program_.extras_.size() + program_.numbers_.size();
  Values values;
  std::copy_n(inputs, program_.inputs_, values.begin());
  std::copy_n(numbers_.begin() + program_.inputs_, read, values.begin() + program_.inputs_);
  for (std::size_t i = 0; i < expanded_count_; ++i) {
    const std::size_t e = expanded_[i];
    values[program_.inputs_ + e] = expand(e, range, slots[program_.extras_[e].slot]);
  }
  std::size_t at = program_.inputs_ + read;
  const auto columns = static_cast<std::size_t>(range.columns),
             step = std::max(columns, BoundTileProgram::least_columns);
  for (std::size_t s = 0; s < program_.slots_; ++s) values[at++] = {slots[s], step, 1};
  std::array<TileOperand, BoundTileProgram::most_operands> operands;
  for (const BoundTileProgram::Instruction& i : program_.instructions_) {
    for (std::size_t o = 0; o < i.operand_count; ++o) operands[o] = values[i.operands[o]];
    TileTarget to{slots[i.slot], step, static_cast<std::size_t>(range.rows), columns};
    if (ends_in_place_ && &i == &program_.instructions_.back()) {
      to.data = reinterpret_cast<float*>(results_[0]->row(range.row)) + range.column;
      to.row_step = static_cast<std::size_t>(results_[0]->length());
    }
    if (program_.ends_in_value_ && &i == &program_.instructions_.back()) {
      to = *value;
      values[*program_.value_] = {to.data, to.row_step, 1};
    }
    i.function(operands.data(), to, i.parameters.data());
  }
  if (ends_in_place_) return values;
  for (std::size_t s = 0; s < program_.stores_.size(); ++s) {
    const BoundTileProgram::Store& store = program_.stores_[s];
    for (std::size_t o = 0; o < store.operand_count; ++o) operands[o] = values[store.operands[o]];
    store.function(operands.data(), *results_[s], range);
  }
  return values;
}

}  // namespace cermet::cpu
