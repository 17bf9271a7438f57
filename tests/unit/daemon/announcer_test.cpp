// SPDX-License-Identifier: Apache-2.0
#include "daemon/announcer.h"

#include "os/log.h"

#include <string>

#include <gtest/gtest.h>

namespace berth::daemon {
namespace {

model::Plan unconfined(const std::string& workload) {
  model::Plan plan;
  plan.findings.interference.emplace();
  plan.findings.interference->unconfined.push_back({.workload = workload, .reason = "it owns its vCPUs"});
  return plan;
}

// What a tick with this plan writes.
std::string said(Announcer& announcer, const model::Plan& plan, bool may_announce) {
  testing::internal::CaptureStderr();
  os::setup_log();
  announcer.findings(plan, [&](const std::string&) { return may_announce; });
  return testing::internal::GetCapturedStderr();
}

TEST(AnnouncerTest, AFindingIsSaidOnceAsLongAsItLasts) {
  Announcer announcer;
  EXPECT_NE(said(announcer, unconfined("web/a"), true).find("web/a: cannot be confined"), std::string::npos);
  EXPECT_EQ(said(announcer, unconfined("web/a"), true), "");
  EXPECT_EQ(said(announcer, model::Plan(), true), "");
  EXPECT_NE(said(announcer, unconfined("web/a"), true), "");
}

TEST(AnnouncerTest, AFindingOfAUserWhoseShareOfTheJournalIsUsedUpIsNotSaid) {
  Announcer announcer;
  EXPECT_EQ(said(announcer, unconfined("web/a"), false), "");
}

TEST(AnnouncerTest, AServiceThatAPinWouldCutAndOneThatIsThrottledAreNamed) {
  model::Plan plan;
  auto& findings = plan.findings.interference.emplace();
  findings.warnings = {
      {.workload = "web/a", .cause = model::WarningCause::use, .vcpus = 5, .reason = "vcpus = 5 would do"},
      {.workload = "web/b", .cause = model::WarningCause::quota, .vcpus = 2, .reason = "raise the quota"}};
  Announcer announcer;
  const std::string text = said(announcer, plan, true);
  EXPECT_NE(text.find("web/a: uses more than its vcpus: vcpus = 5 would do"), std::string::npos) << text;
  EXPECT_NE(text.find("web/b: is throttled by its CPU quota: raise the quota"), std::string::npos) << text;
  EXPECT_EQ(said(announcer, plan, true), "");
}

TEST(AnnouncerTest, AServiceBesideBestEffortWorkOfTheSamePriorityIsNamed) {
  model::Plan plan;
  plan.findings.interference.emplace().warnings = {
      {.workload = "web/a", .cause = model::WarningCause::priority, .vcpus = {}, .reason = "it competes"}};
  Announcer announcer;
  const std::string text = said(announcer, plan, true);
  EXPECT_NE(text.find("web/a: is not protected: it competes"), std::string::npos) << text;
  EXPECT_EQ(said(announcer, plan, true), "");
}

TEST(AnnouncerTest, AServiceIsNamedOnceThoughAUsersGroupBesideItComesAndGoes) {
  model::Plan calm;
  calm.findings.interference.emplace();
  model::Plan beside = calm;
  beside.findings.interference->warnings = {
      {.workload = "web/a", .cause = model::WarningCause::priority, .vcpus = {}, .reason = "it competes"}};
  Announcer announcer;
  EXPECT_NE(said(announcer, beside, true), "");
  for (int tick = 1; tick < 10; ++tick) {
    calm.time = beside.time = 2 * tick;
    EXPECT_EQ(said(announcer, calm, true), "");
    EXPECT_EQ(said(announcer, beside, true), "");
  }
}

TEST(AnnouncerTest, AServiceThatIsThrottledNowAndThenIsNamedOnceInTenMinutes) {
  model::Plan calm;
  calm.findings.interference.emplace();
  model::Plan throttled = calm;
  throttled.findings.interference->warnings = {
      {.workload = "web/b", .cause = model::WarningCause::quota, .vcpus = {}, .reason = "raise the quota"}};
  Announcer announcer;
  EXPECT_NE(said(announcer, throttled, true), "");
  calm.time = 599;
  EXPECT_EQ(said(announcer, calm, true), "");
  throttled.time = 600;
  EXPECT_EQ(said(announcer, throttled, true), "");
  calm.time = 1201;
  EXPECT_EQ(said(announcer, calm, true), "");
  throttled.time = 1202;
  EXPECT_NE(said(announcer, throttled, true), "");
}

TEST(AnnouncerTest, ReservedVcpusThatTheHostLacksAreSaidOnce) {
  model::Plan plan;
  plan.findings.interference.emplace().absent_reserved = model::CpuSet::range(20, 23);
  Announcer announcer;
  EXPECT_NE(
      said(announcer, plan, true).find("reserved_cpus names vCPUs 20-23, which this host does not have"),
      std::string::npos);
  EXPECT_EQ(said(announcer, plan, true), "");
}

TEST(AnnouncerTest, ReservedVcpusThatBestEffortWorkRunsOnAreSaidOnce) {
  model::Plan plan;
  plan.findings.interference.emplace().shared_reserved = model::CpuSet::range(0, 3);
  Announcer announcer;
  EXPECT_NE(said(announcer, plan, true).find("reserved_cpus names all vCPUs 0-3 that berth may use"),
            std::string::npos);
  EXPECT_EQ(said(announcer, plan, true), "");
}

}  // namespace
}  // namespace berth::daemon
