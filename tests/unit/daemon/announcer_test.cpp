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

}  // namespace
}  // namespace berth::daemon
