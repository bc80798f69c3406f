// A timeline of kernels, in the trace format that chrome://tracing and Perfetto read.
#pragma once

#include <filesystem>

#include "model/engine.hpp"

namespace cermet::cli {

struct TraceOptions {
  std::int64_t prompt_tokens = 512, decode_steps = 4;
};

/// Throws Error(io) where write_trace could not write the file.
void check_trace_file(const std::filesystem::path& file);
/// Runs a prefill and some decode steps on sequence 0, which is cleared first, and writes an event for each launch:
/// start, duration, scope, kernel, operator, operand types, bytes, operations and the fraction of the device's limit
/// that it reached; limits are measured first. Of super-kernels with profile=1 also one for each task on each block, or
/// thread of the CPU; on a GPU from passes after the timed ones. The file appears complete or not at all.
void write_trace(const std::filesystem::path& file, Engine& engine, const TraceOptions& options);

}  // namespace cermet::cli
