// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

std::string said(const std::string& kind, const std::string& result, const std::string& attribute = "",
                 const std::string& before = "", const std::string& after = "") {
  return sentence_of({{"kind", kind},
                      {"workload", "web"},
                      {"attribute", attribute},
                      {"old", before},
                      {"new", after},
                      {"result", result}});
}

TEST(Sentence, OfAPin) {
  EXPECT_EQ(said("pin", "applied", "cpuset.cpus", "", "0-3"),
            "web now runs on vCPUs 0-3 (before: all vCPUs)");
  EXPECT_EQ(said("pin", "observed", "cpuset.cpus", "4-7", "0-3"),
            "berth would pin web to vCPUs 0-3 (now vCPUs 4-7)");
  EXPECT_EQ(said("pin", "failed", "cpuset.cpus", "", "0-3"), "berth could not pin web to vCPUs 0-3");
  EXPECT_EQ(said("pin", "gone", "cpuset.cpus", "", "0-3"),
            "web ended before berth could pin web to vCPUs 0-3");
  EXPECT_EQ(said("unpin", "applied", "cpuset.cpus", "0-3", ""),
            "web may use all vCPUs again (before: vCPUs 0-3)");
}

TEST(Sentence, OfALimit) {
  EXPECT_EQ(said("set-cpu-quota", "applied", "cpu.max", "200000 100000", "150000 100000"),
            "web has a CPU quota of 1.50 cores now (before: 2.00 cores)");
  EXPECT_EQ(said("set-cpu-quota", "observed", "cpu.max", "max 100000", "150000 100000"),
            "berth would set the CPU quota of web to 1.50 cores (now no limit)");
  EXPECT_EQ(said("set-memory-nodes", "applied", "cpuset.mems", "", "0"),
            "web now has its memory on NUMA node 0 (before: all NUMA nodes)");
  EXPECT_EQ(said("restore", "restored", "cpuset.mems", "0-1", ""),
            "web may have memory on all NUMA nodes again (before: NUMA nodes 0-1)");
  EXPECT_EQ(said("set-cpu-priority", "applied", "cpu.idle", "0 300", "1"),
            "web has a CPU priority of idle now (before: weight 300)");
  EXPECT_EQ(said("set-cpu-priority", "observed", "cpu.idle", "1", "0"),
            "berth would set the CPU priority of web to weight 100 (now idle)");
  EXPECT_EQ(said("set-cpu-priority", "observed", "cpu.idle", "", "1"),
            "berth would set the CPU priority of web to idle (now the usual one)");
  EXPECT_EQ(said("set-memory-high", "applied", "memory.high", "max", "1610612736"),
            "web has a memory limit of 1.5 GiB now (before: no limit)");
  EXPECT_EQ(said("restore", "restored", "cpu.max", "150000 100000", "max 100000"),
            "web has its CPU quota of no limit again (before: 1.50 cores)");
  EXPECT_EQ(said("set-cpu-quota", "applied", "cpu.max", "nonsense", "1 0"),
            "web has a CPU quota of 1 0 now (before: nonsense)");
}

TEST(Sentence, OfAnEviction) {
  EXPECT_EQ(said("evict", "applied", "decommission", "1073741824", "SIGPWR"),
            "berth asks the executor web to leave by SIGPWR (1.0 GiB in use)");
  EXPECT_EQ(said("evict", "applied", "terminate", "", "StopUnit"), "berth asks web to end by StopUnit");
  EXPECT_EQ(said("evict", "applied", "kill", "", "cgroup.kill"),
            "berth kills the rest of web by cgroup.kill");
  EXPECT_EQ(said("evict", "applied", "end", "4096", ""), "web has ended (4.0 KiB in use)");
  EXPECT_EQ(said("evict", "observed", "terminate", "", ""), "berth would evict web");
  EXPECT_EQ(said("evict", "failed", "terminate", "", "SIGTERM"), "berth could not end web by SIGTERM");
}

TEST(Sentence, OfTheHostAndOthers) {
  EXPECT_EQ(said("advertise", "applied", "memory", "schedule", "no-schedule"),
            "the host takes no new work: its memory is short");
  EXPECT_EQ(said("admit", "refused"), "web may not start here now");
  EXPECT_EQ(said("admit", "applied", "reservation", "", "held"), "web may start: a place is kept for it");
  EXPECT_EQ(said("foreign", "left", "cpuset.cpus", "0-3", "0-7"),
            "another program changed the vCPUs of web: vCPUs 0-7 (berth had set vCPUs 0-3)");
  EXPECT_EQ(said("leaf", "applied", "cgroup.procs", "app", "app/berth-1"),
            "web has the cgroup app/berth-1 of its own now");
  EXPECT_EQ(said("restore", "gone"), "web is gone, and berth's changes with it");
  EXPECT_EQ(said("mode", "", "", "", "enforce"), "the mode is enforce now");
  EXPECT_EQ(said("dance", "applied", "feet", "1", "2"), "dance web feet: 1 -> 2") << "of a newer berthd";
  EXPECT_EQ(sentence_of(Document::object()), "  :  -> ");
}

}  // namespace
}  // namespace berth::cli
