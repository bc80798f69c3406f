#include "select/tune/job_sizes.hpp"

#include <functional>
#include <set>

#include "op/schema/operator.hpp"
#include "select/tuning_key.hpp"

namespace cermet {

Region with_sizes(const Region& region, const SymbolValues& values) {
  Region result = region;
  for (RegionNode& node : result.nodes) {
    std::vector<std::optional<TensorType>> types;
    for (const auto& type : node.problem.inputs)
      types.push_back(type ? std::optional(TensorType{type->dtype, to_dims(bind(type->dims, values))}) : type);
    Problem problem = make_problem(definition(node.problem), std::move(types), node.problem.attributes);
    problem.constant_inputs = node.problem.constant_inputs;
    problem.target = node.problem.target;
    node.problem = std::move(problem);
  }
  return result;
}

Region without_symbols(const Region& region) { return with_sizes(region, region.maximum()); }

std::optional<Symbol> only_symbol(const Region& region) {
  const std::set<Symbol> symbols = symbols_of(region);
  return symbols.size() == 1 ? std::optional(*symbols.begin()) : std::nullopt;
}

std::vector<SymbolValues> sizes_of(const TuneJob& job) {
  const std::optional<Symbol> symbol = only_symbol(job.region);
  std::vector<SymbolValues> sizes{job.region.maximum()};
  if (!symbol) return sizes;
  const std::int64_t most = job.region.maximum()[*symbol];
  std::set<std::int64_t, std::greater<>> others;
  for (const std::int64_t size : {most / 4, most / 16, job.least})
    if (size >= job.least && size >= 1 && size < most) others.insert(size);
  for (const std::int64_t size : others) {
    sizes.push_back(job.region.maximum());
    sizes.back().set(*symbol, size);
  }
  return sizes;
}

}  // namespace cermet
