// SPDX-License-Identifier: Apache-2.0
#include "os/outbox.h"

#include <csignal>
#include <future>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace berth::os {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Outbox, SendsInOrder) {
  Outbox outbox;
  auto sent = std::make_shared<std::vector<int>>();
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(outbox.post(1, [sent, i] { sent->push_back(i); }));
  ASSERT_TRUE(outbox.drain(seconds(60)));
  ASSERT_EQ(sent->size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ((*sent)[static_cast<std::size_t>(i)], i);
  EXPECT_EQ(outbox.dropped(), 0U);
}

TEST(Outbox, AReceiverThatDoesNotReadKeepsNobodyWaitingAndDropsAreCounted) {
  Outbox outbox({.messages = 10, .bytes = 1000});
  std::promise<void> reads;
  auto sent = std::make_shared<int>(0);
  EXPECT_TRUE(outbox.post(1, [until = reads.get_future().share()] { until.wait(); }));
  for (int i = 0; i < 100; ++i) (void)outbox.post(1, [sent] { ++*sent; });
  EXPECT_EQ(outbox.dropped(), 91U);
  EXPECT_FALSE(outbox.drain(milliseconds(1)));
  reads.set_value();
  EXPECT_TRUE(outbox.drain(seconds(60)));
  EXPECT_EQ(*sent, 9);
  EXPECT_TRUE(outbox.post(1, [sent] { ++*sent; })) << "and it goes on";
  EXPECT_TRUE(outbox.drain(seconds(60)));
}

TEST(Outbox, TheBytesThatWaitAreLimited) {
  Outbox outbox({.messages = 10, .bytes = 1000});
  std::promise<void> reads;
  EXPECT_TRUE(outbox.post(600, [until = reads.get_future().share()] { until.wait(); }));
  EXPECT_FALSE(outbox.post(600, [] {}));
  EXPECT_TRUE(outbox.post(400, [] {}));
  reads.set_value();
  EXPECT_TRUE(outbox.drain(seconds(60)));
}

// Else it might end the program by a signal that another thread waits for.
TEST(Outbox, ItsThreadTakesNoSignal) {
  Outbox outbox;
  auto blocked = std::make_shared<bool>(false);
  EXPECT_TRUE(outbox.post(1, [blocked] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    *blocked = sigismember(&mask, SIGTERM) == 1;
  }));
  ASSERT_TRUE(outbox.drain(seconds(60)));
  EXPECT_TRUE(*blocked);
}

TEST(Outbox, ItsEndDoesNotWaitForAReceiver) {
  auto reads = std::make_shared<std::promise<void>>();
  {
    Outbox outbox;
    EXPECT_TRUE(outbox.post(1, [until = reads->get_future().share()] { until.wait(); }));
  }
  reads->set_value();
}

}  // namespace
}  // namespace berth::os
