// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/enforce/actuators.h"
#include "daemon/enforce/enforcer.h"
#include "policies/decide.h"
#include "tests/unit/daemon/fake_node.h"

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::daemon::test {

// Ticks as the daemon does, with the plan in the test's hands where it wants it.
class EnforcerFixture : public testing::Test {
 protected:
  void start() {
    auto opened = Actuators::open(node.hierarchy(), node.state_dir(), node.sys(),
                                  Actuators::Units::directly_in_other_tree);
    if (!opened) throw std::runtime_error(opened.error().message());
    actuators = std::move(*opened);
    auto started = Observer::start(node.hierarchy(), node.settings().rules, node.proc(), node.sys(), 60);
    if (!started) throw std::runtime_error(started.error().message());
    observer = std::move(*started);
    enforcer.emplace(actuators->writer(), [this](const std::string& id) { observer->read_again(id); });
  }

  void look() {
    now += 1;
    observer->take_changes();
    entries = enforcer->follow(observer->found(), now);
    observer->read(now);
    auto found = enforcer->check(observer->readings(), observer->found(), observer->groups(),
                                 observer->others(), on_foreign, now);
    entries.insert(entries.end(), found.begin(), found.end());
    observer->assemble({.holdings = enforcer->holdings(),
                        .left_alone = enforcer->left_alone(),
                        .overrides = *overrides,
                        .standing = standing,
                        .refused = enforcer->refused()});
  }

  void carry_out(const model::Plan& wanted) {
    auto more = enforcer->apply(wanted, observer->snapshot(), observer->found(), observer->groups(),
                                observer->others(), std::chrono::seconds(5));
    entries.insert(entries.end(), more.begin(), more.end());
  }

  void tick() {
    look();
    plan = policies::decide(observer->snapshot(), node.settings().policies);
    carry_out(plan);
  }

  // As many ticks as it takes until every setting was read again, with all their entries.
  void several_ticks() {
    std::vector<LogEntry> all;
    for (unsigned i = 0; i < cgroup::Sampler::kSettingsPeriod + 2; ++i) {
      tick();
      all.insert(all.end(), entries.begin(), entries.end());
    }
    entries = std::move(all);
  }

  static model::Action pin_of(const std::string& id, const model::CpuSet& cpus) {
    return {model::Set{id, cpus}, "interference", "d-000000000001", "because"};
  }
  static model::Action unpin_of(const std::string& id) {
    return {model::GiveBack{id, model::Attribute::cpus}, "interference", "d-000000000002", "because"};
  }
  model::Plan plan_of(std::vector<model::Action> actions) const {
    model::Plan made;
    made.time = now;
    made.actions = std::move(actions);
    return made;
  }
  std::vector<std::string> results() const {
    std::vector<std::string> list;
    for (const auto& entry : entries) list.push_back(entry.kind + " " + entry.workload + " " + entry.result);
    return list;
  }
  // A control file that refuses to be written, to root as well.
  void make_unwritable(const std::string& path, const char* file = "cpuset.cpus") {
    std::filesystem::remove(node.tree() / path / file);
    std::filesystem::create_directory(node.tree() / path / file);
  }

  FakeNode node;
  std::unique_ptr<Actuators> actuators;
  std::unique_ptr<Observer> observer;
  std::optional<std::string> warning;
  std::optional<Overrides> overrides{std::in_place, node.runtime_dir(), warning};
  std::optional<Enforcer> enforcer;
  config::ForeignWriter on_foreign = config::ForeignWriter::yield;
  model::Standing standing;
  model::Plan plan;
  std::vector<LogEntry> entries;
  double now = 1000;
};

}  // namespace berth::daemon::test
