#include "jit/program_store.hpp"

#include <chrono>
#include <set>

#include "jit/jit.hpp"
#include "jit/wrapper.hpp"

namespace cermet {
namespace {

/// Throws where the driver found other parameters than the kernel's manifest lists: what a launch would pass for them
/// is not known then.
void check_parameters(const cuda::Program& program, const std::vector<std::uint32_t>& found) {
  const std::vector<std::uint32_t>& wanted = program.foreign->parameter_bytes;
  if (found.empty() || wanted == found) return;
  fail(Status::invalid_file, "{}: {}: expected parameters of {} bytes, as its manifest lists them, found {}",
       program.header, program.foreign->entry, fmt::join(wanted, ", "), fmt::join(found, ", "));
}

/// What a device loads: machine code, or PTX where launches are interpreted.
std::string architecture_of(const Device& device) {
  const std::string native = device.target()->architecture();
  const bool interprets = device.kind() == DeviceKind::null && device.computes();
  return interprets ? "compute" + native.substr(native.find('_')) : native;
}

}  // namespace

ProgramReport ProgramStore::prepare(std::span<const cuda::Program> programs) {
  const auto start = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  std::set<cuda::Program> missing_set;
  for (const cuda::Program& program : programs)
    if (!held_.contains(program)) missing_set.insert(program);
  ProgramReport report;
  if (missing_set.empty()) return report;
  const std::vector<cuda::Program> missing(missing_set.begin(), missing_set.end());
  const std::vector<jit::Image> images = jit::build(missing, architecture_of(*device_));
  for (std::size_t i = 0; i < missing.size(); ++i) {
    const cuda::Program& program = missing[i];
    (images[i].from_cache ? report.from_cache : report.compiled) += 1;
    LoadedFunction loaded =
        device_->load(images[i].bytes, program.foreign ? program.foreign->entry.c_str() : jit::entry_name,
                      program.threads, program.shared_bytes);
    if (program.foreign) check_parameters(program, device_->parameter_bytes(loaded.function));
    held_.emplace(program, cuda::LoadedProgram{std::move(loaded), program.threads, program.cluster,
                                               program.shared_bytes, program.alternates, program.fallback});
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

std::vector<cuda::LoadedProgram> ProgramStore::get(std::span<const cuda::Program> programs) {
  prepare(programs);
  const std::lock_guard lock(mutex_);
  std::vector<cuda::LoadedProgram> list;
  for (const cuda::Program& program : programs) list.push_back(held_.at(program));
  return list;
}

}  // namespace cermet
