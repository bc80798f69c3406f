// Runs of neighbouring results on their way through an epilogue.
#pragma once

#include "kernel/cuda/device/tile/epilogue.cuh"

namespace cermet::epilogue {

/// Values of `Run` neighbours, 16 bytes at a time.
template <class T, int Run>
CERMET_DEVICE void load_run(const T* at, uint32_t (&bits)[Run]) {
  constexpr int piece = min_of(Run, per_16_bytes<T>);
#pragma unroll
  for (int i = 0; i < Run; i += piece) {
    const auto v = *reinterpret_cast<const Vector<T, piece>*>(at + i);
#pragma unroll
    for (int j = 0; j < piece; ++j) bits[i + j] = bits_of(v[j]);
  }
}
template <class T, int Run>
CERMET_DEVICE void store_run(T* at, const T (&values)[Run]) {
  constexpr int piece = min_of(Run, per_16_bytes<T>);
#pragma unroll
  for (int i = 0; i < Run; i += piece) {
    Vector<T, piece> v;
#pragma unroll
    for (int j = 0; j < piece; ++j) v[j] = values[i + j];
    *reinterpret_cast<Vector<T, piece>*>(at + i) = v;
  }
}

/// Results of row `row`, columns `column` .. + Run, of which those before `end` exist. `vectors`: runs are aligned,
/// here and in the operands.
template <class E, int Run>
CERMET_DEVICE void store_results(const Operand* extra, const ResultRows& to, int row, int column, int end, bool vectors,
                                 const float (&sums)[Run]) {
  const auto first = [&]<class Result>(Which<Result>, void* data, int64_t step) {
    return static_cast<Element<Result::out>*>(data) + row * step + column;
  };
  /// each(which result, its first place)
  const auto for_results = [&](auto&& each) {
    each(Which<E>{}, first(Which<E>{}, to.y, to.y_row));
    if constexpr (gives_two<E>)
      each(Which<typename E::Second>{}, first(Which<typename E::Second>{}, to.second, to.second_row));
  };
  ValuesOf<E> x;
  load_row<E>(extra, row, 0, x);
  if (vectors && column + Run <= end) {
    uint32_t bits[E::extras > 0 ? E::extras : 1][Run];
    for_constants<E::extras>([&]<int I>(Constant<I>) {
      if constexpr (!of_rows(E::extra[I])) load_run(address_of<E::extra[I]>(extra[I], row, column, 0), bits[I]);
    });
    for_results([&]<class Result>(Which<Result>, auto* at) {
      using Out = Element<Result::out>;
      Out values[Run];
#pragma unroll
      for (int i = 0; i < Run; ++i) {
        for_constants<E::extras>([&]<int I>(Constant<I>) {
          if constexpr (!of_rows(E::extra[I])) x.bits[I] = bits[I][i];
        });
        values[i] = rounded<Out>(Result::value(sums[i], x));
      }
      store_run(at, values);
    });
    return;
  }
#pragma unroll
  for (int i = 0; i < Run; ++i) {
    if (column + i >= end) break;
    load_place<E>(extra, row, column + i, 0, x);
    for_results([&]<class Result>(Which<Result>, auto* at) {
      at[i] = rounded<Element<Result::out>>(Result::value(sums[i], x));
    });
  }
}

}  // namespace cermet::epilogue
