// SPDX-License-Identifier: Apache-2.0
// The commands `check-config` and `suggest`.
#include "program.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::test {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

TEST_F(Berthctl, ChecksConfigurations) {
  const Ran good = run_shell("berthctl check-config " + file("good.toml", "mode = \"enforce\"\n"));
  EXPECT_EQ(good.exit, 0) << good.err;
  EXPECT_THAT(good.out, HasSubstr("good.toml: valid"));
  EXPECT_THAT(good.out, HasSubstr("mode enforce"));
  expect_complaint(run_shell("berthctl check-config " + file("bad.toml", "mode = \"observe\"\nmodee = 1\n")),
                   2, "bad.toml:2:");
  expect_complaint(run_shell("berthctl check-config /no/such.toml"), 2, "/no/such.toml");
  expect_complaint(run_shell("berthctl check-config -", "mode = [\n"), 2, "standard input:");
}

TEST_F(Berthctl, ChecksAlsoWhatTheUnitForbids) {
  const std::string path = file("unit.toml",
                                "[[workload]]\nmatch = \"a\"\nprogress = {file = \"/home/a/p\"}\n"
                                "[metrics]\nlisten = \"/tmp/m.sock\"\n");
  const Ran ran = run_shell("berthctl check-config " + path);
  expect_complaint(ran, 2,
                   "unit.toml: metrics.listen: \"/tmp/m.sock\": berthd.service has a /tmp of its own");
  EXPECT_THAT(ran.err, HasSubstr("1 more of this kind"));
  EXPECT_EQ(run_shell("berthctl check-config --no-unit " + path).exit, 0);
}

TEST_F(Berthctl, SuggestsAConfigurationThatItsCheckAccepts) {
  const Ran made = run_shell("berthctl suggest --for 100ms");
  if (made.exit == 1 && made.err.find("is no cgroup v2 tree") != std::string::npos) GTEST_SKIP() << made.err;
  EXPECT_EQ(made.exit, 0) << made.err;
  EXPECT_EQ(made.err, "");
  EXPECT_THAT(made.out, StartsWith("# A first configuration for "));
  EXPECT_EQ(run_shell("berthctl check-config -", made.out).exit, 0);
  EXPECT_TRUE(json::parse(run_shell("berthctl suggest --json --for 100ms").out).contains("toml"));
  expect_complaint(run_shell("berthctl suggest --for soon"), 2, "not a duration");
  expect_complaint(run_shell("berthctl suggest --for 2h"), 2, "from 100ms to 1h");
}

TEST_F(Berthctl, ChecksAlsoForWhatHasNoEffect) {
  const std::string path = file("idle.toml", "[interference]\nreserved = \"shared\"\n");
  const Ran ran = run_shell("berthctl check-config " + path);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("interference.reserved = \"shared\" has no effect"));
  EXPECT_EQ(json::parse(run_shell("berthctl check-config --json " + path).out).at("warnings").size(), 1U);
}

TEST_F(Berthctl, ChecksConfigurationsInJson) {
  const Ran bad = run_shell("berthctl check-config --json " + file("bad.toml", "modee = 1\n"));
  EXPECT_EQ(bad.exit, 2);
  const json document = json::parse(bad.out);
  EXPECT_EQ(document.at("valid"), false);
  EXPECT_THAT(document.at("error").get<std::string>(), HasSubstr("modee"));
}

TEST_F(Berthctl, TheFileToCheckHasAName) {
  expect_complaint(run_shell("berthctl check-config ''"), 2, "empty");
  const Ran ran = run_shell("berthctl check-config -", "mode = \"observe\"\n");
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_THAT(ran.out, StartsWith("standard input: valid"));
}

}  // namespace berth::test
