// A norm of the rows that a product stores, as a transformer has it after the residual: the sum that it reads never
// has memory of its own.
#pragma once

#include <optional>
#include <vector>

#include "kernel/kernel.hpp"

namespace cermet::cpu {

class NormAfter {
 public:
  /// Whether the last node of a region is a norm after its product.
  static bool ends(const Region& region);
  /// Why that norm is not computed where the product stores its rows.
  static Decline declines(const Region& region);
  /// A region without that norm: the result is what the norm reads, in the place of what it makes. Operands keep their
  /// places; those of the norm alone, which are the last, are left out.
  static Region without(const Region& region);

  NormAfter() = default;
  /// Of a region that is not declined; nothing where no norm ends it.
  explicit NormAfter(const Region& region);
  /// Replaces the rows that the product has stored by their norm.
  void run(const LaunchArgs& args) const;

 private:
  Launcher launch_;
  std::vector<std::optional<std::size_t>> operands_;  ///< of the launch, after what it normalizes
  std::size_t result_ = 0;
};

}  // namespace cermet::cpu
