#include <algorithm>
#include <cstring>
#include <numeric>

#include "kernel/cpu/by_any_dtype.hpp"
#include "kernel/cpu/movement/copy.hpp"
#include "kernel/kernel.hpp"
#include "op/ordinal.hpp"
#include "op/schema/axes.hpp"

namespace cermet::cpu {
namespace {

enum Output : std::size_t { values, indices, inverse, counts, count };

struct Unique {
  std::optional<int> axis;
  bool sorted;
};

/// Slices of x, or its elements: their number, and elements of each.
struct Slices {
  std::int64_t count, length;

  Slices(const Shape& x, const Unique& unique)
      : count(unique.axis ? x[*unique.axis] : x.elements()), length(count > 0 ? x.elements() / count : 0) {}
};

/// Scratch: keys of all slices, then numbers of slices.
struct Scratch {
  std::int64_t *keys, *order, *leader, *group;

  Scratch(std::byte* workspace, const Slices& slices)
      : keys(reinterpret_cast<std::int64_t*>(workspace)),
        order(keys + slices.count * slices.length),
        leader(order + slices.count),
        group(leader + slices.count) {}
  static std::int64_t bytes(const Slices& slices) {
    return slices.count * (slices.length + 3) * static_cast<std::int64_t>(sizeof(std::int64_t));
  }
};

/// keys[slice][element], elements in row-major order without the axis.
template <class T>
void write_keys(const TensorView& x, const Unique& unique, const Slices& slices, std::int64_t* keys, ThreadPool& pool) {
  std::int64_t inner = 1;
  for (int a = unique.axis.value_or(x.shape.rank()) + 1; a < x.shape.rank(); ++a) inner *= x.shape[a];
  const Rows rows(x);
  pool.parallel_for(rows.count(), 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const T* row = reinterpret_cast<const T*>(rows.row(r));
      for (std::int64_t c = 0; c < rows.length(); ++c) {
        const std::int64_t i = r * rows.length() + c, slice = unique.axis ? i / inner % slices.count : i;
        const std::int64_t element = unique.axis ? i / (inner * slices.count) * inner + i % inner : 0;
        keys[slice * slices.length + element] = ordinal(row[c]);
      }
    }
  });
}

/// Numbers the groups; returns how many there are.
std::int64_t number_groups(const Scratch& s, const Slices& slices, bool sorted) {
  const auto key = [&](std::int64_t slice) { return s.keys + slice * slices.length; };
  std::iota(s.order, s.order + slices.count, 0);
  std::sort(s.order, s.order + slices.count, [&](std::int64_t a, std::int64_t b) {
    for (std::int64_t k = 0; k < slices.length; ++k)
      if (key(a)[k] != key(b)[k]) return key(a)[k] < key(b)[k];
    return a < b;
  });
  std::int64_t groups = 0;
  for (std::int64_t p = 0; p < slices.count; ++p) {
    const std::int64_t slice = s.order[p];
    const bool first = p == 0 || !std::equal(key(slice), key(slice) + slices.length, key(s.order[p - 1]));
    s.leader[slice] = first ? slice : s.leader[s.order[p - 1]];
    if (first) s.group[slice] = groups++;
  }
  if (sorted) return groups;
  groups = 0;
  for (std::int64_t slice = 0; slice < slices.count; ++slice)
    if (s.leader[slice] == slice) s.group[slice] = groups++;
  return groups;
}

/// y along the axis: the slice of each group's leader, then zeros.
void write_values(const LaunchArgs& args, const Unique& unique, const Slices& slices, std::int64_t groups) {
  const TensorView &x = args.inputs[0], &y = args.outputs[values];
  const auto bytes = byte_size(x.dtype);
  const auto* leaders = args.outputs[indices].as<const std::int64_t>();
  const Rows from(x), to(y);
  if (!unique.axis) {
    for (std::int64_t u = 0; u < slices.count; ++u) {
      std::byte* const target = to.row(0) + u * bytes;
      if (u < groups)
        std::memcpy(target, from.row(leaders[u] / from.length()) + leaders[u] % from.length() * bytes,
                    static_cast<std::size_t>(bytes));
      else std::memset(target, 0, static_cast<std::size_t>(bytes));
    }
    return;
  }
  const int axis = *unique.axis, last = x.shape.rank() - 1;
  std::int64_t inner = 1;  // rows, or elements where the axis is the last
  for (int a = axis + 1; a < last; ++a) inner *= x.shape[a];
  const std::int64_t run = axis == last ? bytes : from.length() * bytes;
  args.pool->parallel_for(x.elements() * bytes / run, 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t u = i / inner % slices.count, source = i + (u < groups ? (leaders[u] - u) * inner : 0);
      const auto place = [&](const Rows& rows, std::int64_t at) {
        return axis == last ? rows.row(at / slices.count) + at % slices.count * bytes : rows.row(at);
      };
      if (u < groups) std::memcpy(place(to, i), place(from, source), static_cast<std::size_t>(run));
      else std::memset(place(to, i), 0, static_cast<std::size_t>(run));
    }
  });
}

void find_unique(const LaunchArgs& args, const Unique& unique) {
  const TensorView& x = args.inputs[0];
  const Slices slices(x.shape, unique);
  const Scratch s(args.workspace, slices);
  by_any_dtype(x.dtype, [&](auto zero) { write_keys<decltype(zero)>(x, unique, slices, s.keys, *args.pool); });
  const std::int64_t groups = number_groups(s, slices, unique.sorted);
  auto* const at = args.outputs[indices].as<std::int64_t>();
  auto* const members = args.outputs[counts].as<std::int64_t>();
  std::fill_n(at, slices.count, 0);
  std::fill_n(members, slices.count, 0);
  for (std::int64_t i = 0; i < slices.count; ++i) {
    const std::int64_t group = s.group[s.leader[i]];
    args.outputs[inverse].as<std::int64_t>()[i] = group;
    if (s.leader[i] == i) at[group] = i;
    ++members[group];
  }
  *args.outputs[count].as<std::int64_t>() = groups;
  if (x.elements() > 0) write_values(args, unique, slices, groups);
}

Unique unique_of(const Problem& p) {
  const Ints& axis = p.attributes.integers("axis");
  return {axis.empty() ? std::nullopt : std::optional(wrap_axis(axis[0], p.input(0).rank())),
          p.attributes.flag("sorted")};
}

}  // namespace

extern const Kernel movement_unique{
    .name = "movement.unique",
    .op = OpKind::unique,
    .summary = "sorts the numbers of elements or slices by keys that order as they do",
    .bind = [](const Problem& p) -> Launcher {
      return [unique = unique_of(p)](const LaunchArgs& args) { find_unique(args, unique); };
    },
    .workspace = [](const Problem& p,
                    int) { return Scratch::bytes(Slices(bind(p.input(0).dims, p.maximum), unique_of(p))); },
};

}  // namespace cermet::cpu
