// SPDX-License-Identifier: Apache-2.0
#include "os/interrupts.h"

#include "os/irqbalance.h"
#include "tests/temporary_directory.h"
#include "tests/unit/os/fake_interrupts.h"
#include "tests/unit/os/fake_irqbalance.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::os {
namespace {

using namespace std::chrono_literals;
using model::CpuSet;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kPatience = 30s;

class InterruptFiles : public testing::Test {
 protected:
  berth::test::TemporaryDirectory directory;
  berth::test::FakeInterrupts files{directory.path()};
  Interrupts interrupts{files.directory()};
};

TEST_F(InterruptFiles, AreReadAndWritten) {
  files.put(30, "0-3,8");
  files.put(4, "0-7");
  std::ofstream(directory.path() / "irq/default_smp_affinity") << "ff\n";
  EXPECT_THAT(*interrupts.numbers(), ElementsAre(4, 30));
  EXPECT_EQ(interrupts.default_cpus(), *CpuSet::parse("0-7"));
  EXPECT_EQ(interrupts.cpus(30), *CpuSet::parse("0-3,8"));
  ASSERT_TRUE(interrupts.set_cpus(30, {2, 3}));
  EXPECT_EQ(files.cpus(30), "2-3");
}

TEST_F(InterruptFiles, OneThatHasGoneIsGone) {
  EXPECT_EQ(interrupts.cpus(5).error().kind(), model::ErrorKind::gone);
  EXPECT_EQ(interrupts.set_cpus(5, {1}).error().kind(), model::ErrorKind::gone);
}

TEST_F(InterruptFiles, OneWithADirectoryOfADriverHasAHandler) {
  files.put(4, "0", true);
  files.put(5, "0", false);
  EXPECT_TRUE(interrupts.has_handler(4));
  EXPECT_FALSE(interrupts.has_handler(5));
}

TEST(InterruptList, JoinsRunsAndEnds) {
  EXPECT_EQ(list_text({24, 25, 26, 30}), "24-26,30");
  EXPECT_EQ(list_text({}), "");
  std::vector<int> even;
  for (int number = 0; number < 60; number += 2) even.push_back(number);
  EXPECT_TRUE(list_text(even).ends_with(",38, ..."));
}

TEST(Mask, IsReadInGroupsOf32Bits) {
  EXPECT_EQ(parse_mask("0000000c"), (CpuSet{2, 3}));
  EXPECT_EQ(parse_mask("1,80000000\n"), (CpuSet{31, 32}));
  EXPECT_EQ(parse_mask("0"), CpuSet());
}

TEST(Mask, OfOtherTextIsRefused) {
  for (const char* text : {"", "0x3", "3,", ",3", "1,3", "g", "-1"}) EXPECT_FALSE(parse_mask(text)) << text;
  EXPECT_FALSE(parse_mask("1" + std::string(2048, '0')));
}

class IrqbalanceTest : public testing::Test {
 protected:
  berth::test::TemporaryDirectory directory;
  Irqbalance irqbalance{directory.path()};
};

TEST_F(IrqbalanceTest, IsAbsentWithoutASocket) {
  EXPECT_EQ(irqbalance.ask(kPatience)->has_value(), false);
  EXPECT_EQ(Irqbalance(directory.path() / "none").ask(kPatience)->has_value(), false);
}

TEST_F(IrqbalanceTest, IsAbsentWhereASocketOutlivedIt) {
  std::ofstream(directory.path() / "irqbalance1.sock") << "";
  const auto state = irqbalance.ask(kPatience);
  ASSERT_TRUE(state) << state.error().message();
  EXPECT_FALSE(*state);
}

TEST_F(IrqbalanceTest, TellsItsBannedCpusAndTakesOthers) {
  berth::test::FakeIrqbalance server(directory.path(), 7, {1, 33});
  EXPECT_EQ((**irqbalance.ask(kPatience)).socket, "irqbalance7.sock");
  EXPECT_EQ((**irqbalance.ask(kPatience)).banned, (CpuSet{1, 33}));
  ASSERT_TRUE(irqbalance.ban("irqbalance7.sock", {2, 3}, kPatience));
  // Its answer comes after the order.
  EXPECT_EQ((**irqbalance.ask(kPatience)).banned, (CpuSet{2, 3}));
  EXPECT_TRUE(server.ends_with_zero());
}

TEST_F(IrqbalanceTest, TakesNoListThatItWouldCutShort) {
  CpuSet even;
  for (int cpu = 0; cpu < 400; cpu += 2) even.insert(cpu);
  EXPECT_EQ(irqbalance.ban("irqbalance7.sock", even, kPatience).error().kind(),
            model::ErrorKind::invalid_input);
}

TEST_F(IrqbalanceTest, NoBannedCpusAreThoseOfItsConfiguration) {
  berth::test::FakeIrqbalance server(directory.path(), 7, {1});
  ASSERT_TRUE(irqbalance.ban(server.name(), {}, kPatience));
  EXPECT_EQ((**irqbalance.ask(kPatience)).banned, CpuSet{1});
  EXPECT_EQ(server.last_words(), "NULL");
}

TEST_F(IrqbalanceTest, OneThatDoesNotAnswerIsNotWaitedForAgain) {
  berth::test::FakeIrqbalance server(directory.path(), 7);
  server.hang(true);
  EXPECT_EQ(irqbalance.ask(1ms).error().kind(), model::ErrorKind::transient);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(irqbalance.ask(kPatience).error().kind(), model::ErrorKind::transient);
  EXPECT_LT(std::chrono::steady_clock::now() - before, kPatience / 2);
  server.hang(false);
}

}  // namespace
}  // namespace berth::os
