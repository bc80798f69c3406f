#include "foreign/cases.hpp"

#include <algorithm>

namespace cermet::foreign {
namespace {

CaseOperand operand_of(const Manifest& m, const ManifestOperand& operand, const std::vector<DType>& types,
                       std::size_t sizes) {
  TensorType type{operand.type >= 0 ? types[static_cast<std::size_t>(operand.type)] : operand.dtypes.front(), {}};
  for (const PatternDim& dim : operand.dims)
    type.dims.emplace_back(dim.name < 0 ? dim.constant
                                        : m.case_dims[sizes].at(m.variables[static_cast<std::size_t>(dim.name)].name));
  return {type, is_integer(type.dtype) ? integers(0, 1) : normal()};
}

Case case_of(const Manifest& m, std::size_t sizes, const std::vector<DType>& types) {
  Case made;
  made.name = fmt::format("manifest_{}", sizes);
  for (const DType type : types) made.name += fmt::format("_{}", name_of(type));
  made.inputs.resize(m.op->inputs.size());
  for (const ManifestOperand& operand : m.operands)
    if (!operand.is_result) made.inputs[operand.index] = operand_of(m, operand, types, sizes);
  for (const Attribute& attribute : m.attributes)
    if (!attribute.accepted.empty()) made.attributes.set(attribute.name, attribute.accepted.front());
  return made;
}

}  // namespace

std::vector<Case> cases_of(const Manifest& m) {
  std::vector<Case> list = m.op->cases();
  std::vector<std::size_t> at(m.types.size(), 0);
  for (bool more = !m.case_dims.empty(); more;) {
    std::vector<DType> types;
    for (std::size_t t = 0; t < at.size(); ++t) types.push_back(m.types[t].dtypes[at[t]]);
    for (std::size_t sizes = 0; sizes < m.case_dims.size(); ++sizes) list.push_back(case_of(m, sizes, types));
    more = false;
    for (std::size_t t = at.size(); t-- > 0 && !more;) {
      more = ++at[t] < m.types[t].dtypes.size();
      if (!more) at[t] = 0;
    }
  }
  return list;
}

}  // namespace cermet::foreign
