// SPDX-License-Identifier: Apache-2.0
#include "cli/host_scan.h"
#include "config/config.h"
#include "model/glob.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

SeenUnit unit(const std::string& id, double cores, std::set<std::uint16_t> ports = {}) {
  SeenUnit unit;
  unit.id = id;
  unit.processes = 1;
  unit.ports = std::move(ports);
  unit.cores = cores;
  unit.mean_cores = cores / 2;
  return unit;
}

SeenHost host(std::vector<SeenUnit> units) {
  SeenHost host;
  host.units = std::move(units);
  host.cpus = 8;
  return host;
}

// berthd reads it, and every setting stands behind a comment.
config::Settings read(const SeenHost& seen) {
  const std::string text = suggestion(seen, "On a test host.");
  const auto settings = config::parse(text, "suggestion");
  EXPECT_TRUE(settings) << (settings ? "" : settings.error().message()) << "\n" << text;
  std::istringstream lines(text);
  bool explained = false;
  for (std::string line; std::getline(lines, line);) {
    const bool comment = line.starts_with("# ");
    EXPECT_TRUE(comment || line.empty() || explained) << line;
    explained = comment || (explained && !line.empty());
  }
  return settings.value_or(config::Settings());
}

TEST(Suggestion, ServicesThatListenAreKeptFast) {
  const auto settings = read(host({unit("system.slice/nginx.service", 1.5, {80, 443})}));
  EXPECT_EQ(settings.mode, config::Mode::observe);
  ASSERT_EQ(settings.rules.size(), 1U);
  EXPECT_EQ(settings.rules[0].match, "system.slice/nginx.service");
  EXPECT_EQ(settings.rules[0].workload_class, model::WorkloadClass::latency_sensitive);
  EXPECT_EQ(settings.rules[0].vcpus, std::nullopt);
  EXPECT_EQ(settings.rules[0].isolation, std::nullopt);
}

TEST(Suggestion, SaysHowManyVcpusAServiceWouldOwn) {
  const auto says = [](const SeenUnit& unit, const std::string& text) {
    const SeenHost seen = host({unit});
    read(seen);
    EXPECT_THAT(suggestion(seen, ""), HasSubstr(text));
  };
  says(unit("system.slice/nginx.service", 1.5, {80}), "vcpus = 3:\n# half as much again");
  says(unit("system.slice/nginx.service", 0, {80}), "vcpus = 1:");
  says(unit("system.slice/nginx.service", 100, {80}), "vcpus = 8:");
  auto limited = unit("system.slice/db.service", 1, {5432});
  limited.quota_cores = 2.5;
  says(limited, "vcpus = 3:\n# its CPU quota of 2.50 cores, rounded up.");
}

TEST(Suggestion, WorkThatOnlyComputesFitsInBetween) {
  auto spark = unit("system.slice/spark-worker.service", 0, {8081});
  spark.spark = true;
  const auto settings =
      read(host({unit("system.slice/backup.service", 1), spark, unit("system.slice/idle.service", 0.01)}));
  ASSERT_EQ(settings.rules.size(), 2U);
  for (const auto& rule : settings.rules) EXPECT_EQ(rule.workload_class, model::WorkloadClass::best_effort);
}

TEST(Suggestion, TheBaseSystemIsLeftAlone) {
  const SeenHost seen =
      host({unit("system.slice/ssh.service", 1, {22}), unit("system.slice/systemd-resolved.service", 1, {53}),
            unit("system.slice/system-getty.slice/getty@tty1.service", 1)});
  EXPECT_TRUE(read(seen).rules.empty());
  EXPECT_THAT(suggestion(seen, ""), HasSubstr("parts of the base system: ssh, getty, systemd-resolved."));
}

TEST(Suggestion, InstancesOfATemplateHaveOneRule) {
  const SeenHost seen = host({unit("system.slice/system-web.slice/web@1.service", 0.2, {8001}),
                              unit("system.slice/system-web.slice/web@2.service", 3, {8002})});
  const auto settings = read(seen);
  ASSERT_EQ(settings.rules.size(), 1U);
  EXPECT_EQ(settings.rules[0].match, "system.slice/system-web.slice/web@*.service");
  EXPECT_THAT(suggestion(seen, ""), HasSubstr("vcpus = 5:")) << "by the instance that uses most";
}

TEST(Suggestion, ContainersWithPassingNamesAreOnlyCommented) {
  const SeenHost seen = host({unit("system.slice/docker-0123456789abcdef0123456789abcdef.scope", 2, {80})});
  EXPECT_TRUE(read(seen).rules.empty());
  EXPECT_THAT(suggestion(seen, ""), HasSubstr("# [[workload]]\n# match = \"system.slice/docker-0123"));
}

TEST(Suggestion, NamesCannotChangeTheFile) {
  const std::string hostile = "system.slice/a\"\nmode = \"enforce\"\n[x]*\\x2d\x1b.service";
  const auto settings = read(host({unit(hostile, 2)}));
  EXPECT_EQ(settings.mode, config::Mode::observe);
  ASSERT_EQ(settings.rules.size(), 1U);
  EXPECT_TRUE(model::glob_match(settings.rules[0].match, hostile)) << settings.rules[0].match;
}

TEST(Suggestion, SaysWhatItCouldNotSee) {
  SeenHost seen = host({unit("system.slice/a.service", 5, {80}), unit("system.slice/b.service", 5, {81})});
  EXPECT_THAT(suggestion(seen, ""), Not(HasSubstr("As root")));
  seen.hidden = 3;
  seen.kubernetes = 2;
  EXPECT_THAT(suggestion(seen, ""), HasSubstr("3 processes are hidden from this user. As root"));
  EXPECT_THAT(suggestion(seen, ""), HasSubstr("2 containers of Kubernetes need no rule"));
  read(seen);
  read(host({}));
}

}  // namespace
}  // namespace berth::cli
