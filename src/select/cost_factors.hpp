// What measured times are of modelled ones, by device and kernel: models of kernels' costs have constants that were
// fitted on one GPU, and a factor for each kernel holds them to another.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace cermet {

class CostFactors {
 public:
  /// Those that `cermet tune fit` stored beside the measured choices of this process (CERMET_TUNING); read once. None
  /// where those are off or a text table.
  static const CostFactors& process();
  /// Where they are kept for a value of CERMET_TUNING; empty where nowhere.
  static std::filesystem::path file_of(const std::string& place, const std::filesystem::path& cache_folder);
  /// What a file holds: nothing where there is none, and, with a warning, where it is damaged.
  static CostFactors read(const std::filesystem::path& file);
  /// Writes the file, in place of one that is there. Throws Error(io) naming what cannot be written.
  void write(const std::filesystem::path& file) const;

  bool empty() const { return factors_.empty(); }
  /// Of a kernel's modelled time on a device (TuningKey::device); 1 where nothing is known.
  double of(std::string_view device, std::string_view kernel) const;
  /// Replaces all factors of a device.
  void set(const std::string& device, std::map<std::string, double, std::less<>> factors);

 private:
  std::map<std::string, std::map<std::string, double, std::less<>>, std::less<>> factors_;  ///< by device and kernel
};

}  // namespace cermet
