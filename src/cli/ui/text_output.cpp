#include "cli/ui/text_output.hpp"

#include "base/error.hpp"
#include "io/output_target.hpp"
#include "io/posix_file.hpp"

namespace cermet::cli {

void check_text_output(const Console& console, const std::string& file) {
  if (file != "-") return require_writable(file);
  require(!console.json(), "-: expected a file with --json, which prints to standard output, found standard output");
}

bool write_text_output(Console& console, const std::string& file, std::string_view text) {
  if (file == "-") console.write(text);
  else write_file_atomically(file, text);
  return file != "-";
}

}  // namespace cermet::cli
