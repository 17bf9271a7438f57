// SPDX-License-Identifier: Apache-2.0
#include "cli/workload_name.h"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

const std::vector<std::string> kIds{"system.slice/nginx.service",
                                    "system.slice/batch.service",
                                    "user.slice/batch.scope",
                                    "machine.slice/web",
                                    "web",
                                    "machine.slice/web/nginx.service.d"};

TEST(WorkloadName, AWorkloadsIdMeansThatOneAlone) { EXPECT_EQ(meant_by("web", kIds).value(), "web"); }

TEST(WorkloadName, TheLastComponentIsEnoughWithOrWithoutTheUnitsSuffix) {
  EXPECT_EQ(meant_by("nginx.service", kIds).value(), "system.slice/nginx.service");
  EXPECT_EQ(meant_by("nginx", kIds).value(), "system.slice/nginx.service");
}

TEST(WorkloadName, SeveralThatMayBeMeantAreAllNamed) {
  const auto none = meant_by("batch", kIds);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().exit, Exit::wrong_use);
  EXPECT_EQ(none.error().message,
            "\"batch\" matches several workloads: system.slice/batch.service, user.slice/batch.scope");
}

TEST(WorkloadName, AUsersWorkIsMeantByItsWholeIdAlone) {
  const std::vector<std::string> users{"user.slice/batch.scope"};
  EXPECT_EQ(meant_by("batch", kIds, users).value(), "system.slice/batch.service");
  EXPECT_EQ(meant_by("user.slice/batch.scope", kIds, users).value(), "user.slice/batch.scope");
  const auto none = meant_by("batch.scope", kIds, users);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().exit, Exit::wrong_use);
  EXPECT_EQ(
      none.error().message,
      "\"batch.scope\" names only work that a user named itself: user.slice/batch.scope; give the whole id "
      "if you mean that");
}

TEST(WorkloadName, WhatMeansNoneIsLeftAsItIs) {
  EXPECT_EQ(meant_by("ngin", kIds).value(), "ngin");
  EXPECT_EQ(meant_by("slice/nginx.service", kIds).value(), "slice/nginx.service");
  EXPECT_EQ(meant_by("web", {}).value(), "web");
}

TEST(WorkloadName, AMistypedNameIsUnderstood) {
  EXPECT_EQ(meant_perhaps("ngnix", kIds), "; did you mean system.slice/nginx.service?");
  EXPECT_EQ(meant_perhaps("nginx.servce", kIds), "; did you mean system.slice/nginx.service?");
  EXPECT_EQ(meant_perhaps("system.slice/ngnix.service", kIds), "; did you mean system.slice/nginx.service?");
  EXPECT_EQ(meant_perhaps("ng", kIds),
            "; did you mean system.slice/nginx.service or machine.slice/web/nginx.service.d?");
  EXPECT_EQ(meant_perhaps("bacth", kIds),
            "; did you mean system.slice/batch.service or user.slice/batch.scope?");
  EXPECT_EQ(meant_perhaps("postgres", kIds), "");
  EXPECT_EQ(meant_perhaps("", kIds), "");
  EXPECT_EQ(meant_perhaps("web", {}), "");
}

TEST(WorkloadName, EqualNamesInSeveralSlicesAreNamedOnceEach) {
  EXPECT_EQ(meant_perhaps(
                "jo", {"a.slice/job.scope", "b.slice/job.scope", "c.slice/job.scope", "d.slice/job.scope"}),
            "; did you mean a.slice/job.scope, b.slice/job.scope or c.slice/job.scope?");
}

}  // namespace
}  // namespace berth::cli
