// The last step of quantizing: the layers of the working folder and what the source has around them become a
// checkpoint.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "model/checkpoint/checkpoint_files.hpp"
#include "model/checkpoint/quantization.hpp"
#include "quant/policy.hpp"
#include "quant/record.hpp"

namespace cermet {

enum class ExportFormat : std::uint8_t { compressed_tensors, modelslim };
std::string_view name_of(ExportFormat format);

/// What to write besides the tensors, and how.
struct ExportOptions {
  ExportFormat format = ExportFormat::compressed_tensors;
  bool allow_rounding = false;  ///< of what ModelSlim's product scales cannot hold exactly; the record lists it
  bool pack_experts = true;  ///< int8 values of experts as transformers 5 reads them; vLLM reads them plain where their
                             ///< inputs are int8, too
  ShardOptions shards;       ///< `stem` is the format's
};

/// The scheme of every module that the policy quantizes. Throws Error as Policy::check does.
SchemeMap scheme_map(const Policy& policy, std::span<const LinearModule> modules);

/// Puts layer files (working_folder's) and the source's other tensors together inside `working`, in place of what an
/// earlier run left there, and returns the folder. The bytes of the tensors depend on the layer files, the source and
/// the options alone. Memory stays at a piece of a tensor. Throws Error for a missing layer or a full disk.
std::filesystem::path assemble(const std::filesystem::path& model, const std::filesystem::path& working,
                               const QuantizationRecord& record, const ExportOptions& options);

/// Writes tensors, descriptor, config.json and, where there is one, the record into a folder that exists, and returns
/// what was rounded (see ExportOptions). `config_from`: the folder whose config.json is taken, without what it says
/// about quantization, and whose small files are copied.
std::vector<std::string> write_checkpoint(const std::filesystem::path& folder, const std::filesystem::path& config_from,
                                          std::vector<OutputTensor> tensors, std::span<const LinearModule> modules,
                                          const SchemeMap& schemes, std::optional<QuantizationRecord> record,
                                          const ExportOptions& options);

}  // namespace cermet
