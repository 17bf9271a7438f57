// SPDX-License-Identifier: Apache-2.0
#include "daemon/interrupts.h"
#include "tests/patience.h"
#include "tests/temporary_directory.h"
#include "tests/unit/os/fake_interrupts.h"
#include "tests/unit/os/fake_irqbalance.h"
#include "topology/discover.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

using model::CpuSet;

CpuSet set_of(const std::string& cpus) { return *CpuSet::parse(cpus); }

// Ticks with an irqbalance, which a daemon of another tree would not ask.
class InterruptsAndIrqbalance : public testing::Test {
 protected:
  std::vector<LogEntry> tick() { return interrupts.follow({2, 3}, {}, topology, now += 1); }
  std::vector<LogEntry> look() {
    now += Interrupts::kLook_s;
    return tick();
  }
  void wait_for(const std::string& word) {
    ASSERT_TRUE(berth::test::eventually([&] {
      if (interrupts.report().irqbalance != word) tick();
      return interrupts.report().irqbalance == word;
    })) << interrupts.report().irqbalance;
  }

  berth::test::TemporaryDirectory scratch;
  berth::test::FakeInterrupts files{scratch.path() / "proc"};
  std::unique_ptr<cgroup::UndoJournal> journal =
      std::move(*cgroup::UndoJournal::open(scratch.path(), "boot-1"));
  cgroup::InterruptWriter writer{*journal, files.directory(), scratch.path() / "irqbalance",
                                 scratch.path() / "sys"};
  model::Topology topology = *topology::from_synthetic("package:1 core:4 pu:2");
  double now = 0;
  Interrupts interrupts{writer};
};

TEST_F(InterruptsAndIrqbalance, TheBanIsPendingUntilItIsInForceAndLoggedOnce) {
  berth::test::FakeIrqbalance irqbalance(scratch.path() / "irqbalance", 7);
  irqbalance.lag(true);
  std::size_t said = 0;
  ASSERT_TRUE(berth::test::eventually([&] {
    said += tick().size();
    return interrupts.report().irqbalance == "pending";
  }));
  said += tick().size();
  irqbalance.lag(false);
  wait_for("told");
  EXPECT_EQ(said, 1U);
  EXPECT_EQ(irqbalance.banned(), set_of("2-3"));
  // The end of all owners gives one entry, too.
  said = 0;
  ASSERT_TRUE(berth::test::eventually([&] {
    said += interrupts.follow({}, {}, topology, now += 1).size();
    return journal->size() == 0;
  }));
  EXPECT_EQ(said, 1U);
}

TEST_F(InterruptsAndIrqbalance, WhatAnotherProgramPlacedIsMovedOnceIrqbalanceHasEnded) {
  files.put(24, "0-7");
  {
    berth::test::FakeIrqbalance irqbalance(scratch.path() / "irqbalance", 7);
    wait_for("told");
    EXPECT_EQ(files.cpus(24), "0-1,4-7");
    files.put(24, "3");
    look();
    EXPECT_EQ(interrupts.report().others, 1U);
  }
  look();
  EXPECT_EQ(interrupts.report().irqbalance, "absent");
  EXPECT_FALSE(set_of(files.cpus(24)).intersects({2, 3})) << files.cpus(24);
}

}  // namespace
}  // namespace berth::daemon
