#include "cli/explain/bisect_dump.hpp"

#include "io/npy.hpp"
#include "io/posix_file.hpp"

namespace cermet::cli {

void RegionDump::keep(const RegionResults& results) {
  const std::string number = fmt::format("{:04}", count_++);
  for (std::size_t r = 0; r < results.expected.size(); ++r) {
    write_npy(folder_.path() / fmt::format("{}.{}.expected.npy", number, r), results.expected[r].view);
    write_npy(folder_.path() / fmt::format("{}.{}.found.npy", number, r), results.found[r].view);
  }
  launches_.push_back({{"launch", results.launch},
                       {"super_kernel", results.super_kernel},
                       {"scope", results.scope},
                       {"kernel", results.kernel},
                       {"results", results.expected.size()},
                       {"same", results.same}});
}

void RegionDump::commit() {
  const std::string text = launches_.dump(2) + "\n";
  write_file_atomically(folder_.path() / "launches.json", text);
  folder_.commit();
}

}  // namespace cermet::cli
