// SPDX-License-Identifier: Apache-2.0
#include "cli/render.h"

#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string rendered(const Document& document) {
  std::ostringstream out;
  render_blame(out, document, {});
  return out.str();
}

TEST(RenderBlame, NamesWhoRanAndTheirShares) {
  const auto text = rendered({{"service", "web"},
                              {"seconds", 10.02},
                              {"waited_ms", 400.0},
                              {"workloads", {"a/web1", "a/web2"}},
                              {"culprits",
                               {{{"kind", "best-effort"}, {"name", "batch.slice/job"}, {"ms", 300.0}},
                                {{"kind", "quota"}, {"name", nullptr}, {"ms", 100.0}}}}});
  EXPECT_EQ(text,
            "web: threads of 2 workloads waited 400.0 ms for a vCPU in 10.0 s, while these ran:\n"
            "  CULPRIT                      KIND            MS  SHARE\n"
            "  batch.slice/job              best-effort  300.0   75 %\n"
            "  none: its quota was used up  quota        100.0   25 %\n");
}

TEST(RenderBlame, SaysThatNothingWaited) {
  EXPECT_EQ(rendered({{"service", "web"},
                      {"seconds", 5.0},
                      {"waited_ms", 0},
                      {"workloads", {"a/web1"}},
                      {"culprits", Document::array()}}),
            "web: no thread of 1 workload waited for a vCPU in 5.0 s.\n");
}

TEST(RenderBlame, NamesOfUsersReachTheTerminalAsText) {
  const auto text =
      rendered({{"service", "web"},
                {"seconds", 1.0},
                {"waited_ms", 1.0},
                {"workloads", {"a/web1"}},
                {"culprits", {{{"kind", "cgroup"}, {"name", "user.slice/\x1b[2J"}, {"ms", 1.0}}}}});
  EXPECT_THAT(text, Not(HasSubstr("\x1b")));
}

}  // namespace
}  // namespace berth::cli
