// SPDX-License-Identifier: Apache-2.0
#include "cli/host_scan.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace berth::cli {
namespace {

namespace fs = std::filesystem;

class HostScan : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "berth-scan-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    write("cgroup/cgroup.controllers", "cpu memory\n");
    write("cgroup/cpuset.cpus.effective", "0-3,8\n");
    write("proc/uptime", "1000.0 500.0\n");
    write("proc/cpuinfo", "");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  // A process in the host's network namespace, with one socket.
  void add_process(int pid, const std::string& cgroup, const std::string& inode,
                   const std::string& command = "x", long started_s = 900) const {
    const std::string at = "proc/" + std::to_string(pid) + "/";
    write(at + "cgroup", "1:name=systemd:/x\n0::/" + cgroup + "\n");
    write(at + "cmdline", command);
    write(at + "stat", std::to_string(pid) + " (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 " +
                           std::to_string(started_s * sysconf(_SC_CLK_TCK)) + " 0");
    write(at + "net/tcp",
          "  sl  local_address rem_address   st\n"
          "   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 101 1\n"
          "   1: 0100007F:0050 0100007F:9999 01 00000000:00000000 00:00000000 00000000     0        0 102 1\n"
          "   2: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 103 1\n"
          "nonsense\n");
    fs::create_directories(root_ / (at + "fd"));
    fs::create_symlink("socket:[" + inode + "]", root_ / (at + "fd/3"));
    fs::create_symlink("/dev/null", root_ / (at + "fd/0"));
    fs::create_directories(root_ / (at + "ns"));
    fs::create_symlink("net:[1]", root_ / (at + "ns/net"));
  }
  SeenHost scan() const {
    const auto seen = scan_host(root_ / "proc", root_ / "cgroup", [this] {
      write("cgroup/system.slice/nginx.service/cpu.stat", "usage_usec 60000000\nuser_usec 1\n");
    });
    EXPECT_TRUE(seen) << (seen ? "" : seen.error().message);
    return seen.value_or(SeenHost());
  }

  fs::path root_;
};

TEST_F(HostScan, SeesSocketsAndUseOfEachUnit) {
  write("cgroup/system.slice/nginx.service/cpu.stat", "usage_usec 50000000\n");
  write("cgroup/system.slice/nginx.service/cpu.max", "150000 100000\n");
  write("cgroup/system.slice/db.service/cpu.max", "max 100000\n");
  add_process(10, "system.slice/nginx.service/worker", "101");
  add_process(11, "system.slice/nginx.service", "999");
  add_process(12, "system.slice/db.service", "103",
              std::string("java\0org.apache.spark.deploy.worker.Worker", 42));
  const SeenHost host = scan();
  EXPECT_EQ(host.cpus, 5U);
  ASSERT_EQ(host.units.size(), 2U);
  const SeenUnit& db = host.units[0];
  EXPECT_EQ(db.id, "system.slice/db.service");
  EXPECT_EQ(db.ports, (std::set<std::uint16_t>{5432}));
  EXPECT_EQ(db.connections, 0U);
  EXPECT_TRUE(db.spark);
  EXPECT_EQ(db.cores, std::nullopt);
  EXPECT_EQ(db.quota_cores, std::nullopt);
  const SeenUnit& nginx = host.units[1];
  EXPECT_EQ(nginx.id, "system.slice/nginx.service");
  EXPECT_EQ(nginx.processes, 2U);
  EXPECT_EQ(nginx.ports, (std::set<std::uint16_t>{80}));
  EXPECT_EQ(nginx.connections, 1U);
  EXPECT_FALSE(nginx.spark);
  EXPECT_NEAR(nginx.mean_cores.value_or(0), 0.6, 1e-9) << "60 s of CPU in 100 s";
  EXPECT_GT(nginx.cores.value_or(0), 0);
  EXPECT_EQ(nginx.quota_cores, 1.5);
}

TEST_F(HostScan, TheMeanOfAYoungUnitIsOverItsAgeAtTheEndOfTheLook) {
  write("cgroup/system.slice/young.service/cpu.stat", "usage_usec 1000000\n");
  write("cgroup/system.slice/old.service/cpu.stat", "usage_usec 99000000\n");
  add_process(20, "system.slice/young.service", "101", "x", 998);  // 2 s old as the look begins
  add_process(21, "system.slice/old.service", "101");              // 100 s old
  const auto seen = scan_host(root_ / "proc", root_ / "cgroup", [this] {
    write("proc/uptime", "1005.0 500.0\n");
    write("cgroup/system.slice/young.service/cpu.stat", "usage_usec 3500000\n");
    write("cgroup/system.slice/old.service/cpu.stat", "usage_usec 105000000\n");
  });
  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->units.size(), 2U);
  EXPECT_NEAR(seen->units[0].mean_cores.value_or(0), 1.0, 1e-9) << "105 s of CPU in 105 s";
  EXPECT_NEAR(seen->units[1].mean_cores.value_or(0), 0.5, 1e-9) << "3.5 s of CPU in 7 s";
}

TEST_F(HostScan, LeavesOutWhatNeedsNoRule) {
  add_process(1, "init.scope", "1");
  add_process(2, "user.slice/user-1000.slice/session-1.scope", "101");
  add_process(3, "kubepods.slice/kubepods-pod1.slice/cri-containerd-abc.scope", "101");
  add_process(4, "berth.slice/berthd.service", "101");
  add_process(5, "", "101");
  const SeenHost host = scan();
  EXPECT_TRUE(host.units.empty());
  EXPECT_EQ(host.kubernetes, 1U);
  EXPECT_EQ(host.hidden, 0U);
}

TEST_F(HostScan, BrokenFilesAreNoFault) {
  add_process(7, "system.slice/a.service", "101");
  for (const char* file : {"stat", "cmdline", "net/tcp"}) write(std::string("proc/7/") + file, "\xff");
  fs::remove_all(root_ / "proc/7/fd");
  write("cgroup/system.slice/a.service/cpu.stat", "usage_usec -1\n");
  write("cgroup/system.slice/a.service/cpu.max", "100 0\n");
  write("cgroup/cpuset.cpus.effective", "9-1,x\n");
  const SeenHost host = scan();
  ASSERT_EQ(host.units.size(), 1U);
  EXPECT_EQ(host.units[0].mean_cores, std::nullopt);
  EXPECT_EQ(host.units[0].quota_cores, std::nullopt);
  EXPECT_GT(host.cpus, 0U);
}

TEST_F(HostScan, FindsTheTreeWhereItIsMounted) {
  EXPECT_EQ(cgroup_root_of(root_ / "proc"), "/sys/fs/cgroup");
  write("proc/self/mountinfo",
        "25 1 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"
        "26 25 0:23 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "27 25 0:24 / /sys/fs/cgroup/unified rw,nosuid shared:5 - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(cgroup_root_of(root_ / "proc"), "/sys/fs/cgroup/unified");
}

TEST_F(HostScan, AHostWithoutCgroup2IsSaid) {
  const auto seen = scan_host(root_ / "proc", root_ / "proc", [] {});
  ASSERT_FALSE(seen);
  EXPECT_NE(seen.error().message.find("is no cgroup v2 tree"), std::string::npos);
}

}  // namespace
}  // namespace berth::cli
