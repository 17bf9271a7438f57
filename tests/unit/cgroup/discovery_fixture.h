// SPDX-License-Identifier: Apache-2.0
// Discovery in a directory that looks like a cgroup tree.
#pragma once

#include "cgroup/discovery.h"
#include "tests/patience.h"
#include "tests/unit/cgroup/fake_tree.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/xattr.h>

namespace berth::cgroup {

using model::WorkloadClass;
using model::WorkloadRule;
using test::FakeTree;
using Ids = std::vector<std::string>;

inline const std::string kId(64, 'a');
inline const std::string kScope = "machine.slice/libpod-" + kId + ".scope";

inline WorkloadRule rule(const std::string& match, WorkloadClass workload_class,
                         const std::string& origin = "berth.toml:1") {
  WorkloadRule made;
  made.match = match;
  made.origin = origin;
  made.workload_class = workload_class;
  return made;
}

inline WorkloadRule service(const std::string& match) {
  return rule(match, WorkloadClass::latency_sensitive);
}
inline WorkloadRule best_effort(const std::string& match) { return rule(match, WorkloadClass::best_effort); }

inline void append(Ids& to, const Ids& from) { to.insert(to.end(), from.begin(), from.end()); }

class DiscoveryTest : public ::testing::Test {
 protected:
  void start(std::vector<WorkloadRule> rules) {
    auto started = Discovery::start(tree.hierarchy(), std::move(rules));
    ASSERT_TRUE(started) << started.error().message();
    discovery = std::move(*started);
    changes = discovery->process();
  }
  // Takes in events until `done`; `changes` holds all of them.
  bool wait(const std::function<bool()>& done) {
    changes = {};
    const auto deadline = std::chrono::steady_clock::now() + berth::test::kPatience;
    while (!done()) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return false;
      pollfd waiting{discovery->fd(), POLLIN, 0};
      poll(&waiting, 1, static_cast<int>(left.count()));
      merge(discovery->process());
    }
    return true;
  }
  void merge(const Discovery::Changes& more) {
    append(changes.appeared, more.appeared);
    append(changes.vanished, more.vanished);
    append(changes.changed, more.changed);
    append(changes.warnings, more.warnings);
  }
  // Everything that has happened so far is taken in once a group made now is seen.
  void catch_up() {
    static int number = 0;
    const std::string marker = "marker-" + std::to_string(number++);
    tree.make(marker);
    ASSERT_TRUE(wait([&] { return has(marker); }));
    std::erase(changes.appeared, marker);
  }
  bool has(const std::string& id) const { return discovery->workloads().contains(id); }
  Ids ids() const {
    Ids all;
    for (const auto& [id, found] : discovery->workloads()) all.push_back(id);
    return all;
  }
  const FoundWorkload& found(const std::string& id) const { return discovery->workloads().at(id); }
  bool mark(const std::string& path, const std::string& name, const std::string& value) const {
    return setxattr((tree.root() / path).c_str(), name.c_str(), value.data(), value.size(), 0) == 0;
  }
  // All of `text` in one warning.
  testing::AssertionResult warned(const Ids& text) const {
    for (const std::string& warning : changes.warnings) {
      if (std::all_of(text.begin(), text.end(),
                      [&](const std::string& part) { return warning.find(part) != std::string::npos; })) {
        return testing::AssertionSuccess();
      }
    }
    auto failure = testing::AssertionFailure() << "not in";
    for (const std::string& warning : changes.warnings) failure << "\n  " << warning;
    return failure;
  }

  FakeTree tree;
  std::unique_ptr<Discovery> discovery;
  Discovery::Changes changes;
};

}  // namespace berth::cgroup
