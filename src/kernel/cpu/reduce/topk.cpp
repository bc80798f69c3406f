#include "op/topk.hpp"

#include <algorithm>

#include "base/checked.hpp"
#include "kernel/kernel.hpp"

namespace cermet::cpu {
namespace {

struct Entry {
  std::int64_t key, position;
};

/// Ranks a above b: the larger key, then the lower position.
bool better(const Entry& a, const Entry& b) { return a.key != b.key ? a.key > b.key : a.position < b.position; }

std::int64_t key_of(float x) { return order_key(x); }
std::int64_t key_of(format::bf16 x) { return order_key(format::to_float(x)); }
std::int64_t key_of(format::f16 x) { return order_key(format::to_float(x)); }
std::int64_t key_of(std::int32_t x) { return x; }
std::int64_t key_of(std::int64_t x) { return x; }

/// The k best of a row, best first. The heap's top is the worst of those kept, so that most elements cost one comparison.
template <class T>
void select(const T* x, std::int64_t n, bool largest, Entry* heap, std::int64_t k) {
  const auto entry = [&](std::int64_t i) { return Entry{largest ? key_of(x[i]) : ~key_of(x[i]), i}; };  // ~ reverses the order without overflow
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
  require(from.length() >= k, "topk: operand 0 (x): expected at least k = {} elements in a row, found {}", k, from.length());
  args.pool->run([&](int thread) {
    Entry* heap = reinterpret_cast<Entry*>(args.workspace) + thread * k;
    const std::int64_t threads = args.pool->size(), begin = from.count() * thread / threads, end = from.count() * (thread + 1) / threads;
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
  if (k == 0) return;
  switch (args.inputs[0].dtype) {
    case DType::f32: return topk_rows<float>(args, k, largest);
    case DType::bf16: return topk_rows<format::bf16>(args, k, largest);
    case DType::f16: return topk_rows<format::f16>(args, k, largest);
    case DType::i32: return topk_rows<std::int32_t>(args, k, largest);
    default: return topk_rows<std::int64_t>(args, k, largest);
  }
}

}  // namespace

extern const Kernel heap_topk{
    .name = "heap.topk",
    .op = OpKind::topk,
    .summary = "a heap of k entries per thread; rows spread over threads",
    .bind = [](const Problem& p) -> Launcher {
      return [k = p.attributes.integer("k"), largest = p.attributes.flag("largest")](const LaunchArgs& args) { topk(args, k, largest); };
    },
    .workspace = [](const Problem& p, int threads) -> std::int64_t { return p.attributes.integer("k") * threads * static_cast<std::int64_t>(sizeof(Entry)); },
};

}  // namespace cermet::cpu
