// Decode attention of FlashInfer over a paged cache: a rival of bench/gpu_suite.py.
//
// script/build-rivals builds it where FLASHINFER_DIR names the headers of FlashInfer, which are no part of this project.
// Rows: "decode B S D PAGING", 32 query and 8 KV heads, pages of 16 tokens, bf16. The faster of its two kernels answers: one for CUDA cores and one
// for tensor cores; both must agree. Plans are made ahead, as an engine makes them once a step.
#include <memory>

#include <flashinfer/attention/decode.cuh>
#include <flashinfer/attention/default_decode_params.cuh>
#include <flashinfer/attention/default_prefill_params.cuh>
#include <flashinfer/attention/prefill.cuh>
#include <flashinfer/attention/scheduler.cuh>
#include <flashinfer/attention/variants.cuh>

#include "rival.cuh"

namespace peer {

using namespace flashinfer;
using Bf16 = __nv_bfloat16;
using Id = std::int32_t;
using Variant = DefaultAttention<false, false, false, false>;
using Decode = BatchDecodeParams<Bf16, Bf16, Bf16, Id>;
using Prefill = BatchPrefillPagedParams<Bf16, Bf16, Bf16, Id>;
constexpr int heads = 32, kv_heads = 8, page = 16;
constexpr std::size_t scratch_bytes = 512u << 20, plan_bytes = 64u << 20;

std::unique_ptr<rival::Array<Id>> uploaded(const std::vector<Id>& values) {
  auto array = std::make_unique<rival::Array<Id>>(static_cast<std::int64_t>(values.size()));
  rival::check(cudaMemcpy(array->data(), values.data(), values.size() * sizeof(Id), cudaMemcpyHostToDevice), "cudaMemcpy");
  return array;
}

/// Length of sequence i of a row with uneven ones: as in Cermet's own rows.
int uneven_length(int capacity, int i) {
  const double fraction = (i + 1) * 0.6180339887498949;
  return std::min(capacity, 1 + static_cast<int>((fraction - std::floor(fraction)) * capacity));
}

/// One of the two kernels: memory of its plan, and its scratch.
struct Space {
  rival::Array<std::uint8_t> scratch{static_cast<std::int64_t>(scratch_bytes)}, plan{static_cast<std::int64_t>(plan_bytes)};
  std::vector<std::uint8_t> host = std::vector<std::uint8_t>(plan_bytes);
  template <class T>
  T* planned(std::int64_t offset) const {
    return reinterpret_cast<T*>(plan.data() + offset);
  }
  template <class T>
  T* scratched(std::int64_t offset) const {
    return reinterpret_cast<T*>(scratch.data() + offset);
  }
};

template <int D>
struct Bench {
  int batch, pages;
  std::int64_t sets;
  rival::Array<Bf16> q, k, v, o;
  std::vector<Id> starts{0}, queries{0};
  std::unique_ptr<rival::Array<Id>> page_list, page_starts, query_starts, last_page;
  Space decode_space, prefill_space;
  DecodePlanInfo decode_plan;
  PrefillPlanInfo prefill_plan;

  std::int64_t q_size() const { return std::int64_t{batch} * heads * D; }
  std::int64_t cache_size() const { return std::int64_t{batch} * pages * kv_heads * page * D; }
  static std::int64_t set_bytes(std::int64_t b, std::int64_t p) { return 4 * b * p * kv_heads * page * D; }

  Bench(int batch, int tokens, const std::string& paging)
      : batch(batch),
        pages(tokens / page * (paging == "uneven" ? 2 : 1)),
        sets(rival::sets_for(set_bytes(batch, pages))),
        q(sets * q_size()),
        k(sets * cache_size()),
        v(sets * cache_size()),
        o(sets * q_size()) {
    rival::fill(q, 1);
    rival::fill(k, 2);
    rival::fill(v, 3);
    std::vector<Id> list, last;
    for (int b = 0; b < batch; ++b) {
      const int length = paging == "uneven" ? uneven_length(pages * page, b) : pages * page, used = (length + page - 1) / page;
      for (int p = 0; p < used; ++p) {
        const std::int64_t at = std::int64_t{b} * pages + p;
        list.push_back(static_cast<Id>(paging == "contiguous" ? at : at * 7919 % (std::int64_t{batch} * pages)));
      }
      last.push_back(length - (used - 1) * page);
      starts.push_back(static_cast<Id>(list.size()));
      queries.push_back(b + 1);
    }
    page_list = uploaded(list);
    page_starts = uploaded(starts);
    query_starts = uploaded(queries);
    last_page = uploaded(last);
    plan();
  }

  void plan() {
    const auto estimate = BatchDecodeWithPagedKVCacheWorkEstimationDispatched<heads / kv_heads, D, PosEncodingMode::kNone, Variant, Decode>;
    rival::check(
        DecodePlan<D, PosEncodingMode::kNone, Variant, Decode>(decode_space.scratch.data(), scratch_bytes, decode_space.plan.data(), decode_space.host.data(),
                                                               plan_bytes, decode_plan, starts.data(), batch, heads, page, false, nullptr, estimate),
        "DecodePlan");
    rival::check(PrefillPlan<Id>(prefill_space.scratch.data(), scratch_bytes, prefill_space.plan.data(), prefill_space.host.data(), plan_bytes, prefill_plan,
                                 queries.data(), starts.data(), batch, batch, heads, kv_heads, D, D, page, false, 2, -1, -1, false, 0, 0, nullptr),
                 "PrefillPlan");
    rival::check(cudaDeviceSynchronize(), "plans");
  }

  paged_kv_t<Bf16, Id> cache(std::int64_t set) const {
    return paged_kv_t<Bf16, Id>(kv_heads, page, D, batch, QKVLayout::kHND, k.at(set * cache_size()), v.at(set * cache_size()), page_list->data(),
                                page_starts->data(), last_page->data());
  }

  void run_decode(std::int64_t set, cudaStream_t stream) const {
    Decode p(q.at(set * q_size()), nullptr, cache(set), o.at(set * q_size()), nullptr, nullptr, heads, heads * D, D, -1, 0, 1 / std::sqrt(float(D)), 1, 1e4f);
    p.request_indices = decode_space.planned<Id>(decode_plan.request_indices_offset);
    p.kv_tile_indices = decode_space.planned<Id>(decode_plan.kv_tile_indices_offset);
    p.o_indptr = decode_space.planned<Id>(decode_plan.o_indptr_offset);
    p.kv_chunk_size_ptr = decode_space.planned<Id>(decode_plan.kv_chunk_size_ptr_offset);
    p.padded_batch_size = static_cast<std::uint32_t>(decode_plan.padded_batch_size);
    Bf16* const sums = decode_plan.split_kv ? decode_space.scratched<Bf16>(decode_plan.v_offset) : nullptr;
    float* const weights = decode_plan.split_kv ? decode_space.scratched<float>(decode_plan.s_offset) : nullptr;
    rival::check((BatchDecodeWithPagedKVCacheDispatched<D, PosEncodingMode::kNone, Variant>(p, sums, weights, true, stream)), "decode");
  }

  void run_prefill(std::int64_t set, cudaStream_t stream) const {
    Prefill p(q.at(set * q_size()), cache(set), nullptr, query_starts->data(), nullptr, nullptr, o.at(set * q_size()), nullptr, nullptr, heads, heads * D, D,
              -1, 0, 1 / std::sqrt(float(D)), 1, 1e4f);
    p.request_indices = prefill_space.planned<Id>(prefill_plan.request_indices_offset);
    p.qo_tile_indices = prefill_space.planned<Id>(prefill_plan.qo_tile_indices_offset);
    p.kv_tile_indices = prefill_space.planned<Id>(prefill_plan.kv_tile_indices_offset);
    p.o_indptr = prefill_space.planned<Id>(prefill_plan.o_indptr_offset);
    p.kv_chunk_size_ptr = prefill_space.planned<Id>(prefill_plan.kv_chunk_size_ptr_offset);
    p.padded_batch_size = static_cast<std::uint32_t>(prefill_plan.padded_batch_size);
    p.max_total_num_rows = static_cast<std::uint32_t>(prefill_plan.total_num_rows);
    Bf16* sums = nullptr;
    float* weights = nullptr;
    if (prefill_plan.split_kv) {
      p.merge_indptr = prefill_space.planned<Id>(prefill_plan.merge_indptr_offset);
      sums = prefill_space.scratched<Bf16>(prefill_plan.v_offset);
      weights = prefill_space.scratched<float>(prefill_plan.s_offset);
    }
    if (prefill_plan.cta_tile_q != 16) throw std::runtime_error("expected a tile of 16 queries");
    rival::check(
        (BatchPrefillWithPagedKVCacheDispatched<true, 16, D, D, PosEncodingMode::kNone, false, MaskMode::kNone, Variant>(p, sums, weights, true, stream)),
        "prefill");
  }

  std::vector<float> result() const {
    std::vector<Bf16> raw(static_cast<std::size_t>(q_size()));
    rival::check(cudaMemcpy(raw.data(), o.data(), raw.size() * sizeof(Bf16), cudaMemcpyDeviceToHost), "result");
    rival::check(cudaMemset(o.data(), 0xff, raw.size() * sizeof(Bf16)), "cudaMemset");
    return std::vector<float>(raw.begin(), raw.end());
  }

  /// Throws unless both kernels give the same, to two hundredths of the largest value (a few units of bf16).
  void verify() const {
    run_decode(0, nullptr);
    const std::vector<float> one = result();
    run_prefill(0, nullptr);
    const std::vector<float> other = result();
    float largest = 0, apart = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      largest = std::max(largest, std::abs(one[i]));
      apart = std::max(apart, std::isnan(one[i] + other[i]) ? INFINITY : std::abs(one[i] - other[i]));
    }
    if (!(apart <= 0.02f * largest)) throw std::runtime_error("the two kernels differ by " + std::to_string(apart));
  }

  std::string answer(double seconds) const {
    verify();
    return rival::best_of("FlashInfer",
                          {{"CUDA cores", [this](std::int64_t set, cudaStream_t stream) { run_decode(set, stream); }},
                           {"tensor cores", [this](std::int64_t set, cudaStream_t stream) { run_prefill(set, stream); }}},
                          sets, seconds);
  }
};

std::string answer(const rival::Row& row, double seconds) {
  if (row.word(0) != "decode") throw std::runtime_error("expected decode B S D PAGING");
  const int batch = static_cast<int>(row.number(1)), tokens = static_cast<int>(row.number(2));
  if (row.number(3) == 64) return Bench<64>(batch, tokens, row.word(4)).answer(seconds);
  return Bench<128>(batch, tokens, row.word(4)).answer(seconds);
}

}  // namespace peer

int main() { return rival::serve("FlashInfer", peer::answer); }
