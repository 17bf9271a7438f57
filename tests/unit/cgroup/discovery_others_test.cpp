// SPDX-License-Identifier: Apache-2.0
// The groups beside all workloads.
#include "model/path.h"
#include "tests/unit/cgroup/discovery_fixture.h"

#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace berth::cgroup {

namespace {

// By path: why it is left alone.
using Others = std::map<std::string, std::string>;

WorkloadRule ignored(const std::string& match) {
  WorkloadRule made = best_effort(match);
  made.ignored = true;
  return made;
}

Others others_of(Discovery& discovery, std::size_t most = 1000) {
  Others found;
  std::size_t more = 0;
  const auto spared = [](const std::string& path) {
    return path.ends_with("sp") ? std::optional<std::string>("spared") : std::nullopt;
  };
  const auto limited = [](const std::string& path) {
    return path.ends_with("limited") ? std::optional<std::string>("limited") : std::nullopt;
  };
  const auto held = [](const std::string& path, std::uint64_t) { return path.ends_with("held"); };
  const auto groups =
      discovery.other_groups({.spared = spared, .limited = limited, .held = held}, most, more);
  for (const auto& [path, group] : groups) {
    EXPECT_EQ(group.target.identity.id, path);
    EXPECT_EQ(group.target.cgroup->path(), path);
    found.emplace(path, group.left_alone);
  }
  return found;
}

class OthersTest : public DiscoveryTest {
 protected:
  Others others() {
    discovery->process();
    return others_of(*discovery);
  }
  void make_all(const std::vector<std::string>& paths) const {
    for (const std::string& path : paths) tree.make(path);
  }
  // From here on down it is a user's.
  void give_to_user(const std::string& path) const {
    std::filesystem::permissions(tree.root() / path, std::filesystem::perms::others_write,
                                 std::filesystem::perm_options::add);
  }
};

TEST_F(OthersTest, AreTheHighestWithoutAWorkload) {
  make_all({"system.slice", "system.slice/web.service", "system.slice/cron.service", "user.slice",
            "user.slice/session", "batch.slice", "batch.slice/job.service"});
  start({service("system.slice/web.service"), best_effort("batch.slice/*")});
  EXPECT_EQ(others(), (Others{{"system.slice/cron.service", ""}, {"user.slice", ""}}));
  tree.make("z.slice", false);
  discovery->process();
  std::size_t more = 0;
  const auto found =
      discovery->other_groups({.spared = [](const std::string&) { return std::nullopt; },
                               .limited = [](const std::string&) { return std::nullopt; },
                               .held = [](const std::string&, std::uint64_t) { return false; }},
                              1, more);
  EXPECT_EQ(found.at("system.slice/cron.service").target.systemd_unit, "cron.service");
  EXPECT_EQ(found.size(), 1U);
  EXPECT_EQ(more, 1U) << "beyond the limit, and without the one that has no processes";
}

TEST_F(OthersTest, FollowWhatComesAndGoes) {
  make_all({"user.slice", "user.slice/session"});
  start({service("user.slice/game")});
  EXPECT_EQ(others(), (Others{{"user.slice", ""}}));
  const auto version = discovery->groups_version();
  tree.make("user.slice/game");
  EXPECT_EQ(others(), (Others{{"user.slice/session", ""}}));
  EXPECT_NE(discovery->groups_version(), version);
  tree.remove("user.slice/game");
  EXPECT_EQ(others(), (Others{{"user.slice", ""}}));
}

TEST_F(OthersTest, AnEmptyCgroupIsOneOnceItHasProcesses) {
  tree.make("idle.slice", false);
  start({});
  EXPECT_EQ(others(), Others());
  for (const bool runs : {true, false}) {
    const auto version = discovery->groups_version();
    tree.make("idle.slice", runs);
    EXPECT_EQ(others(), runs ? Others({{"idle.slice", ""}}) : Others());
    EXPECT_NE(discovery->groups_version(), version);
  }
}

TEST_F(OthersTest, NothingAboveALimitedOneIsConfinedThoughItsPartsMayBe) {
  make_all({"a.slice", "a.slice/limited", "a.slice/limited/part", "a.slice/free", "b-limited",
            "b-limited/web", "b-limited/part"});
  start({service("b-limited/web")});
  EXPECT_EQ(others(), (Others{{"a.slice/free", ""}, {"a.slice/limited", "limited"}, {"b-limited/part", ""}}));
}

TEST_F(OthersTest, OneThatIsHeldIsOneWithoutProcessesToo) {
  tree.make("user-held", false);
  tree.make("user.slice", false);
  start({});
  EXPECT_EQ(others(), (Others{{"user-held", ""}}));
  tree.remove("user-held");
  EXPECT_EQ(others(), Others());
}

TEST_F(OthersTest, WithoutARuleAboutPodsNothingOfKubernetesIsConfined) {
  const std::string pod = "kubepods/burstable/pod1-2/" + kId;
  make_all({pod, "other.slice"});
  start({service("web.service")});
  auto found = others();
  EXPECT_EQ(found.at("other.slice"), "");
  EXPECT_NE(found.at("kubepods"), "");
  EXPECT_EQ(found.size(), 2U);
  discovery->set_rules({best_effort("kubepods/besteffort/**")});
  EXPECT_EQ(others(), (Others{{"kubepods", ""}, {"other.slice", ""}}));
}

TEST_F(OthersTest, PodsOfTheSystemAreNotConfined) {
  const std::string proxy = "kubepods/besteffort/podpod-1/" + kId;
  const std::string dns = "kubepods/burstable/podpod-2/" + kId;
  const std::string web = "kubepods/burstable/podpod-3/" + kId;
  for (const char* logs : {"kube-system_proxy_pod-1", "kube-system_dns_pod-2", "default_web_pod-3"})
    std::filesystem::create_directories(tree.hierarchy().pod_logs / logs);
  make_all({proxy, dns, web});
  start({});
  const auto found = others();
  EXPECT_FALSE(found.contains(proxy)) << "it is ignored";
  EXPECT_NE(found.at(dns), "");
  EXPECT_EQ(found.at("kubepods/burstable/podpod-3"), "");
  EXPECT_EQ(found.size(), 2U);
}

TEST_F(OthersTest, WhatIsIgnoredOrSparedIsNotConfinedAndNothingAboveIt) {
  make_all({"system.slice", "system.slice/a.service", "system.slice/x-sp", "system.slice/x-sp/inner",
            "machine.slice", "machine.slice/b.service", "machine.slice/c.service"});
  start({ignored("machine.slice/b.service")});
  EXPECT_EQ(others(), (Others{{"machine.slice/c.service", ""},
                              {"system.slice/a.service", ""},
                              {"system.slice/x-sp", "spared"}}));
}

TEST_F(OthersTest, NoNameOfAUserKeepsItsOutermostGroupFromBeingConfined) {
  make_all({"user.slice", "user.slice/user", "user.slice/user/job-be", "user.slice/user/x-sp",
            "user.slice/user/y-ig", "user.slice/user/spin"});
  give_to_user("user.slice/user");
  start({best_effort("user.slice/user/*-be"), ignored("**/*-ig"), service("user.slice/user/web")});
  EXPECT_EQ(others(), (Others{{"user.slice", ""}}));
  tree.make("user.slice/user/web", false);
  EXPECT_EQ(others(), (Others{{"user.slice", ""}})) << "nothing runs there";
  // The word of root is that: it named the service in the user's part.
  tree.write("user.slice/user/web", "cgroup.events", "populated 1\n");
  EXPECT_EQ(others(), Others()) << "and what the user named beside it is not confined";
  tree.make("user.slice/session");
  EXPECT_EQ(others(), (Others{{"user.slice/session", ""}}));
}

// A tree of cgroups. The end of a name gives its kind: "be" and "ls" are workloads, "ig" is ignored, "sp" is
// spared, and no rule matches "un".
struct AnyCgroup {
  bool populated = false;
  bool of_user = false;
};

class RandomHost {
 public:
  explicit RandomHost(unsigned seed) : random_(seed) {
    for (int i = 0, count = 1 + upto(14); i < count; ++i) add();
  }

  void change() {
    if (cgroups_.empty() || upto(2) == 0) {
      add();
    } else if (upto(2) == 0) {
      const std::string path = any();
      tree.remove(path);
      std::erase_if(cgroups_, [&](const auto& it) { return model::is_within(it.first, path); });
    } else {
      const std::string path = any();
      cgroups_.at(path).populated ^= true;
      write(path);
    }
  }

  // The restatement, as docs/decisions/pinning.md says it.
  Others others() const {
    Others found;
    for (const auto& [path, cgroup] : cgroups_) {
      const std::string above(model::parent_path(path));
      if (!is_named_by_root(path) || !is_looked_at(path) || !is_populated(path)) continue;
      if (kind(path) == "sp") {
        found.emplace(path, "spared");
      } else if (!is_divided(path) && (above.empty() || is_divided(above))) {
        found.emplace(path, "");
      }
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
  static bool is_workload(const std::string& path) { return kind(path) == "be" || kind(path) == "ls"; }

  void add() {
    static constexpr const char* kKinds[] = {"be", "ls", "ig", "sp", "un", "un", "un"};
    const std::string above = cgroups_.empty() || upto(3) == 0 ? "" : any() + "/";
    if (std::count(above.begin(), above.end(), '/') > 3) return;
    const std::string path = above + std::to_string(number_++) + kKinds[upto(6)];
    cgroups_[path] = {.populated = upto(2) > 0, .of_user = upto(4) == 0};
    write(path);
  }

  void write(const std::string& path) {
    const AnyCgroup& cgroup = cgroups_.at(path);
    tree.make(path, cgroup.populated);
    if (cgroup.of_user)
      std::filesystem::permissions(tree.root() / path, std::filesystem::perms::others_write,
                                   std::filesystem::perm_options::add);
  }

  bool is_roots(const std::string& path) const {
    return !cgroups_.at(path).of_user && is_named_by_root(path);
  }
  bool is_named_by_root(const std::string& path) const {
    const std::string above(model::parent_path(path));
    return above.empty() || is_roots(above);
  }
  // Below a workload, and below what root ignores or berth spares, all is as that is.
  bool is_looked_at(const std::string& path) const {
    for (std::string above(model::parent_path(path)); !above.empty(); above = model::parent_path(above)) {
      if (is_workload(above) || (is_roots(above) && kind(above) == "ig") ||
          (is_named_by_root(above) && kind(above) == "sp"))
        return false;
    }
    return true;
  }
  bool is_populated(const std::string& path) const { return cgroups_.at(path).populated; }
  bool is_divided(const std::string& path) const {
    if (is_workload(path)) return is_named_by_root(path);
    if (kind(path) == "ig" && is_named_by_root(path)) return true;
    if (kind(path) == "sp" && is_named_by_root(path)) return true;
    return std::any_of(cgroups_.begin(), cgroups_.end(), [&](const auto& it) {
      return model::parent_path(it.first) == path && is_divided(it.first);
    });
  }

  std::mt19937 random_;
  std::map<std::string, AnyCgroup> cgroups_;
  int number_ = 10;
};

RC_GTEST_PROP(OthersProperty, AreThoseOfThePlainRestatement, ()) {
  RandomHost random(*rc::gen::arbitrary<unsigned>());
  auto started =
      Discovery::start(random.tree.hierarchy(), {best_effort("*be"), best_effort("**/*be"), service("*ls"),
                                                 service("**/*ls"), ignored("*ig"), ignored("**/*ig")});
  RC_ASSERT(started.has_value());
  Discovery& discovery = **started;
  discovery.process();
  RC_ASSERT(others_of(discovery) == random.others());
  for (int change = 0; change < 8; ++change) {
    random.change();
    discovery.process();
    RC_ASSERT(others_of(discovery) == random.others());
  }
}

}  // namespace

}  // namespace berth::cgroup
