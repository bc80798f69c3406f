#include "foreign/launch.hpp"

#include <cstring>

#include "base/checked.hpp"

namespace cermet::foreign {
namespace {

constexpr std::int64_t uneven = -1;  ///< the distance of rows that are not evenly apart

/// Dimensions that "..." stands for.
int leads_of(const ManifestOperand& operand, const TensorView& view) {
  const bool leads = !operand.dims.empty() && operand.dims.front().leading;
  return leads ? view.shape.rank() - (static_cast<int>(operand.dims.size()) - 1) : 0;
}

int axis_of(const ManifestOperand& operand, const TensorView& view, std::size_t axis) {
  const int leads = leads_of(operand, view);
  const bool collapsed = !operand.dims.empty() && operand.dims.front().leading;
  return leads + static_cast<int>(axis) - (collapsed ? 1 : 0);
}

template <class T>
void put(std::span<std::byte> to, std::uint32_t offset, T value) {
  std::memcpy(to.data() + offset, &value, sizeof value);
}

template <class T>
T narrowed(std::int64_t value, const Parameter& parameter) {
  require(std::in_range<T>(value), "parameter {}: expected a number of {} bytes, found {}", parameter.value.text(),
          sizeof(T), value);
  return static_cast<T>(value);
}

}  // namespace

LaunchPlan::LaunchPlan(const Manifest& manifest, const Region& region, const Config& config) : manifest_(&manifest) {
  const Match matched = match(manifest, region);
  CERMET_ASSERT(!matched.reason);
  const std::vector<Interval> values = with_config(manifest, matched, config);
  for (std::size_t v = 0; v < values.size(); ++v) {
    values_[v] = values[v].least;
    reals_[v] = matched.reals[v];
  }
  for (std::size_t i = manifest.operands.size(); i-- > 0;) {  // the first that has a dimension wins
    const ManifestOperand& operand = manifest.operands[i];
    if (!operand.is_result && !region.problem().has(operand.index)) continue;
    for (std::size_t a = 0; a < operand.dims.size(); ++a)
      if (operand.dims[a].name >= 0)
        sources_[static_cast<std::size_t>(operand.dims[a].name)] = {static_cast<std::int32_t>(i),
                                                                    static_cast<std::int32_t>(a)};
  }
  const Instance& instance = *instance_of(manifest, config);
  const auto add = [&](std::uint32_t bytes) {
    bytes_ = static_cast<std::uint32_t>(round_up(bytes_, bytes));
    offsets_[parameters_++] = bytes_;
    bytes_ += bytes;
  };
  for (const Parameter& parameter : manifest.parameters) add(bytes_of(parameter.kind));
  for (int i = 0; i < instance.scratch_pointers; ++i) add(8);
  workspace_bytes_ = manifest.workspace_bytes.bounds(values).most;
  require(workspace_bytes_ >= 0 && workspace_bytes_ < Interval::any,
          "{}: workspace_bytes: expected 0 to 2^62, found {}", manifest.name, workspace_bytes_);
  if (!is_gpu(manifest.kind)) return;
  std::array<std::uint32_t, 3> threads{1, 1, 1};
  for (std::size_t a = 0; a < manifest.block.size(); ++a)
    threads[a] = static_cast<std::uint32_t>(known_value(manifest.block[a], values, "its block"));
  if (instance.threads) threads[0] = static_cast<std::uint32_t>(*instance.threads);
  shape_.threads = threads[0];
  shape_.threads_y = threads[1];
  shape_.threads_z = threads[2];
  shape_.shared_bytes = static_cast<std::uint32_t>(
      instance.shared_bytes.value_or(known_value(manifest.shared_bytes, values, "its shared memory")));
  shape_.cluster = static_cast<std::uint32_t>(manifest.cluster);
}

const TensorView& LaunchPlan::view(std::size_t operand, const LaunchArgs& args) const {
  static const TensorView none;
  const ManifestOperand& o = manifest_->operands[operand];
  const std::span<const TensorView> views = o.is_result ? args.outputs : args.inputs;
  return o.index < views.size() ? views[o.index] : none;
}

LaunchValues::LaunchValues(const LaunchPlan& plan, const LaunchArgs& args)
    : plan_(plan), args_(args), values_(plan.values_) {
  const Manifest& m = plan.manifest();
  for (std::size_t v = 0; v < m.dims; ++v) {
    const LaunchPlan::DimSource source = plan.sources_[v];
    if (source.operand < 0) continue;
    const ManifestOperand& operand = m.operands[static_cast<std::size_t>(source.operand)];
    const TensorView& view = plan.view(static_cast<std::size_t>(source.operand), args);
    std::int64_t size = 1;
    if (operand.dims[static_cast<std::size_t>(source.axis)].leading)
      for (int a = 0; a < leads_of(operand, view); ++a) size *= view.shape[a];
    else size = view.shape[axis_of(operand, view, static_cast<std::size_t>(source.axis))];
    values_[v] = size;
  }
  for (std::size_t i = 0; i < m.operands.size() && !misfit_; ++i) read(i);
}

/// The one distance of rows along leading dimensions; `uneven` where there is none.
std::int64_t LaunchValues::leading_stride(const TensorView& view, int leads) const {
  std::int64_t step = 0, rows = 1;
  for (int a = leads - 1; a >= 0; --a) {
    if (view.shape[a] == 1) continue;
    if (rows == 1) step = view.strides[a];
    else if (view.strides[a] != step * rows) return uneven;
    rows *= view.shape[a];
  }
  if (rows > 1) return step;
  std::int64_t dense = 1;  // one row: where a second would begin
  for (int a = leads; a < view.shape.rank(); ++a) dense *= view.shape[a];
  return dense;
}

bool LaunchValues::is_dense(const TensorView& view) const {
  std::int64_t step = 1;
  for (int a = view.shape.rank() - 1; a >= 0; --a) {
    if (view.shape[a] != 1 && view.strides[a] != step) return false;
    step *= view.shape[a];
  }
  return true;
}

/// Checks an operand's address and strides, and keeps the strides that expressions read.
void LaunchValues::read(std::size_t i) {
  const Manifest& m = plan_.manifest();
  const ManifestOperand& operand = m.operands[i];
  const TensorView& view = plan_.view(i, args_);
  if (!view.present || view.elements() == 0) return;
  const auto bytes = byte_size(view.dtype);
  bool fits = reinterpret_cast<std::uintptr_t>(view.data) % static_cast<std::uintptr_t>(operand.alignment) == 0 &&
              (operand.any_strides || is_dense(view));
  for (std::size_t a = 0; a < operand.dims.size(); ++a) {
    const int axis = axis_of(operand, view, a);
    const bool leading = operand.dims[a].leading;
    const std::int64_t stride = leading ? leading_stride(view, leads_of(operand, view)) : view.strides[axis];
    const bool is_last = a + 1 == operand.dims.size();
    const bool is_stepped = leading ? leads_of(operand, view) > 0 : view.shape[axis] != 1;
    fits = fits && stride != uneven && (is_last || !is_stepped || stride * bytes % operand.alignment == 0);
    for (std::size_t v = m.dims; v < m.variables.size(); ++v)
      if (m.variables[v].kind == Variable::Kind::stride && m.variables[v].operand == i &&
          m.variables[v].axis == static_cast<int>(a))
        values_[v] = stride;
  }
  if (!fits) misfit_ = &operand;
}

std::string LaunchValues::misfit_text() const {
  const ManifestOperand& operand = *misfit_;
  const TensorView& view = plan_.view(static_cast<std::size_t>(misfit_ - plan_.manifest().operands.data()), args_);
  return fmt::format(
      "{}: {}: expected {} elements at an address that is a multiple of {} bytes, found strides {} at {}",
      plan_.manifest().name, operand.name, operand.any_strides ? "evenly strided" : "dense", operand.alignment,
      view.strides.to_string(), view.data);
}

bool LaunchValues::set_grid(LaunchShape& shape) const {
  const Manifest& m = plan_.manifest();
  constexpr std::int64_t most[3] = {(std::int64_t{1} << 31) - 1, 65535, 65535};
  std::array<std::uint32_t, 3> blocks{1, 1, 1};
  for (std::size_t a = 0; a < m.grid.size(); ++a) {
    const std::int64_t count = m.grid[a].value(values());
    require(count >= 0 && count <= most[a], "{}: grid[{}]: expected 0 to {} blocks, found {}", m.name, a, most[a],
            count);
    blocks[a] = static_cast<std::uint32_t>(count);
  }
  require(blocks[0] % m.cluster == 0, "{}: grid[0]: expected a multiple of {}, the size of its clusters, found {}",
          m.name, m.cluster, blocks[0]);
  shape.blocks = blocks[0];
  shape.blocks_y = blocks[1];
  shape.blocks_z = blocks[2];
  return blocks[0] > 0 && blocks[1] > 0 && blocks[2] > 0;
}

void LaunchValues::pack(std::span<std::byte> to) const {
  const Manifest& m = plan_.manifest();
  std::memset(to.data(), 0, plan_.parameter_bytes());  // padding, and pointers that a compiler added
  std::array<double, Manifest::most_variables> reals{};
  for (std::size_t v = 0; v < m.variables.size(); ++v)
    reals[v] = m.variables[v].is_real ? plan_.reals_[v] : static_cast<double>(values_[v]);
  const std::span<const double> all_reals(reals.data(), m.variables.size());
  for (std::size_t i = 0; i < m.parameters.size(); ++i) {
    const Parameter& p = m.parameters[i];
    const std::uint32_t at = plan_.offsets()[i];
    switch (p.kind) {
      case Parameter::Kind::pointer: put<void*>(to, at, plan_.view(p.operand, args_).data); break;
      case Parameter::Kind::workspace: put<void*>(to, at, args_.workspace); break;
      case Parameter::Kind::i32: put(to, at, narrowed<std::int32_t>(p.value.value(values()), p)); break;
      case Parameter::Kind::u32: put(to, at, narrowed<std::uint32_t>(p.value.value(values()), p)); break;
      case Parameter::Kind::i64: put(to, at, p.value.value(values())); break;
      case Parameter::Kind::u64: put(to, at, narrowed<std::uint64_t>(p.value.value(values()), p)); break;
      case Parameter::Kind::f32: put(to, at, static_cast<float>(p.value.real(all_reals))); break;
      case Parameter::Kind::f64: put(to, at, p.value.real(all_reals)); break;
    }
  }
}

}  // namespace cermet::foreign
