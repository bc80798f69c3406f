// What a file that means harm may not take: time and memory out of proportion to what it holds.
#include <algorithm>
#include <utility>

#include "onnx/importer.hpp"

namespace cermet::onnx {
namespace {

constexpr std::int64_t most_spent = 100'000;
constexpr std::int64_t most_made = std::int64_t{1} << 30;  ///< bytes of constants computed of others, beyond four times what the file has
constexpr double most_evaluated = 1 << 24;                 ///< elements and operations while importing, 10 to 50 ns each, beyond four for each byte of the file
constexpr double most_amplified = 4096;                    ///< times what a model is given, beyond a GiB, that a result may take
constexpr double least_refused = 1u << 30;

}  // namespace

/// A small file may say what takes forever: functions that call functions, loops within loops.
void Importer::spend() {
  if (++state_.spent > most_spent) fail(Status::unsupported, "expected at most {} operators with all iterations and calls, found more", most_spent);
}

/// The same of memory: a constant that is expanded to any size.
void Importer::make_room(const TensorType& type) {
  const std::int64_t bytes = type.bytes().constant(), most = most_made + 4 * std::min(model_.tensor_bytes, std::int64_t{1} << 50);
  if (bytes > most - state_.made_bytes)
    fail(Status::unsupported, "expected at most {} bytes of constants that are computed of others, found {} more than {}", most, bytes, state_.made_bytes);
  state_.made_bytes += bytes;
}

double Importer::work_left() const { return most_evaluated + 4 * static_cast<double>(std::min(model_.tensor_bytes, std::int64_t{1} << 50)) - state_.evaluated; }

/// And of what is computed by definitions, element by element, before anything runs: nothing else here takes longer.
void Importer::evaluate_work(double work) {
  if (work > work_left())
    fail(Status::unsupported, "expected at most {} elements and operations to compute while importing, found {} more than {}", work_left() + state_.evaluated,
         work, state_.evaluated);
  state_.evaluated += work;
}

/// Memory is planned for the largest sizes, so nothing may shrink while one of them grows.
void Importer::check_sizes(const TensorType& type) const {
  for (const Dim& dim : type.dims) {
    if (dim.is_constant()) continue;
    if (!dim.grows_with_symbols())
      throw NeedsSizes{fmt::format("{} makes the size {}, which does not grow with every size it is made of", here(), dim.to_string())};
    if (dim.bounds(ranges_).least < 0) throw NeedsSizes{fmt::format("{} makes the size {}, which is negative for some sizes", here(), dim.to_string())};
  }
}

/// And of what is computed when the model runs: an input of one element that is repeated 2^32 times.
void Importer::check_result(const TensorType& type) const {
  const auto bytes = static_cast<double>(type.bytes().value(greatest_));
  if (bytes > least_refused + most_amplified * state_.given_bytes)
    fail(Status::unsupported, "expected results that take at most {} times what the model is given ({} bytes), found {}", most_amplified, state_.given_bytes,
         type.to_string());
}

/// A weight of few bits stands for more bytes than it has.
void Lowering::make_room(Operand x, std::int64_t bytes) {
  Slot& slot = importer_.slot(x);
  if (slot.tensor && !std::exchange(slot.has_room, true)) importer_.state().made_bytes -= bytes;
}

}  // namespace cermet::onnx
