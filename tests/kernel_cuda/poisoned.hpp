// Operands whose bytes that some items do not read are spoiled.
#pragma once

#include <cstring>
#include <span>

#include "op/schema/case_data.hpp"
#include "op/schema/reference.hpp"
#include "tests/kernel_cuda/item_bytes.hpp"

namespace cermet {

/// With operands of its own, in the same layout.
inline CaseData copy_of(const CaseData& data) {
  CaseData copy{data.problem, {}, data.inputs};
  for (TensorView& view : copy.inputs) {
    const ByteRange range = byte_range(view);
    copy.owned_inputs.emplace_back(DType::u8, Shape{range.bytes});
    if (range.bytes == 0) continue;
    std::memcpy(copy.owned_inputs.back().memory.data(), range.begin, static_cast<std::size_t>(range.bytes));
    view.data = copy.owned_inputs.back().memory.data();
  }
  return copy;
}

/// Spoils the elements of `copy`, host memory in the layout of `view`, that none of the items first .. end - 1 reads;
/// returns how many. Numbers only: an index out of range would be an error of its own.
inline int poison(const TensorView& view, const TensorView& copy, std::span<const ByteRange> reads, std::int64_t first,
                  std::int64_t end) {
  const bool is_number = dtypes::real.contains(view.dtype) || dtypes::fp8.contains(view.dtype) ||
                         view.dtype == DType::i8 || view.dtype == DType::f64;
  if (!view.present || view.elements() == 0 || !is_number) return 0;
  ByteMap read(byte_range(view));
  for (std::int64_t item = first; item < end; ++item) read.mark(reads, item);
  const auto bytes = static_cast<std::int64_t>(size_of(view.dtype));
  int count = 0;
  for (std::int64_t e = 0; e < view.elements(); ++e) {
    const std::int64_t at = element_offset(view, e) * bytes;
    if (read.has_some(at, bytes)) continue;
    std::memset(copy.as<std::byte>() + at, 0x7f, static_cast<std::size_t>(bytes));
    ++count;
  }
  return count;
}

/// Whether an item of launch `before` and one of launch `after` touch a byte in common that one of them writes, byte by
/// byte.
inline bool common_bytes(const Plan& plan, std::size_t before, std::int64_t earlier, std::size_t after,
                         std::int64_t later) {
  const Launch &a = plan.launches()[before], &b = plan.launches()[after];
  const auto meet = [&](std::span<const ByteRange> first, std::span<const ByteRange> second) {
    for (const ByteRange& f : first)
      for (const ByteRange& s : second) {
        if (f.early || s.early || f.bytes == 0 || s.bytes == 0 || !f.overlaps(s)) continue;
        ByteRange whole = f;
        whole.box = {};
        ByteMap own(whole), other(whole);
        own.mark(f, earlier);
        other.mark(s, later);
        if (own.meets(other)) return true;
      }
    return false;
  };
  return meet(plan.writes(a), plan.reads(b)) || meet(plan.writes(a), plan.writes(b)) ||
         meet(plan.reads(a), plan.writes(b));
}

}  // namespace cermet
