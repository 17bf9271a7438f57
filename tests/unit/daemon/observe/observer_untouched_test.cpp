// SPDX-License-Identifier: Apache-2.0
// Observe mode shows a snapshot without what its plans would hold. It must be the one of a whole assemble().
#include "daemon/observe/observer.h"
#include "model/json.h"
#include "tests/unit/daemon/fake_node.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

// A host of random workloads, and plans that would hold and evict some of them.
class RandomNode {
 public:
  explicit RandomNode(unsigned seed) : random_(seed) {
    for (int i = 0, count = upto(12); i <= count; ++i) {
      const std::string id = fmt::format("{}/{}", one_in(2) ? "web" : "batch", i);
      node_.add_group(id, one_in(3) ? "0-3" : "");
      if (one_in(3)) node_.put(id, "cpu.max", "400000 100000");
      if (one_in(3)) node_.put(id, "memory.high", "81920");
      ids_.push_back(id);
    }
    auto started = Observer::start(node_.hierarchy(), node_.settings().rules, node_.proc(), node_.sys(), 10);
    if (started) observer_ = std::move(*started);
  }

  bool started() const { return observer_ != nullptr; }

  // The snapshot without what would be held: as observe mode makes it, and by a whole assemble().
  std::pair<std::string, std::string> tick(double now) {
    if (one_in(3)) come_or_go();
    observer_->take_changes();
    observer_->read(now);
    change_facts();
    change_standing(now);
    const std::string covered =
        model::to_json(observer_->assemble({.overrides = *overrides_, .standing = standing_}));
    observer_->take_off();
    std::string untouched = model::to_json(observer_->snapshot());
    shown_other_ |= covered != untouched;
    return {std::move(untouched), model::to_json(observer_->assemble({.overrides = *overrides_}))};
  }
  // Whether anything held was ever seen in a snapshot.
  bool shown_other() const { return shown_other_; }

 private:
  int upto(int most) { return std::uniform_int_distribution(0, most)(random_); }
  bool one_in(int n) { return upto(n - 1) == 0; }

  void come_or_go() {
    const std::string& id = ids_[static_cast<std::size_t>(upto(static_cast<int>(ids_.size()) - 1))];
    if (one_in(2)) {
      node_.restart_group(id);
    } else {
      const std::string another = fmt::format("batch/late-{}", ids_.size());
      node_.add_group(another);
      ids_.push_back(another);
    }
  }

  // Of this run or, now and then, of another one.
  std::uint64_t run_of(const std::string& id) { return observer_->cgroup_id(id) + (one_in(8) ? 1 : 0); }

  void change_standing(double now) {
    for (const std::string& id : ids_) {
      if (one_in(8)) standing_.runs.erase(id);
      model::RunMemory& memory = standing_.runs[id];
      if (memory.run.cgroup_id == 0) memory.run.cgroup_id = run_of(id);
      hold(memory, model::CpuSet{4, 5}, now);
      hold(memory, model::CpuQuota{1.5}, now);
      hold(memory, model::MemoryHigh{4096}, now);
      hold(memory, model::MemoryNodes{{0}}, now);
      if (one_in(6)) memory.evicted_at = now;
    }
  }

  void change_facts() {
    for (const std::string& id : ids_) {
      if (one_in(20)) (void)overrides_->set(id, observer_->cgroup_id(id), {{"service", "shop"}});
    }
  }

  void hold(model::RunMemory& memory, const model::AttributeValue& value, double now) {
    const model::HeldLimit limit{.since = now, .changed_at = now};
    if (one_in(4)) memory.held.insert_or_assign(attribute_of(value), model::HeldAttribute{value, limit});
    if (one_in(6)) memory.held.erase(attribute_of(value));
  }

  std::mt19937 random_;
  test::FakeNode node_;
  std::vector<std::string> ids_;
  std::unique_ptr<Observer> observer_;
  model::Standing standing_;
  std::optional<std::string> warning_;
  std::optional<Overrides> overrides_{std::in_place, node_.runtime_dir(), warning_};
  bool shown_other_ = false;
};

TEST(UntouchedSnapshot, EqualsThatOfAWholeAssemble) {
  bool shown_other = false;
  for (unsigned seed = 0; seed < 40; ++seed) {
    RandomNode node(seed);
    ASSERT_TRUE(node.started());
    for (int i = 0; i < 8; ++i) {
      const auto [untouched, whole] = node.tick(1000 + i);
      ASSERT_EQ(untouched, whole) << "seed " << seed << ", tick " << i;
    }
    shown_other |= node.shown_other();
  }
  EXPECT_TRUE(shown_other) << "nothing was ever held";
}

}  // namespace
}  // namespace berth::daemon
