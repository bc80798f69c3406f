#include "base/cores.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <string>
#include <thread>

#include "tests/model/scratch.hpp"

namespace cermet {
namespace {

/// A root folder with the files that describe control groups.
class Root {
 public:
  void write(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories((scratch_.path() / path).parent_path());
    std::ofstream(scratch_.path() / path) << content;
  }
  std::optional<int> cores() const { return quota_cores(scratch_.path()); }

 private:
  test::ScratchFolder scratch_;
};

constexpr const char* v2_mount = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";

TEST(Cores, NoControlGroupLimitsNothing) { EXPECT_EQ(Root().cores(), std::nullopt); }

TEST(Cores, OfAContainerAreThoseOfItsQuota) {
  for (const auto& [text, expected] :
       {std::pair("200000 100000", std::optional(2)), std::pair("max 100000", std::optional<int>()),
        std::pair("250000 100000", std::optional(2)), std::pair("50000 100000", std::optional(1)),
        std::pair("", std::optional<int>()), std::pair("1600000 50000", std::optional(32))}) {
    const Root root;
    root.write("proc/self/mountinfo", v2_mount);
    root.write("proc/self/cgroup", "0::/\n");
    root.write("sys/fs/cgroup/cpu.max", std::string(text) + "\n");
    EXPECT_EQ(root.cores(), expected) << text;
  }
}

TEST(Cores, AGroupAboveMayAllowLess) {
  const Root root;
  root.write("proc/self/mountinfo", v2_mount);
  root.write("proc/self/cgroup", "0::/system.slice/job.service/part\n");
  root.write("sys/fs/cgroup/system.slice/job.service/part/cpu.max", "800000 100000\n");
  root.write("sys/fs/cgroup/system.slice/job.service/cpu.max", "300000 100000\n");
  root.write("sys/fs/cgroup/system.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(root.cores(), 3);
}

TEST(Cores, TheGroupOfTheHostIsTheTopOfAContainersMount) {
  const Root root;
  root.write("proc/self/mountinfo", "30 23 0:26 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n");
  root.write("proc/self/cgroup", "0::/docker/abc/inner\n");
  root.write("sys/fs/cgroup/cpu.max", "400000 100000\n");
  EXPECT_EQ(root.cores(), 4);
}

TEST(Cores, TheFirstVersionOfControlGroupsHasItsOwnFiles) {
  const Root root;
  root.write("proc/self/mountinfo",
             "33 32 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
             "34 32 0:30 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n");
  root.write("proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(root.cores(), std::nullopt);
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(root.cores(), 1);
}

TEST(Cores, AreThoseThatAThreadMayRunOn) {
  std::thread([] {
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &core);
    ASSERT_EQ(sched_setaffinity(0, sizeof core, &core), 0);
    EXPECT_EQ(usable_cores(), 1);
  }).join();
}

}  // namespace
}  // namespace cermet
