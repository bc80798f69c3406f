// Which compilation a run takes: that of the part of the ranges where its sizes are, or one of its own.
#include <algorithm>

#include "base/log.hpp"
#include "onnx/compiled_model.hpp"

namespace cermet::onnx {
namespace {

constexpr std::size_t most_parts = 16;  ///< of the ranges; a model that wants more is compiled for each size

std::string key_of(const std::vector<TensorType>& types, const std::vector<std::string>& overridden) {
  std::string key;
  for (const TensorType& type : types) key += type.to_string() + ";";
  for (const std::string& name : overridden) key += name + "\n";
  return key;
}

bool contains(const SymbolRanges& ranges, const SymbolValues& sizes) {
  return std::ranges::all_of(ranges, [&](const SymbolRange& r) {
    return sizes[r.symbol] >= r.range.least && sizes[r.symbol] <= r.range.greatest;
  });
}

}  // namespace

/// With symbols for the dimensions that have a range of several sizes.
std::vector<TensorType> CompiledModel::types_of(const std::vector<TensorView>& operands,
                                                const SymbolRanges& ranges) const {
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    TensorType& type = types.emplace_back(operands[i].type());
    for (std::size_t a = 0; taking_[i]->dims && a < type.dims.size(); ++a) {
      const std::string& name = (*taking_[i]->dims)[a].name;
      if (!options_.dims.contains(name)) continue;
      const auto known = std::ranges::find(ranges, symbol_of(name), &SymbolRange::symbol);
      if (known != ranges.end() && known->range.least < known->range.greatest) type.dims[a] = Dim(known->symbol);
    }
  }
  return types;
}

/// Compiled for a part of the ranges; where sizes in it differ in what they ask of the graph, the part is cut there
/// first. Nothing where that does not do.
CompiledModel::Step* CompiledModel::step_of_range(const std::vector<TensorView>& operands,
                                                  const std::vector<std::string>& overridden, std::string& why) {
  for (;;) {
    const auto range =
        std::ranges::find_if(parts_of_range_, [&](const Range& r) { return contains(r.ranges, sizes_); });
    SymbolRanges open;
    std::ranges::copy_if(range->ranges, std::back_inserter(open),
                         [](const SymbolRange& r) { return r.range.least < r.range.greatest; });
    const std::vector<TensorType> types = types_of(operands, open);
    std::unique_ptr<Step>& step = range->steps[key_of(types, overridden)];
    if (step) return step.get();
    try {
      step = import(begin_import(*model_, types, overridden), open);
      return step.get();
    } catch (const NeedsSizes& needs) {
      why = needs.why;
      const std::vector<SymbolRanges> parts =
          needs.sign_of ? cut_by_sign(range->ranges, *needs.sign_of) : std::vector<SymbolRanges>();
      if (parts.size() < 2 || parts_of_range_.size() + parts.size() > most_parts) return nullptr;
      log().info("--dim: {} parts of the range are compiled: {}", parts_of_range_.size() - 1 + parts.size(), why);
      parts_of_range_.erase(range);
      for (const SymbolRanges& part : parts) parts_of_range_.push_back({part, {}});
    } catch (const Error& error) {  // what one size lacks, another may have: the sizes of this run decide
      if (error.status() != Status::invalid_argument && error.status() != Status::invalid_file &&
          error.status() != Status::unsupported)
        throw;
      why = error.what();
      return nullptr;
    }
  }
}

std::vector<SymbolRanges> CompiledModel::compiled_ranges() const {
  std::vector<SymbolRanges> list;
  for (const Range& range : parts_of_range_)
    if (std::ranges::any_of(range.steps, [](const auto& entry) { return entry.second != nullptr; }))
      list.push_back(range.ranges);
  return list;
}

CompiledModel::Step& CompiledModel::first_step(const std::vector<TensorView>& operands) {
  if (plan_) return *first_[""];
  std::vector<std::string> overridden;  // defaults that were given
  for (std::size_t i = inputs_.size(); i < taking_.size(); ++i) overridden.push_back(taking_[i]->name);
  std::string why;
  if (symbolic_)
    if (Step* const step = step_of_range(operands, overridden, why)) return *step;
  const std::vector<TensorType> types = types_of(operands, {});
  std::unique_ptr<Step>& step = first_[key_of(types, overridden)];
  if (!step) step = import(begin_import(*model_, types, overridden), {});  // throws where the model is at fault
  if (symbolic_) {
    symbolic_ = false;
    parts_of_range_.clear();
    why_not_symbolic_ = std::move(why);
    log().warn("--dim: every combination of sizes is compiled for itself: {}", why_not_symbolic_);
  }
  return *step;
}

}  // namespace cermet::onnx
