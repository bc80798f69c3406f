#include "model/checkpoint/checkpoint_report.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "model/checkpoint/quantization_check.hpp"
#include "model/decoder.hpp"
#include "model/linear_modules.hpp"

namespace cermet {
namespace {

constexpr std::int64_t scan_piece_bytes = std::int64_t{1} << 20;  // a multiple of every element's size

std::int64_t elements_of(const ExpectedTensor& tensor) {
  std::int64_t elements = 1;
  for (const std::int64_t dim : tensor.shape) elements *= dim;
  return elements;
}

/// Tensors that older programs stored and that are computed instead, or a second copy of tied embeddings.
bool is_harmless(std::string_view name, const ModelConfig& config) {
  return name.ends_with("rotary_emb.inv_freq") || name.ends_with("attn.masked_bias") || name.ends_with("attn.bias") ||
         (config.decoder.is_tied() && name == "lm_head.weight");
}

std::vector<StorageTotal> storage_of(const Checkpoint& checkpoint) {
  std::array<StorageTotal, dtype_count> totals{};
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    StorageTotal& total = totals[static_cast<std::size_t>(tensor.dtype)];
    total.dtype = tensor.dtype;
    ++total.tensors;
    total.elements += tensor.elements();
    total.bytes += tensor.bytes();
  }
  std::vector<StorageTotal> found;
  std::copy_if(totals.begin(), totals.end(), std::back_inserter(found),
               [](const StorageTotal& total) { return total.tensors > 0; });
  std::stable_sort(found.begin(), found.end(),
                   [](const StorageTotal& a, const StorageTotal& b) { return a.bytes > b.bytes; });
  return found;
}

/// Compares what is there with what the configuration needs.
void compare(const Checkpoint& checkpoint, CheckpointReport& report) {
  const ModelConfig& config = checkpoint.config();
  std::vector<std::string_view> names;
  const std::vector<ExpectedTensor> expected = expected_tensors(config, checkpoint.quantization());
  std::int64_t other_types = 0;
  for (const ExpectedTensor& tensor : expected) {
    names.push_back(tensor.name);
    const bool in_expert = tensor.name.find(".experts.") != std::string::npos;
    if (tensor.is_parameter)
      report.active_parameters +=
          in_expert ? elements_of(tensor) * config.experts_per_token / config.experts : elements_of(tensor);
    try {
      const bool as_stated = checkpoint.require(tensor).dtype == config.dtype;
      other_types += !as_stated && tensor.is_parameter && tensor.dtypes.contains(config.dtype);
    } catch (const Error& error) {
      report.problems.emplace_back(error.what());
    }
  }
  if (other_types > 0)
    report.warnings.push_back(fmt::format("{} tensors: expected {} as config.json states, found another type",
                                          other_types, name_of(config.dtype)));
  std::sort(names.begin(), names.end());
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    if (std::binary_search(names.begin(), names.end(), tensor.name) || is_harmless(tensor.name, config)) continue;
    report.warnings.push_back(fmt::format("{}: {}: expected no tensor of this name, found {}{}; nothing reads it",
                                          checkpoint.file_of(tensor).path().string(), quote(tensor.name),
                                          stored_name_of(tensor.dtype), shape_to_string(tensor.shape)));
  }
}

template <class Bits>
NonFiniteCount count(std::span<const std::byte> bytes, Bits exponent) {
  constexpr std::size_t block = 4096;  // elements; counts of one block fit 16 bits, so that the inner loop vectorises
  constexpr Bits magnitude = static_cast<Bits>(~(Bits{1} << (8 * sizeof(Bits) - 1)));
  NonFiniteCount total;
  std::array<Bits, block> values;
  for (std::size_t begin = 0; begin < bytes.size(); begin += sizeof values) {
    const std::size_t size = std::min(bytes.size() - begin, sizeof values);
    std::memcpy(values.data(), bytes.data() + begin, size);
    std::uint16_t nan = 0, infinite = 0;
    for (std::size_t i = 0; i < size / sizeof(Bits); ++i) {
      const Bits value = static_cast<Bits>(values[i] & magnitude);
      nan = static_cast<std::uint16_t>(nan + (value > exponent));
      infinite = static_cast<std::uint16_t>(infinite + (value == exponent));
    }
    total.nan += nan;
    total.infinite += infinite;
  }
  return total;
}

/// Part of a tensor.
struct Piece {
  std::size_t tensor;
  std::int64_t begin, bytes;
};

std::vector<Piece> pieces_of(const Checkpoint& checkpoint) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < checkpoint.tensors().size(); ++i) {
    const std::int64_t bytes = checkpoint.tensors()[i].bytes();
    for (std::int64_t begin = 0; begin < bytes; begin += scan_piece_bytes)
      pieces.push_back({i, begin, std::min(scan_piece_bytes, bytes - begin)});
  }
  return pieces;
}

std::vector<std::pair<std::string, std::int64_t>> schemes_of(const Checkpoint& checkpoint) {
  std::map<std::string, std::int64_t> counts;
  if (!checkpoint.quantization().stored()) return {};
  for (const LinearModule& module : linear_modules(checkpoint.config()))
    ++counts[std::string(name_of(checkpoint.quantization().of(module.name)))];
  return {counts.begin(), counts.end()};
}

/// What an engine would refuse beyond absent and misshapen tensors: scales, and schemes that do not go together.
void check_quantization(const Checkpoint& checkpoint, CheckpointReport& report) {
  if (!checkpoint.quantization().stored() || !report.problems.empty()) return;
  try {
    const Quantization quantization = checked_quantization(checkpoint);
    build_decoder(checkpoint.config(), {}, quantization, {.blocks = 1, .pages_per_sequence = 1, .table_positions = 16});
  } catch (const Error& error) {
    report.problems.emplace_back(error.what());
  }
}

}  // namespace

NonFiniteCount count_non_finite(DType dtype, std::span<const std::byte> elements) {
  switch (dtype) {
    case DType::bf16: return count<std::uint16_t>(elements, 0x7f80);
    case DType::f16: return count<std::uint16_t>(elements, 0x7c00);
    case DType::f32: return count<std::uint32_t>(elements, 0x7f800000);
    case DType::f64: return count<std::uint64_t>(elements, 0x7ff0000000000000);
    case DType::f8_e5m2: return count<std::uint8_t>(elements, 0x7c);
    case DType::f8_e4m3: return {.nan = count<std::uint8_t>(elements, 0x7e).nan};  // 0x7e is its largest number
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz: return {.nan = std::count(elements.begin(), elements.end(), std::byte{0x80})};
    case DType::f8_e8m0: return {.nan = std::count(elements.begin(), elements.end(), std::byte{0xff})};
    default: return {};
  }
}

CheckpointReport report(const Checkpoint& checkpoint) {
  CheckpointReport report;
  report.architecture = checkpoint.config().architecture_name;
  report.tensors = static_cast<std::int64_t>(checkpoint.tensors().size());
  report.bytes = checkpoint.total_bytes();
  report.storage = storage_of(checkpoint);
  for (const StorageTotal& total : report.storage) report.parameters += total.elements;
  for (const SafetensorsFile& file : checkpoint.files()) {
    report.files.push_back(
        {file.path().filename().string(), static_cast<std::int64_t>(file.tensors().size()), file.file_bytes()});
  }
  report.schemes = schemes_of(checkpoint);
  compare(checkpoint, report);
  return report;
}

CheckpointCheck check(const Checkpoint& checkpoint, ThreadPool& pool, const CheckOptions& options) {
  CheckpointCheck result;
  result.report = report(checkpoint);
  check_quantization(checkpoint, result.report);
  const std::span<const StoredTensor> tensors = checkpoint.tensors();
  const std::vector<Piece> pieces = pieces_of(checkpoint);
  std::vector<NonFiniteCount> counts(pieces.size());
  std::atomic<std::size_t> next{0};
  std::atomic<std::int64_t> done{0};
  pool.run([&](int thread) {
    try {
      std::vector<std::byte> buffer(scan_piece_bytes);
      for (std::size_t i = next++; i < pieces.size(); i = next++) {
        if (options.cancelled != nullptr && options.cancelled->load())
          fail(Status::cancelled, "{}: cancelled", checkpoint.folder().string());
        const std::span<std::byte> part = std::span(buffer).first(static_cast<std::size_t>(pieces[i].bytes));
        checkpoint.read(tensors[pieces[i].tensor], pieces[i].begin, part);
        counts[i] = count_non_finite(tensors[pieces[i].tensor].dtype, part);
        done += pieces[i].bytes;
        if (thread == 0 && options.on_progress) options.on_progress(done, checkpoint.total_bytes());
      }
    } catch (...) {
      next = pieces.size();  // the other threads stop after their piece
      throw;
    }
  });
  result.bytes_read = done;
  if (options.on_progress) options.on_progress(done, checkpoint.total_bytes());
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (counts[i].nan + counts[i].infinite == 0) continue;
    const StoredTensor& tensor = tensors[pieces[i].tensor];
    if (result.non_finite.empty() || result.non_finite.back().tensor != tensor.name) {
      result.non_finite.push_back({tensor.name, checkpoint.file_of(tensor).path().filename().string()});
    }
    result.non_finite.back().nan += counts[i].nan;
    result.non_finite.back().infinite += counts[i].infinite;
  }
  return result;
}

}  // namespace cermet
