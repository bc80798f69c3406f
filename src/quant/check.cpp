#include "quant/check.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <unordered_set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "format/element.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/checkpoint_report.hpp"
#include "quant/assemble.hpp"

namespace cermet {
namespace {

constexpr std::int64_t piece_bytes = std::int64_t{1} << 20;

class Check {
 public:
  Check(const std::filesystem::path& folder, ThreadPool& pool, const QuantizedCheckOptions& options)
      : checkpoint_(Checkpoint::open(folder)),
        quantization_(checkpoint_.quantization()),
        modules_(linear_modules(checkpoint_.config())),
        record_(QuantizationRecord::read(folder)),
        pool_(pool),
        options_(options) {
    if (!quantization_.stored())
      fail(Status::invalid_argument, "{}: expected a quantized checkpoint, found one without a descriptor",
           folder.string());
  }

  QuantizedCheck run() {
    check_schemes();
    check_names();
    check_input_scales();
    check_content();
    return std::move(result_);
  }

 private:
  template <class... Args>
  void violation(fmt::format_string<Args...> format, Args&&... args) {
    result_.violations.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void check_schemes() {
    if (record_) {
      const Policy policy = Policy::parse(record_->policy, QuantizationRecord::file_name);
      for (const LinearModule& module : modules_) {
        const LinearScheme expected = policy.scheme_of(module.name), found = quantization_.of(module.name);
        if (expected != found)
          violation("{}: expected {} (policy), found {} in the descriptor", module.name, name_of(expected),
                    name_of(found));
      }
    }
    std::map<std::string_view, const LinearModule*> first;
    for (const LinearModule& module : modules_) {
      const LinearModule& sibling = *first.emplace(module.group, &module).first->second;
      const LinearScheme expected = quantization_.of(sibling.name), found = quantization_.of(module.name);
      result_.modules += found != LinearScheme{};
      if (expected != found)
        violation("{}: expected the scheme of {}, {}, found {}", module.name, sibling.name, name_of(expected),
                  name_of(found));
    }
  }

  /// Tensors that are missing, misshapen, of another type, or that nothing reads.
  void check_names() {
    std::unordered_set<std::string_view> known;
    for (const ExpectedTensor& expected : expected_tensors(checkpoint_.config(), quantization_)) {
      try {
        known.insert(checkpoint_.require(expected).name);
      } catch (const Error& error) {
        violation("{}", error.what());
        if (const StoredTensor* tensor = checkpoint_.find(expected.name)) known.insert(tensor->name);
      }
    }
    for (const StoredTensor& tensor : checkpoint_.tensors())
      if (!known.contains(tensor.name))
        violation("{}: expected no such tensor, found {}{}", tensor.name, name_of(tensor.dtype),
                  shape_to_string(tensor.shape));
  }

  void check_input_scales() {
    std::map<std::string_view, std::pair<const LinearModule*, double>> first;
    for (const LinearModule& module : modules_) {
      const StoredTensor* scale = checkpoint_.find(module.name + ".input_scale");
      if (!scale || scale->elements() != 1) continue;
      std::vector<std::byte> bytes(static_cast<std::size_t>(scale->bytes()));
      checkpoint_.read(*scale, 0, bytes);
      const double value = format::load_element(bytes.data(), scale->dtype, 0);
      const auto& [sibling, expected] = first.emplace(module.input_group, std::pair(&module, value)).first->second;
      if (value != expected)
        violation("{}: expected the scale of {}, {}, found {}", scale->name, sibling->name, expected, value);
    }
  }

  void check_content() {
    struct Piece {
      const StoredTensor* tensor;
      std::int64_t begin, bytes;
    };
    std::vector<Piece> pieces;
    for (const StoredTensor& tensor : checkpoint_.tensors()) {
      ++result_.tensors;
      if (tensor.dtype == DType::i8 || tensor.dtype == DType::f8_e4m3) result_.quantized += tensor.elements();
      if (tensor.name.ends_with(".weight_packed")) result_.quantized += tensor.bytes();
      for (std::int64_t begin = 0; begin < tensor.bytes(); begin += piece_bytes)
        pieces.push_back({&tensor, begin, std::min(piece_bytes, tensor.bytes() - begin)});
    }
    std::atomic<std::size_t> next{0};
    std::atomic<std::int64_t> done{0};
    std::mutex mutex;
    std::map<std::string, std::pair<std::size_t, std::string>>
        found;  // of each tensor the first violation and its piece
    pool_.run([&](int thread) {
      std::vector<std::byte> buffer(piece_bytes);
      for (std::size_t i = next++; i < pieces.size(); i = next++) {
        if (options_.cancelled != nullptr && options_.cancelled->load()) fail(Status::cancelled, "cancelled");
        const Piece& piece = pieces[i];
        const std::span<std::byte> data = std::span(buffer).first(static_cast<std::size_t>(piece.bytes));
        checkpoint_.read(*piece.tensor, piece.begin, data);
        if (std::string what = problem_in(*piece.tensor, data); !what.empty()) {
          const std::lock_guard lock(mutex);
          auto& first = found.try_emplace(piece.tensor->name, pieces.size(), "").first->second;
          if (i < first.first) first = {i, std::move(what)};
        }
        done += piece.bytes;
        if (thread == 0 && options_.on_progress) options_.on_progress(done, checkpoint_.total_bytes());
      }
    });
    for (const auto& [tensor, first] : found) violation("{}: {}", tensor, first.second);
  }

  /// What is wrong with values of a tensor; empty where nothing is.
  std::string problem_in(const StoredTensor& tensor, std::span<const std::byte> data) const {
    const auto elements = static_cast<std::int64_t>(data.size() / size_of(tensor.dtype));
    const bool positive = tensor.name.ends_with("_scale");
    const int lowest = record_ && record_->range == 127 ? -127 : -128;
    if (tensor.name.ends_with(".weight_packed")) {
      const int least =
          std::to_integer<int>(*std::ranges::min_element(data)) - 128;  // rows that are padded have zeros there, +128
      return least < lowest ? fmt::format("expected quantized values from {} to 127, found {}", lowest, least) : "";
    }
    if (tensor.dtype == DType::i8) {
      const auto* quantized = reinterpret_cast<const std::int8_t*>(data.data());
      const std::int8_t least = *std::min_element(quantized, quantized + elements);
      return least < lowest ? fmt::format("expected quantized values from {} to 127, found {}", lowest, least) : "";
    }
    if (positive) {
      for (std::int64_t i = 0; i < elements; ++i) {
        double value = format::load_element(data.data(), tensor.dtype, i);
        if (tensor.dtype == DType::i64)
          value = format::float_from_bits(
              static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));             // a packed deq_scale
        if (value == 0 && tensor.name.ends_with(".weight_scale") && !record_) continue;  // other tools' rows of zeros
        if (!std::isfinite(value) || !(value > 0))
          return fmt::format("expected finite scales above 0, found {}", value);
      }
      return "";
    }
    const NonFiniteCount count = count_non_finite(tensor.dtype, data);
    return count.nan + count.infinite > 0
               ? fmt::format("expected finite values, found {} that are not", count.nan + count.infinite)
               : "";
  }

  Checkpoint checkpoint_;
  Quantization quantization_;
  std::vector<LinearModule> modules_;
  std::optional<QuantizationRecord> record_;
  ThreadPool& pool_;
  const QuantizedCheckOptions& options_;
  QuantizedCheck result_;
};

}  // namespace

QuantizedCheck check_quantized(const std::filesystem::path& folder, ThreadPool& pool,
                               const QuantizedCheckOptions& options) {
  return Check(folder, pool, options).run();
}

}  // namespace cermet
