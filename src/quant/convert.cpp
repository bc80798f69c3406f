#include "quant/convert.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "io/new_folder.hpp"
#include "model/checkpoint/checkpoint.hpp"
#include "model/checkpoint/modelslim_tensors.hpp"

namespace cermet {

ConvertResult convert(const std::filesystem::path& folder, const std::filesystem::path& out,
                      const ExportOptions& options) {
  const Checkpoint source = Checkpoint::open(folder);
  const Quantization& quantization = source.quantization();
  if (!quantization.stored())
    fail(Status::invalid_argument, "{}: expected a quantized checkpoint, found one without a descriptor",
         folder.string());
  const bool from_slim = quantization.format == Quantization::Format::modelslim;
  require(from_slim != (options.format == ExportFormat::modelslim),
          "{}: expected a checkpoint that is not {} yet, found one that is", folder.string(), name_of(options.format));
  if (!quantization.dense.empty())
    fail(Status::unsupported, "{}: expected quantized weights, found {} as real numbers", folder.string(),
         *quantization.dense.begin());
  const std::vector<LinearModule> modules = linear_modules(source.config());
  for (const LinearModule& module : modules)
    if (quantization.packed.contains(module.name) && module.columns % 4 != 0)
      fail(Status::unsupported, "{}: expected packed columns to be a multiple of 4, found {}", module.name,
           module.columns);
  std::vector<OutputTensor> tensors;
  for (const SafetensorsFile& file : source.files()) {  // in the order of the files
    const std::size_t first = tensors.size();
    for (const StoredTensor& tensor : source.tensors())
      if (&source.file_of(tensor) == &file && !tensor.name.ends_with(".weight_shape"))
        tensors.push_back(tensor.name.ends_with(".weight_packed") ? unpacked(copy_of(file, tensor))
                                                                  : copy_of(file, tensor));
    std::sort(tensors.begin() + static_cast<std::ptrdiff_t>(first), tensors.end(),
              [](const OutputTensor& a, const OutputTensor& b) { return a.stored->begin < b.stored->begin; });
  }
  if (from_slim) tensors = from_modelslim(tensors, modules, quantization.modules, source.config().dtype);

  NewFolder target(out);
  std::optional<QuantizationRecord> record = QuantizationRecord::read(folder);
  ConvertResult result;
  result.rounded = write_checkpoint(target.path(), folder, std::move(tensors), modules, quantization.modules,
                                    std::move(record), options);
  const Checkpoint written = Checkpoint::open(target.path());  // what was written can be read
  result.tensors = static_cast<std::int64_t>(written.tensors().size());
  result.bytes = written.total_bytes();
  target.commit();
  return result;
}

}  // namespace cermet
