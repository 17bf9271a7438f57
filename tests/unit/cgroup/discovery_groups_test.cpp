// SPDX-License-Identifier: Apache-2.0
// The groups of best-effort work.
#include "model/path.h"
#include "tests/unit/cgroup/discovery_fixture.h"

#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::cgroup {

namespace {

using Paths = std::set<std::string>;

Paths groups_of(Discovery& discovery) {
  Paths paths;
  const auto groups = discovery.best_effort_groups([&](const std::string& id) {
    return discovery.workloads().at(id).identity.workload_class == WorkloadClass::best_effort;
  });
  for (const auto& [path, group] : groups) {
    EXPECT_EQ(group.identity.id, path);
    EXPECT_EQ(group.cgroup->path(), path);
    paths.insert(path);
  }
  return paths;
}

class GroupsTest : public DiscoveryTest {
 protected:
  Paths groups() {
    discovery->process();
    return groups_of(*discovery);
  }
};

TEST_F(GroupsTest, AreTheHighestWithNothingButBestEffortWork) {
  for (const char* path : {"batch.slice", "batch.slice/a.service", "batch.slice/b.service", "system.slice",
                           "system.slice/batch.service", "system.slice/web.service"})
    tree.make(path);
  start({best_effort("batch.slice/*"), best_effort("system.slice/batch.service")});
  EXPECT_EQ(groups(), (Paths{"batch.slice", "system.slice/batch.service"}));
  const auto all = discovery->best_effort_groups([](const std::string&) { return true; });
  EXPECT_EQ(all.at("batch.slice").systemd_unit, "batch.slice");
  EXPECT_EQ(all.at("batch.slice").identity.workload_class, WorkloadClass::best_effort);
}

TEST_F(GroupsTest, NarrowWhenOtherWorkComesAndWidenWhenItGoes) {
  tree.make("batch.slice");
  tree.make("batch.slice/a.service");
  start({best_effort("batch.slice/a.service"), service("batch.slice/web.service")});
  EXPECT_EQ(groups(), Paths{"batch.slice"});
  for (const char* other : {"batch.slice/web.service", "batch.slice/unknown.service"}) {
    const auto version = discovery->groups_version();
    tree.make(other);
    EXPECT_EQ(groups(), Paths{"batch.slice/a.service"}) << other;
    EXPECT_NE(discovery->groups_version(), version);
    tree.remove(other);
    EXPECT_EQ(groups(), Paths{"batch.slice"}) << other;
  }
}

TEST_F(GroupsTest, AnEmptyCgroupDoesNotCountUntilItHasProcesses) {
  tree.make("batch.slice");
  tree.make("batch.slice/a.service");
  tree.make("batch.slice/unknown.service", false);
  tree.make("batch.slice/pod.slice", false);
  tree.make("batch.slice/pod.slice/inner", false);
  start({best_effort("batch.slice/a.service")});
  EXPECT_EQ(groups(), Paths{"batch.slice"});
  for (const char* path : {"batch.slice/unknown.service", "batch.slice/pod.slice/inner"}) {
    const auto version = discovery->groups_version();
    tree.make(path, true);
    EXPECT_EQ(groups(), Paths{"batch.slice/a.service"}) << path;
    EXPECT_NE(discovery->groups_version(), version);
    tree.make(path, false);
    EXPECT_EQ(groups(), Paths{"batch.slice"}) << path;
  }
}

TEST_F(GroupsTest, ProcessesBesideEmptyCgroupsCount) {
  for (const char* path : {"batch.slice", "batch.slice/a.service"}) tree.make(path);
  for (const char* path : {"batch.slice/other", "batch.slice/other/inner"}) tree.make(path, false);
  start({best_effort("batch.slice/a.service")});
  EXPECT_EQ(groups(), Paths{"batch.slice"});
  for (const bool runs : {true, false}) {
    const auto version = discovery->groups_version();
    tree.write("batch.slice/other", "cgroup.procs", runs ? "7\n" : "");
    tree.make("batch.slice/other", runs);
    EXPECT_EQ(groups(), Paths{runs ? "batch.slice/a.service" : "batch.slice"});
    EXPECT_NE(discovery->groups_version(), version);
  }
}

TEST_F(GroupsTest, ProcessesOfItsOwnCount) {
  tree.make("batch.slice");
  tree.make("batch.slice/a.service");
  tree.write("batch.slice", "cgroup.procs", "7\n");
  start({best_effort("batch.slice/a.service")});
  EXPECT_EQ(groups(), Paths{"batch.slice/a.service"});
  tree.write("batch.slice", "cgroup.procs", "");
  discovery->look_at_processes("batch.slice");
  EXPECT_EQ(groups(), Paths{"batch.slice"});
}

TEST_F(GroupsTest, WorkThatDoesNotCountKeepsWhatIsAboveItFromBeingOne) {
  tree.make("batch.slice");
  tree.make("batch.slice/a.service");
  tree.make("batch.slice/b.service");
  start({best_effort("batch.slice/*")});
  const auto all =
      discovery->best_effort_groups([](const std::string& id) { return id.ends_with("a.service"); });
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all.begin()->first, "batch.slice/a.service");
}

TEST_F(GroupsTest, WhatIsNotLookedAtCounts) {
  tree.make("batch.slice");
  tree.make("batch.slice/a.service");
  start({best_effort("batch.slice/a.service")});
  EXPECT_EQ(groups(), Paths{"batch.slice"});
  const auto version = discovery->groups_version();
  tree.make("batch.slice/\x01");
  EXPECT_EQ(groups(), Paths{"batch.slice/a.service"});
  EXPECT_NE(discovery->groups_version(), version);
}

TEST_F(GroupsTest, ASandboxSleepsAndAPodOfTheSystemDoesNot) {
  const std::string pods = "kubepods/besteffort";
  const auto container = [&](const char* pod, char digit, const char* score) {
    const std::string path = pods + "/" + pod + "/" + std::string(64, digit);
    const std::string pid = std::to_string(100 + digit);
    tree.make(path);
    tree.write(path, "cgroup.procs", pid + "\n");
    tree.write_proc(pid + "/oom_score_adj", std::string(score) + "\n");
  };
  tree.make("kubepods/burstable");
  for (const char* path : {"kubepods", "kubepods/besteffort", "kubepods/besteffort/pod1"}) tree.make(path);
  container("pod1", 'a', "1000");
  container("pod1", 'b', "-998");
  start({});
  EXPECT_EQ(groups(), Paths{pods});
  tree.make(pods + "/pod2");
  container("pod2", 'c', "-998");
  EXPECT_EQ(groups(), Paths{pods}) << "a pod that has its sandbox alone so far";
  container("pod2", 'd', "-997");
  EXPECT_EQ(groups(), Paths{pods + "/pod1"});
}

// A tree of cgroups. A name's end says what matches: "be" and "ls" are workloads, "un" is matched by nothing.
struct Group {
  bool populated = false;  // of a workload, or of a cgroup without children
  bool processes = false;  // its own, of one with children
};

class RandomTree {
 public:
  explicit RandomTree(unsigned seed) : random_(seed) {
    for (int i = 0, count = 1 + upto(14); i < count; ++i) add();
  }

  void change(Discovery& discovery) {
    if (cgroups_.empty() || upto(2) == 0) {
      add();
    } else if (upto(2) == 0) {
      const std::string path = any();
      tree.remove(path);
      std::erase_if(cgroups_, [&](const auto& it) { return model::is_within(it.first, path); });
    } else {
      const std::string path = any();
      Group& cgroup = cgroups_.at(path);
      (has_children(path) && kind(path) == "un" ? cgroup.processes : cgroup.populated) ^= true;
      write(path);
      discovery.look_at_processes(path);
    }
  }

  // The restatement: as docs/decisions/priority.md says it.
  Paths groups() const {
    Paths found;
    for (const auto& [path, cgroup] : cgroups_) {
      const std::string above(model::parent_path(path));
      if (in_workload(path) || !is_best_effort(path)) continue;
      if (above.empty() || !is_best_effort(above)) found.insert(path);
    }
    return found;
  }

  test::FakeTree tree;

 private:
  int upto(int last) { return static_cast<int>(random_() % static_cast<unsigned>(last + 1)); }
  std::string any() {
    return std::next(cgroups_.begin(), upto(static_cast<int>(cgroups_.size()) - 1))->first;
  }
  static std::string kind(const std::string& path) { return path.substr(path.size() - 2); }

  void add() {
    static constexpr const char* kKinds[] = {"be", "be", "ls", "un", "un"};
    const std::string above = cgroups_.empty() || upto(3) == 0 ? "" : any() + "/";
    if (std::count(above.begin(), above.end(), '/') > 3) return;
    const std::string path = above + std::to_string(number_++) + kKinds[upto(4)];
    cgroups_[path] = {.populated = upto(2) > 0, .processes = false};
    write(path);
  }

  void write(const std::string& path) {
    const Group& cgroup = cgroups_.at(path);
    tree.make(path, cgroup.populated);
    tree.write(path, "cgroup.procs", cgroup.processes ? "7\n" : "");
  }

  bool has_children(const std::string& path) const {
    const auto next = cgroups_.upper_bound(path + "/");
    return next != cgroups_.end() && next->first.starts_with(path + "/");
  }
  Paths children(const std::string& path) const {
    Paths found;
    for (const auto& [other, cgroup] : cgroups_) {
      if (model::parent_path(other) == path) found.insert(other);
    }
    return found;
  }
  // Whether a cgroup above is a workload, to which this one belongs.
  static bool in_workload(const std::string& path) {
    for (std::string above(model::parent_path(path)); !above.empty(); above = model::parent_path(above)) {
      if (kind(above) != "un") return true;
    }
    return false;
  }
  bool has_any_process(const std::string& path) const {
    const Group& cgroup = cgroups_.at(path);
    if (kind(path) != "un" || !has_children(path)) return cgroup.populated;
    const Paths below = children(path);
    return cgroup.processes ||
           std::any_of(below.begin(), below.end(), [this](const auto& it) { return has_any_process(it); });
  }
  bool is_best_effort(const std::string& path) const {
    if (kind(path) != "un") return kind(path) == "be" && cgroups_.at(path).populated;
    if (!has_children(path) || cgroups_.at(path).processes) return false;
    int work = 0;
    for (const std::string& child : children(path)) {
      if (!has_any_process(child)) continue;
      if (!is_best_effort(child)) return false;
      ++work;
    }
    return work > 0;
  }

  std::mt19937 random_;
  std::map<std::string, Group> cgroups_;
  int number_ = 10;
};

RC_GTEST_PROP(GroupsProperty, AreThoseOfThePlainRestatement, ()) {
  RandomTree random(*rc::gen::arbitrary<unsigned>());
  auto started = Discovery::start(random.tree.hierarchy(), {best_effort("*be"), best_effort("**/*be"),
                                                            service("*ls"), service("**/*ls")});
  RC_ASSERT(started.has_value());
  Discovery& discovery = **started;
  discovery.process();
  RC_ASSERT(groups_of(discovery) == random.groups());
  for (int change = 0; change < 8; ++change) {
    random.change(discovery);
    discovery.process();
    RC_ASSERT(groups_of(discovery) == random.groups());
  }
}

}  // namespace

}  // namespace berth::cgroup
