// Writes the generated headers of operators: ops_header OPS GRAPH_OPS C_OPS. A file that has the same text keeps its
// date, so that nothing is compiled again.
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "op/schema/c_functions.hpp"
#include "op/schema/cpp_functions.hpp"
#include "op/schema/cpp_methods.hpp"

namespace {

bool write(const char* path, const std::string& text) {
  std::ifstream present(path, std::ios::binary);
  if (present && std::string(std::istreambuf_iterator<char>(present), {}) == text) return true;
  std::ofstream file(path, std::ios::binary);
  file << text << std::flush;
  if (!file) std::cerr << path << ": cannot be written\n";
  return static_cast<bool>(file);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: ops_header OPS GRAPH_OPS C_OPS\n";
    return 2;
  }
  return write(argv[1], cermet::cpp_functions_header()) && write(argv[2], cermet::cpp_methods_header()) &&
                 write(argv[3], cermet::c_functions_header())
             ? 0
             : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
