#include "op/ordinal.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/cpu/by_any_dtype.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {
namespace {

struct Entry {
  std::int64_t key, position;
};

/// Ranks a above b: the larger key, then the lower position.
bool better(const Entry& a, const Entry& b) { return a.key != b.key ? a.key > b.key : a.position < b.position; }

/// The k best of a row, best first. The heap's top is the worst of those kept, so that most elements cost one
/// comparison.
template <class T>
void select(const T* x, std::int64_t n, bool largest, Entry* heap, std::int64_t k) {
  const auto entry = [&](std::int64_t i) {
    return Entry{largest ? ordinal(x[i]) : ~ordinal(x[i]), i};
  };  // ~ reverses the order without overflow
  for (std::int64_t i = 0; i < k; ++i) heap[i] = entry(i);
  std::make_heap(heap, heap + k, better);
  for (std::int64_t i = k; i < n; ++i) {
    const Entry candidate = entry(i);
    if (!better(candidate, heap[0])) continue;
    std::pop_heap(heap, heap + k, better);
    heap[k - 1] = candidate;
    std::push_heap(heap, heap + k, better);
  }
  std::sort_heap(heap, heap + k, better);
}

template <class T>
void topk_rows(const LaunchArgs& args, std::int64_t k, bool largest) {
  const TensorView &values = args.outputs[0], &ids = args.outputs[1];
  const Rows from(args.inputs[0]), value_rows(values), id_rows(ids);
  require(from.length() >= k, "topk: operand 0 (x): expected at least k = {} elements in a row, found {}", k,
          from.length());
  args.pool->run([&](int thread) {
    Entry* heap = reinterpret_cast<Entry*>(args.workspace) + thread * k;
    const std::int64_t threads = args.pool->size(), begin = from.count() * thread / threads,
                       end = from.count() * (thread + 1) / threads;
    for (std::int64_t r = begin; r < end; ++r) {
      const T* x = reinterpret_cast<const T*>(from.row(r));
      select(x, from.length(), largest, heap, k);
      for (std::int64_t i = 0; i < k; ++i) {
        reinterpret_cast<T*>(value_rows.row(r))[i] = x[heap[i].position];
        if (ids.dtype == DType::i64) reinterpret_cast<std::int64_t*>(id_rows.row(r))[i] = heap[i].position;
        else reinterpret_cast<std::int32_t*>(id_rows.row(r))[i] = static_cast<std::int32_t>(heap[i].position);
      }
    }
  });
}

void topk(const LaunchArgs& args, std::int64_t k, bool largest) {
  if (k > 0) by_number_dtype(args.inputs[0].dtype, [&](auto zero) { topk_rows<decltype(zero)>(args, k, largest); });
}

}  // namespace

extern const Kernel heap_topk{
    .name = "heap.topk",
    .op = OpKind::topk,
    .summary = "a heap of k entries per thread; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [k = p.attributes.integer("k"), largest = p.attributes.flag("largest")](const LaunchArgs& args) {
        topk(args, k, largest);
      };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t {
      return p.attributes.integer("k") * threads * static_cast<std::int64_t>(sizeof(Entry));
    },
};

}  // namespace cermet::cpu
