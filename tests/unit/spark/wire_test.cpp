// SPDX-License-Identifier: Apache-2.0
#include "spark/wire.h"

#include <limits>
#include <random>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark::wire {
namespace {

using ::testing::HasSubstr;

DriverFacts some_facts() {
  DriverFacts facts;
  facts.process = {10, 7};
  facts.app_id = "app-1";
  facts.read_at = 1'790'000'000.5;
  model::SparkApp& app = facts.app.emplace();
  app.id = "app-1";
  app.calculated_time_s = 7.25;
  app.shuffle_service = true;
  app.stages.resize(2);
  app.stages[0].id = 3;
  app.stages[0].partitions = 2;
  app.stages[0].shuffle_write_bytes = 1U << 20;
  app.stages[0].cached = true;
  app.stages[0].tasks = {{.executor = "0", .input_bytes = 5, .duration_s = 1.5, .kept_by = {"0", "1"}}};
  app.stages[1].id = 4;
  app.stages[1].parents = {3};
  app.stages[1].partitions = 1;
  app.stages[1].job = 2;
  app.running = {{.executor = "1", .elapsed_s = 0.25}};
  facts.progress = model::ProgressReport{.time = 1'790'000'000, .fraction = 0.5};
  facts.problems = {"event log: it is compressed"};
  return facts;
}

model::Result<DriverFacts> decoded(const DriverFacts& facts, std::size_t most_bytes = kMostAnswerBytes) {
  return decode_facts(encode(facts), most_bytes);
}

std::string hex(const std::string& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// In the order of bytes of x86-64 and AArch64.
TEST(Wire, MessagesKeepTheirBytes) {
  EXPECT_EQ(
      hex(encode(Question{.now = 1.5,
                          .wall_ahead_s = -3600,
                          .drivers = {{.process = {1, 2}, .user = 1000, .endpoints = {"[::1]:4040"}}}})),
      "000000000000f83f000000000020acc00100000001000000020000000000000001e803000000010000000a0000005b3a"
      "3a315d3a34303430");
  EXPECT_EQ(hex(encode(Open{.process = {1, 2}, .path = "/logs/a"})),
            "010000000200000000000000070000002f6c6f67732f61");
  EXPECT_EQ(hex(encode(Opened{.done = true, .kind = {}, .message = "m", .parts = {{"p1", "p2"}}})),
            "0100010000006d0102000000020000007031020000007032");
  EXPECT_EQ(hex(encode_done(true)), "01");
  EXPECT_EQ(hex(encode(some_facts())),
            "0a0000000700000000000000050000006170702d31000020e04eacda4101050000006170702d310000000000001d4001"
            "00020000000300000002000000000010000000000001ffffffff00000000010000000100000030050000000000000000"
            "0000000000f83f0200000001000000300100000031040000000100000000000000000000000002000000010000000300"
            "000000000000010000000100000031000000000000d03f01000000e04eacda41000000000000e03f010000001b000000"
            "6576656e74206c6f673a20697420697320636f6d70726573736564");
}

TEST(Wire, EachMessageComesBackAsItWent) {
  const Question question{
      .now = 1.5,
      .wall_ahead_s = -3600,
      .drivers = {{.process = {1, 2}, .user = 1000, .endpoints = {"[::1]:4040", "127.0.0.1:1"}},
                  {.process = {3, 4}, .user = {}, .endpoints = {}, .guessed = true}}};
  EXPECT_EQ(decode_question(encode(question)), question);
  const Open open{.process = {1, 2}, .path = "/logs/app-1"};
  EXPECT_EQ(decode_open(encode(open)), open);
  const Opened opened{
      .done = false, .kind = model::ErrorKind::refused, .message = "another user's", .parts = {}};
  EXPECT_EQ(decode_opened(encode(opened)), opened);
  const Opened listed{.done = true, .kind = {}, .message = "", .parts = {{"events_1_a", "events_2_a"}}};
  EXPECT_EQ(decode_opened(encode(listed)), listed);
  EXPECT_EQ(decoded(some_facts()), some_facts());
  EXPECT_EQ(decode_done(encode_done(true)), true);
}

TEST(Wire, NoPartOfAMessageIsAMessage) {
  const std::string whole = encode(some_facts());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::size_t most_bytes = kMostAnswerBytes;
    EXPECT_FALSE(decode_facts(std::string_view(whole).substr(0, length), most_bytes)) << length;
    EXPECT_EQ(most_bytes, kMostAnswerBytes) << "nothing is kept of it";
  }
  std::size_t most_bytes = kMostAnswerBytes;
  EXPECT_FALSE(decode_facts(whole + "x", most_bytes));
}

TEST(Wire, DamagedMessagesAreRefusedOrPossible) {
  std::mt19937 random(7);
  const std::string whole = encode(some_facts());
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = whole;
    for (int times = 0; times < 3; ++times)
      damaged[random() % damaged.size()] = static_cast<char>(random() % 256);
    std::size_t most_bytes = 100'000;
    const auto facts = decode_facts(damaged, most_bytes);
    if (facts && facts->app) {
      EXPECT_TRUE(model::check_spark_app(*facts->app));
    }
  }
}

TEST(Wire, AListTakesNoMemoryBeyondItsLimit) {
  DriverFacts facts = some_facts();
  facts.app->running.assign(1000, {.executor = "1", .elapsed_s = 1});
  EXPECT_FALSE(decoded(facts, 1000 * sizeof(model::SparkRunningTask)));
  std::size_t most_bytes = kMostAnswerBytes;
  ASSERT_TRUE(decode_facts(encode(facts), most_bytes));
  EXPECT_LT(most_bytes, kMostAnswerBytes - 1000 * sizeof(model::SparkRunningTask)) << "it is counted";
}

TEST(Wire, FactsThatCannotBeAreRefused) {
  const auto refused = [](auto change) {
    DriverFacts facts = some_facts();
    change(facts);
    return !decoded(facts);
  };
  EXPECT_TRUE(refused([](DriverFacts& facts) { facts.app->stages[1].parents = {9}; })) << "no such stage";
  EXPECT_TRUE(refused([](DriverFacts& facts) { facts.app->stages[0].parents = {4}; })) << "a circle";
  EXPECT_TRUE(refused([](DriverFacts& facts) { facts.app->stages[0].partitions = 0; })) << "too many tasks";
  EXPECT_TRUE(refused([](DriverFacts& facts) { facts.app->stages[0].id = -1; }));
  EXPECT_TRUE(refused([](DriverFacts& facts) { facts.app->running[0].executor = "a\nb"; }));
  EXPECT_TRUE(refused([](DriverFacts& facts) { facts.app->running[0].executor = std::string(300, 'x'); }));
  EXPECT_TRUE(refused([](DriverFacts& facts) { facts.app->running[0].elapsed_s = -1; }));
  EXPECT_TRUE(refused(
      [](DriverFacts& facts) { facts.app->calculated_time_s = std::numeric_limits<double>::quiet_NaN(); }));
  EXPECT_TRUE(refused([](DriverFacts& facts) { facts.progress->fraction = 1.5; }));
  EXPECT_TRUE(refused([](DriverFacts& facts) { facts.app_id = ""; })) << "facts of no application";
  EXPECT_TRUE(refused([](DriverFacts& facts) { facts.problems.assign(4, "x"); }));
}

TEST(Wire, AProblemIsShortAndHasNoControlCharacters) {
  DriverFacts facts = some_facts();
  facts.problems = {"\x1b[31m" + std::string(700, 'x')};
  const auto found = decoded(facts);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->problems[0], HasSubstr("?[31mxx"));
  EXPECT_LT(found->problems[0].size(), 410U);
}

}  // namespace
}  // namespace berth::spark::wire
