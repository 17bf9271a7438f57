// SPDX-License-Identifier: Apache-2.0
#include "spark/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::spark {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kAlice = 1000;
constexpr uid_t kMallory = 1001;

class ClaimsTest : public ::testing::Test {
 protected:
  void executor(pid_t pid, std::optional<uid_t> user, const std::string& driver,
                const std::string& app = "app-1", const std::string& id = "0") {
    processes.push_back({.pid = pid,
                         .started = 1,
                         .cgroup = "e.scope",
                         .user = user,
                         .what = {.kind = ProcessKind::executor,
                                  .name = "CoarseGrainedExecutorBackend",
                                  .app = app,
                                  .executor = id,
                                  .driver = driver}});
  }
  void driver(pid_t pid, std::optional<uid_t> user, std::optional<std::vector<std::string>> endpoints = {},
              const std::string& app = "app-1") {
    claims.push_back({.pid = pid,
                      .started = 1,
                      .user = user,
                      .app = app,
                      .fresh = true,
                      .endpoints = std::move(endpoints)});
  }
  Claims decided() const { return Claims(claims, processes, listening); }
  bool believed(pid_t pid) const { return decided().is_believed({pid, 1}); }
  std::string why_not(pid_t pid) const { return decided().why_not({pid, 1}); }

  std::vector<Claim> claims;
  std::vector<Process> processes;
  std::set<UserAddress> listening{{kAlice, "host:7000"}};
};

TEST_F(ClaimsTest, ADriverOfTheExecutorsUserAtTheirAddressIsBelieved) {
  executor(20, kAlice, "host:7000");
  driver(10, kAlice, {{"127.0.0.1:4040", "10.0.0.5:7000"}});
  EXPECT_TRUE(believed(10));
  EXPECT_EQ(why_not(10), "");
  EXPECT_EQ(decided().name_of(kAlice, "app-1"), "app-1");
  claims[0].endpoints.reset();
  EXPECT_TRUE(believed(10)) << "its user listens there, and its own sockets are hidden";
  claims[0].fresh = false;
  EXPECT_FALSE(believed(10));
  EXPECT_EQ(why_not(10), "");
}

TEST_F(ClaimsTest, WithoutExecutorsHereADriverIsBelieved) {
  executor(20, kMallory, "elsewhere:7000", "app-2");
  driver(10, kAlice);
  EXPECT_TRUE(believed(10));
  driver(11, kMallory);
  EXPECT_FALSE(believed(10)) << "of two one is wrong";
  EXPECT_FALSE(believed(11));
}

TEST_F(ClaimsTest, ADriverOfAnotherUserIsNotBelieved) {
  executor(20, kAlice, "host:7000");
  driver(10, kMallory);
  EXPECT_FALSE(believed(10));
  EXPECT_EQ(
      why_not(10),
      "it claims app-1, but executor 0 (pid 20) has its driver at host:7000, where user 1001 has no socket "
      "of this host");
  driver(11, kAlice);
  EXPECT_TRUE(believed(11)) << "and keeps nobody else from being believed";
  EXPECT_EQ(decided().name_of(kAlice, "app-1"), "app-1");
  claims.back().user.reset();
  EXPECT_FALSE(believed(11)) << "a driver of an unknown user is nobody's";
}

TEST_F(ClaimsTest, WhereTheRealDriverIsElsewhereNoLocalOneIsBelieved) {
  executor(20, kAlice, "host:7000");
  executor(21, kAlice, "other:7000");
  driver(10, kAlice);
  EXPECT_FALSE(believed(10));
  EXPECT_EQ(
      why_not(10),
      "it claims app-1, but executor 0 (pid 21) has its driver at other:7000, where user 1000 has no socket "
      "of this host");
}

TEST_F(ClaimsTest, WhereAnotherProcessOfTheUserListensADriverIsNotBelieved) {
  executor(20, kAlice, "host:7000");
  driver(10, kAlice, {{"127.0.0.1:4040", "127.0.0.1:17000"}});
  EXPECT_FALSE(believed(10));
  EXPECT_THAT(why_not(10), HasSubstr("where another process listens"));
  driver(11, kAlice, {{"127.0.0.1:7000"}});
  EXPECT_TRUE(believed(11)) << "of two drivers of one user this one is right";
  driver(12, kAlice);
  EXPECT_FALSE(believed(11)) << "this one may be, too";
}

TEST_F(ClaimsTest, AnExecutorThatNamesNoDriverIsTiedByItsUserAlone) {
  executor(20, kAlice, "");
  driver(10, kAlice, {{"127.0.0.1:4040"}});
  EXPECT_TRUE(believed(10));
}

TEST_F(ClaimsTest, AnExecutorOfAnotherUserIsOfAnotherApplication) {
  executor(20, kAlice, "host:7000");
  executor(21, kMallory, "host:7000");
  driver(10, kAlice);
  EXPECT_TRUE(believed(10));
  EXPECT_EQ(decided().name_of(kAlice, "app-1"), "app-1");
  EXPECT_EQ(decided().name_of(kMallory, "app-1"), "app-1 of user 1001");
  EXPECT_EQ(decided().name_of({}, "app-1"), "app-1 of an unknown user");
  // With a driver and executors of its own it has an application of its own.
  listening.emplace(kMallory, "host:7000");
  driver(11, kMallory);
  EXPECT_TRUE(believed(10));
  EXPECT_TRUE(believed(11));
  EXPECT_EQ(decided().name_of(kAlice, "app-1"), "app-1 of user 1000");
  EXPECT_EQ(decided().name_of(kMallory, "app-1"), "app-1 of user 1001");
}

TEST_F(ClaimsTest, AWorkersExecutorsBelongToTheUserThatListensAtTheirAddress) {
  constexpr uid_t kWorker = 900;
  executor(20, kWorker, "host:7000");
  executor(21, kWorker, "host:7000");
  driver(10, kAlice, {{"127.0.0.1:7000"}});
  EXPECT_TRUE(believed(10));
  EXPECT_EQ(decided().name_of(kAlice, "app-1"), "app-1");
  EXPECT_EQ(decided().name_of(kWorker, "app-1"), "app-1");
  // Drivers of others, even of the Worker's own user, are not.
  driver(11, kWorker);
  driver(12, kMallory);
  EXPECT_FALSE(believed(11));
  EXPECT_FALSE(believed(12));
  EXPECT_TRUE(believed(10));
  // With an executor of its own another user has another application.
  executor(22, kMallory, "");
  EXPECT_TRUE(believed(10));
  EXPECT_TRUE(believed(12));
  EXPECT_EQ(decided().name_of(kAlice, "app-1"), "app-1 of user 1000");
  EXPECT_EQ(decided().name_of(kWorker, "app-1"), "app-1 of user 1000");
  EXPECT_EQ(decided().name_of(kMallory, "app-1"), "app-1 of user 1001");
}

TEST_F(ClaimsTest, WhereSeveralUsersListenAWorkersExecutorsBelongToNone) {
  executor(20, 900, "host:7000");
  driver(10, kAlice);
  listening.emplace(kMallory, "host:7000");
  EXPECT_FALSE(believed(10));
  EXPECT_THAT(why_not(10), HasSubstr("where sockets of several users listen"));
}

TEST_F(ClaimsTest, AFakeExecutorOfAThirdUserDoesNotDiscreditTheDriver) {
  constexpr uid_t kWorker = 900;
  executor(20, kWorker, "host:7000", "app-1", "0");
  executor(21, kWorker, "host:7000", "app-1", "1");
  executor(22, kMallory, "host:7000", "app-1", "1");
  executor(23, kMallory, "host:7000", "app-1", "7");
  driver(10, kAlice);
  EXPECT_TRUE(believed(10));
  EXPECT_EQ(why_not(10), "");
  EXPECT_EQ(decided().name_of(kAlice, "app-1"), "app-1");
  EXPECT_EQ(decided().name_of_executor(kWorker, "app-1", "0"), "app-1");
  // Either may be the real one, so neither has the work of executor 1.
  EXPECT_EQ(decided().name_of_executor(kWorker, "app-1", "1"), "app-1 of user 900");
  EXPECT_EQ(decided().name_of_executor(kMallory, "app-1", "1"), "app-1 of user 1001");
}

TEST_F(ClaimsTest, FakeExecutorsThatNameAnotherAddressChangeNothing) {
  executor(20, 900, "host:7000");
  executor(21, kMallory, "elsewhere:7000");
  driver(10, kAlice);
  EXPECT_TRUE(believed(10));
  EXPECT_EQ(decided().name_of_executor(900, "app-1", "0"), "app-1");
  EXPECT_EQ(decided().name_of_executor(kMallory, "app-1", "0"), "app-1 of user 1001");
}

TEST_F(ClaimsTest, TwoDriversOfOneUserAreNotBelievedWhoeverElseHasExecutors) {
  executor(20, 900, "host:7000");
  executor(21, kMallory, "host:7000");
  driver(10, kAlice);
  driver(11, kAlice);
  EXPECT_FALSE(believed(10));
  EXPECT_FALSE(believed(11));
}

TEST_F(ClaimsTest, NoUserTakesTheNameOfAnother) {
  executor(20, kMallory, "", "app-1 of user 1000");
  driver(11, kMallory, {}, "app-1 of user 1000");
  EXPECT_EQ(decided().name_of(kMallory, "app-1 of user 1000"), "app-1 of user 1000 of user 1001");
}

}  // namespace
}  // namespace berth::spark
