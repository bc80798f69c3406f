// Writes the generated header of operators: ops_header FILE. A file that has the same text keeps its date, so that nothing is compiled again.
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>

#include "op/cpp_functions.hpp"

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::cerr << "usage: ops_header FILE\n";
    return 2;
  }
  const std::string header = cermet::cpp_functions_header();
  std::ifstream present(argv[1], std::ios::binary);
  if (present && std::string(std::istreambuf_iterator<char>(present), {}) == header) return 0;
  std::ofstream file(argv[1], std::ios::binary);
  file << header << std::flush;
  if (!file) std::cerr << argv[1] << ": cannot be written\n";
  return file ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
