// Densities over candidates, field by field: what a tree-structured Parzen estimator compares. The fields of a kernel
// count among its own candidates only.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "select/tune/candidates.hpp"

namespace cermet {

class ParzenFields {
 public:
  /// Modelled times are a field, too: the place of a candidate among them, in so many buckets.
  static constexpr int cost_buckets = 16;

  ParzenFields(const TuneCandidates& candidates, std::span<const int> cost_places);
  void add(std::size_t candidate);
  double log_density(std::size_t candidate) const;

 private:
  /// How often values were seen, with a share for those beside them, and a prior of one observation in all.
  class Field {
   public:
    explicit Field(int values = 1) : weight_(static_cast<std::size_t>(values), 1.0 / values) {}
    void add(int value);
    double log_density(int value) const;

   private:
    std::vector<double> weight_;
    double total_ = 1;
  };

  const TuneCandidates& candidates_;
  std::span<const int> cost_places_;
  std::map<const Kernel*, int> kernel_places_;
  Field kernels_, costs_{cost_buckets};
  std::map<const Kernel*, Field> own_;                  ///< whether it is the kernel's own choice
  std::map<const Kernel*, std::vector<Field>> fields_;  ///< of other candidates
};

}  // namespace cermet
