// Normalizations of groups of channels that exporters write out, put together again; weights and biases join one by
// one.
#include "graph/rewrite/replace.hpp"

namespace cermet {
namespace {

using enum RoundingClass;

/// reshape to [B, groups, ..], a normalization of each of these "channels", and back.
bool normalizes_groups(const Match& m) {
  const Dims &x = m.type("x").dims, &a = m.type("a").dims, &y = m.type("y").dims;
  return x.size() >= 3 && x == y && a.size() >= 3 && a[0] == x[0] && a[1].is_constant() && x[1].is_constant() &&
         a[1].constant() > 0 && x[1].constant() % a[1].constant() == 0;
}
Attributes with_groups(const Match& m) {
  return {{"groups", m.type("a").dims[1].constant()}, {"eps", m.attributes(1).number("eps")}};
}

/// w has a number for each channel: [C, 1, 1] for [B, C, H, W].
bool is_per_channel(const Match& m) {
  const Dims &w = m.type("w").dims, &y = m.type("y").dims;
  const std::size_t places = y.size() - 2;
  if (w.size() < places + 1 || w.size() > y.size()) return false;
  for (std::size_t a = 0; a < w.size(); ++a)
    if (w[a] != (a + places + 1 == w.size() ? y[1] : Dim(1))) return false;
  return true;
}

constexpr std::string_view channels_only = "(w has a number for each channel)";

constexpr AlgebraRow group_norm_rows[] = {
    {"group-norm", strict, "a = reshape(x); y = reshape(instance_norm(a, 1, 0)) -> y = group_norm(x, -, -)",
     "(groups of channels)", normalizes_groups, with_groups},
    {"group-norm-weight", strict, "y = mul(group_norm(x, -, -), w@) -> y = group_norm(x, reshape(w) {shape = [-1]}, -)",
     channels_only, is_per_channel},
    {"group-norm-bias", strict, "y = add(group_norm(x, v, -), w@) -> y = group_norm(x, v, reshape(w) {shape = [-1]})",
     channels_only, is_per_channel},
    {"instance-norm-weight", strict,
     "y = mul(instance_norm(x, -, -), w@) -> y = instance_norm(x, reshape(w) {shape = [-1]}, -)", channels_only,
     is_per_channel},
    {"instance-norm-bias", strict,
     "y = add(instance_norm(x, v, -), w@) -> y = instance_norm(x, v, reshape(w) {shape = [-1]})", channels_only,
     is_per_channel},
};

}  // namespace

std::span<const AlgebraRow> group_norm_rules() { return group_norm_rows; }

}  // namespace cermet
