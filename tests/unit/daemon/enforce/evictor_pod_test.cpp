// SPDX-License-Identifier: Apache-2.0
// Of a container its whole pod ends.
#include "tests/unit/daemon/enforce/evictor_fixture.h"

#include <csignal>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace berth::daemon {
namespace {

using cgroup::test::Child;
using model::EvictionStep;
using test::EvictorTest;

// A pod has two containers and a sandbox. None of them may end alone.
class PodEvictorTest : public testing::Test {
 protected:
  using Told = std::vector<std::string>;
  static std::string container(char digit) { return kPod + "/" + std::string(64, digit); }

  PodEvictorTest() {
    std::filesystem::create_directories(tree.root() / kPod);
    tree.make(kPod);
    tree.write(kPod, "memory.current", "8192\n");
    tree.write(kPod, "cgroup.kill", "");
    tree.write(kPod, "cgroup.procs", "");
    for (const char digit : {'a', 'b', 'c'}) {
      const std::string id = container(digit);
      tree.make(id);
      tree.write(id, "cgroup.kill", "");
      tree.write(id, "cgroup.procs", "");
      if (digit == 'c') continue;  // the sandbox
      cgroup::FoundWorkload& one = found[id];
      one.cgroup = *cgroup::Cgroup::open(tree.root(), id);
      one.identity.id = id;
      one.systemd_unit = "";
    }
  }
  void run_in(char digit, const Child& child) {
    tree.write(container(digit), "cgroup.procs", std::to_string(child.pid()) + "\n");
  }
  model::Result<std::vector<LogEntry>> begin(char digit) {
    model::Workload workload;
    workload.id = container(digit);
    const model::Action action{model::Evict{workload.id, EvictionStep::terminate, 4096, 30}, "eviction",
                               "d-000000000001", "because"};
    return evictor.begin(found.at(workload.id), workload, action, now, found);
  }
  static Told told(const std::vector<LogEntry>& entries) {
    Told list;
    for (const auto& entry : entries) list.push_back(entry.attribute + " " + entry.new_value);
    return list;
  }
  Told after(double seconds) {
    now += seconds;
    return told(evictor.advance(now));
  }
  bool is_being_evicted(char digit) const {
    const auto* mark = evictor.marks().of(container(digit), found.at(container(digit)).cgroup->id());
    return mark != nullptr && mark->evicted_at;
  }

  static inline const std::string kPod = "kubepods/besteffort/pod1-2";
  cgroup::test::FakeTree tree;
  Evictor::Found found;
  double now = 1000;
  Evictor evictor{{.proc_root = "/proc",
                   .units = [] { return static_cast<cgroup::UnitStopper*>(nullptr); },
                   .monotonic = [this] { return now; }}};
};

TEST_F(PodEvictorTest, OfAContainerItsWholePodEndsAndKubernetesIsAskedFirst) {
  Child first;
  Child second;
  Child sandbox;
  run_in('a', first);
  run_in('b', second);
  run_in('c', sandbox);
  const auto begun = begin('a');
  ASSERT_TRUE(begun) << begun.error().message();
  EXPECT_EQ(told(*begun), (Told{"decommission pod eviction"}));
  EXPECT_TRUE(is_being_evicted('a') && is_being_evicted('b')) << "both end";
  EXPECT_EQ(after(29), Told());
  EXPECT_EQ(first.died_of(), 0) << "Kubernetes has the time of a step";
  EXPECT_EQ(after(1), (Told{"terminate SIGTERM"}));
  for (Child* child : {&first, &second, &sandbox})
    EXPECT_TRUE(berth::test::eventually([&] { return child->died_of() == SIGTERM; }));
  tree.write(kPod, "cgroup.events", "populated 0\nfrozen 0\n");
  EXPECT_EQ(after(0.2), (Told{"end "}));
  EXPECT_FALSE(is_being_evicted('a') || is_being_evicted('b'));
}

TEST_F(PodEvictorTest, WhatIsLeftOfAPodIsKilledInThePodsOwnGroup) {
  Child stubborn([] { std::signal(SIGTERM, SIG_IGN); });
  run_in('b', stubborn);
  ASSERT_TRUE(begin('b'));
  EXPECT_EQ(after(30), (Told{"terminate SIGTERM"}));
  EXPECT_EQ(after(30), (Told{"kill cgroup.kill"}));
  EXPECT_EQ(tree.read(kPod, "cgroup.kill"), "1");
  EXPECT_EQ(tree.read(container('b'), "cgroup.kill"), "") << "no container alone";
}

TEST_F(PodEvictorTest, AnotherContainerOfThePodIsNotEvictedOnItsOwn) {
  Child child;
  run_in('a', child);
  ASSERT_TRUE(begin('a'));
  const auto second = begin('b');
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message().find("its pod is being evicted already"), std::string::npos);
}

TEST_F(PodEvictorTest, APodWithALatencySensitiveContainerStays) {
  Child child;
  run_in('a', child);
  found.at(container('b')).identity.workload_class = model::WorkloadClass::latency_sensitive;
  const auto begun = begin('a');
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().kind(), model::ErrorKind::refused);
  EXPECT_NE(begun.error().message().find("in it is latency-sensitive"), std::string::npos);
}

TEST_F(PodEvictorTest, AGroupThatAUserNamedLikeAPodEndsAlone) {
  Child child;
  run_in('a', child);
  found.at(container('a')).ground.user = 1000;
  const auto begun = begin('a');
  ASSERT_TRUE(begun) << begun.error().message();
  EXPECT_EQ(told(*begun), (Told{"terminate SIGTERM"}));
}

}  // namespace
}  // namespace berth::daemon
