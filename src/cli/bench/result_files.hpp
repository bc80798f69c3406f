// The files of --output, which `run` writes the results of ONNX models and graphs to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace cermet::cli {

/// Throws Error naming --output where it is neither new nor a folder: before a model is read.
void check_result_place(const std::string& output);

/// Where each result goes; none of them where `output` is empty. A folder, which is made: NAME.npy in it for every
/// result. A new name that ends in .npy: that file, for a model with one result; for others that throws Error.
std::vector<std::filesystem::path> result_files(const std::string& output, const std::vector<std::string>& names);

/// File names without ".npy", one for each result and no two the same: its name with '/' as '_'. Where names become the
/// same by that, or would be too long for a file, "_2" and so on follows; names that need no change keep theirs.
std::vector<std::string> file_names_of(const std::vector<std::string>& names);

}  // namespace cermet::cli
