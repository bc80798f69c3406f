#include "model/arch/architecture.hpp"

#include <array>

namespace cermet {

std::span<const ArchitectureDefinition* const> all_architectures() {
  static constexpr std::array definitions{
#define X(name) &name##_architecture,
#include "model/arch/architectures.inc"
#undef X
  };
  return definitions;
}

const ArchitectureDefinition& definition_of(Architecture architecture) {
  return *all_architectures()[static_cast<std::size_t>(architecture)];
}

}  // namespace cermet
