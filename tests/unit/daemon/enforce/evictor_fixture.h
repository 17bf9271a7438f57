// SPDX-License-Identifier: Apache-2.0
// A cgroup of plain files, and an evictor whose clock the test moves on.
#pragma once

#include "daemon/enforce/evictor.h"
#include "tests/patience.h"
#include "tests/unit/cgroup/child.h"
#include "tests/unit/cgroup/fake_tree.h"

#include <csignal>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/xattr.h>

namespace berth::daemon::test {

using cgroup::test::Child;
using model::EvictionStep;

// Stops units by what the test says.
class FakeUnits final : public cgroup::UnitStopper {
 public:
  model::Result<void> stop_unit(const std::string& unit, const std::function<bool()>& is_same_run) override {
    asked.push_back(unit);
    if (!is_same_run()) return model::fail(model::ErrorKind::refused, "it restarted");
    return answer;
  }
  std::vector<std::string> asked;
  model::Result<void> answer;
};

class EvictorTest : public testing::Test {
 protected:
  static constexpr const char* kId = "batch/x";

  using Told = std::vector<std::string>;

  EvictorTest() {
    std::filesystem::create_directories(tree.root() / "batch");
    make_group();
  }
  void make_group() {
    tree.make(kId);
    tree.write(kId, "memory.current", "4096\n");
    tree.write(kId, "cgroup.kill", "");
    tree.write(kId, "cgroup.procs", "");
    target.cgroup = *cgroup::Cgroup::open(tree.root(), kId);
    target.identity.id = kId;
    workload.id = kId;
  }
  void run_in_it(std::initializer_list<const Child*> children) {
    std::string pids;
    for (const Child* child : children) pids += std::to_string(child->pid()) + "\n";
    tree.write(kId, "cgroup.procs", pids);
  }
  void name_invocation(const std::string& id) {
    const auto group = tree.root() / kId;
    ASSERT_EQ(setxattr(group.c_str(), "user.invocation_id", id.data(), id.size(), 0), 0);
  }
  void empty_group() { tree.write(kId, "cgroup.events", "populated 0\nfrozen 0\n"); }
  // The victims' processes are real ones, but their groups are the test's.
  void runs_in(const Child& child, const std::string& path) {
    tree.write_proc(std::to_string(child.pid()) + "/cgroup", "0::/" + path + "\n");
  }
  bool was_killed() const { return tree.read(kId, "cgroup.kill") == "1"; }

  static model::Action action_of(EvictionStep how = EvictionStep::terminate, double grace_s = 30) {
    return {model::Evict{kId, how, 4096, grace_s}, "eviction", "d-000000000001", "because"};
  }
  std::vector<std::string> begin(EvictionStep how = EvictionStep::terminate, double grace_s = 30) {
    const auto begun = evictor.begin(target, workload, action_of(how, grace_s), now);
    return begun ? told(*begun) : std::vector<std::string>{begun.error().message()};
  }
  std::vector<std::string> after(double seconds) {
    now += seconds;
    return told(evictor.advance(now));
  }
  static std::vector<std::string> told(const std::vector<LogEntry>& entries) {
    std::vector<std::string> list;
    for (const auto& entry : entries) {
      EXPECT_EQ(entry.kind, "evict");
      EXPECT_EQ(entry.decision, "d-000000000001");
      EXPECT_EQ(entry.workload, kId);
      list.push_back(entry.attribute + (entry.new_value.empty() ? "" : " " + entry.new_value) + " " +
                     entry.result);
    }
    return list;
  }
  void evict_it() {
    Child child;
    run_in_it({&child});
    ASSERT_EQ(begin(), (Told{"terminate SIGTERM applied"}));
    EXPECT_TRUE(dies_of(child, SIGTERM));
    empty_group();
    ASSERT_EQ(after(0.2), (Told{"end applied"}));
  }
  static bool dies_of(Child& child, int signal) {
    return berth::test::eventually([&] { return child.died_of() != 0; }) && child.died_of() == signal;
  }
  cgroup::test::FakeTree tree;
  cgroup::FoundWorkload target;
  model::Workload workload;
  FakeUnits units;
  double now = 1000;
  Evictor evictor{
      {.proc_root = "/proc", .units = [this] { return &units; }, .monotonic = [this] { return now; }}};
};

}  // namespace berth::daemon::test
