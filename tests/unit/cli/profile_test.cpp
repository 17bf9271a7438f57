// SPDX-License-Identifier: Apache-2.0
// berthctl profile, as far as it needs no daemon.
#include "model/learning.h"
#include "program.h"
#include "tests/unit/policies/interference/simulated_service.h"

#include <sstream>
#include <string>

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::test {

using nlohmann::json;
using policies::testing::SimulatedService;
using testing::HasSubstr;

namespace {

class Profile : public Berthctl {
 protected:
  // Lines of a service by cpi and of another one by cpu.
  static std::string observations() {
    std::string lines;
    SimulatedService web(model::Response::cpi, {}, 1);
    SimulatedService db(model::Response::cpu, {}, 2, "db");
    for (int i = 0; i < 400; ++i) {
      for (const auto& seen : web.tick(1)) lines += model::to_json(seen) + "\n";
      if (i < 50)
        for (const auto& seen : db.tick(2)) lines += model::to_json(seen) + "\n";
    }
    return lines;
  }
};

}  // namespace

TEST_F(Profile, FitsObservationsOfAFileOrOfStandardInput) {
  const std::string lines = observations();
  const Ran ran = run_shell("berthctl profile fit --json " + file("seen", lines));
  ASSERT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  std::istringstream models(ran.out);
  std::string line;
  ASSERT_TRUE(std::getline(models, line));
  const auto db = json::parse(line);
  EXPECT_EQ(db["schema"], "berth.model/1");
  EXPECT_EQ(db["service"], "db");
  EXPECT_EQ(db["response"], "cpu");
  EXPECT_EQ(db["accepted"], false);
  EXPECT_EQ(db["why"], "99 of 300 observations");
  ASSERT_TRUE(std::getline(models, line));
  const auto web = json::parse(line);
  EXPECT_EQ(web["accepted"], true);
  EXPECT_NEAR(web["k1"].get<double>(), 1.5 * web["b0"].get<double>(), 0.08);
  EXPECT_EQ(web["interval"]["k1"].size(), 2U);
  EXPECT_FALSE(std::getline(models, line));
  EXPECT_EQ(run_shell("berthctl profile fit --json -", lines).out, ran.out);

  const Ran text = run_shell("berthctl profile fit " + file("seen", lines));
  EXPECT_THAT(text.out, HasSubstr("accepted"));
  EXPECT_THAT(text.out, HasSubstr("db by cpu: not accepted: 99 of 300 observations"));
}

// Neighbours of each pressure leave the service as it is, apart from noise.
TEST_F(Profile, ADefaultThatObservationsRefuteIsBounded) {
  std::string lines;
  for (int i = 0; i < 800; ++i) {
    lines += fmt::format(
        R"({{"schema": "berth.observation/1", "service": "web", "instance": "w", "time": {}, "response": "cpi", )"
        R"("y": {}, "sc": {}, "ss": {}, "u": 0.4}})"
        "\n",
        1790000000 + i, 1.2 + 0.002 * (i * 7919 % 101), (i * 31 % 97) / 97.0, (i * 57 % 89) / 89.0);
  }
  const Ran ran = run_shell("berthctl profile fit --json -", lines);
  const auto model = json::parse(ran.out);
  EXPECT_EQ(model["accepted"], false) << ran.out;
  ASSERT_TRUE(model["bounded"].is_object()) << ran.out;
  EXPECT_LT(model["bounded"]["k1"].get<double>(), 0.1);
  const Ran text = run_shell("berthctl profile fit -", lines);
  EXPECT_THAT(text.out, HasSubstr("bounded"));
  EXPECT_THAT(text.out, HasSubstr("refute the default"));
}

TEST_F(Profile, ALineWithAFaultIsNamedAndLeftOut) {
  const std::string good = observations();
  const Ran expected = run_shell("berthctl profile fit --json -", good);
  const Ran ran = run_shell("berthctl profile fit --json -",
                            "{\"schema\": \"berth.observation/2\"}\n\nnonsense\n" + good + "{\"y\": NaN}\n");
  EXPECT_EQ(ran.exit, 0);
  EXPECT_EQ(ran.out, expected.out);
  EXPECT_EQ(lines_of(ran.err), 3) << ran.err;
  EXPECT_THAT(ran.err, HasSubstr("standard input, line 1, set aside: $.schema: expected"));
  EXPECT_THAT(ran.err, HasSubstr("line 3, set aside"));
  expect_complaint(run_shell("berthctl profile fit -", "\n"), 2, "holds no observation");
}

TEST_F(Profile, SettingsCountForFit) {
  const Ran ran = run_shell("berthctl profile fit - --json -o interference.min_samples=90", observations());
  EXPECT_EQ(json::parse(ran.out.substr(0, ran.out.find('\n')))["accepted"], true) << ran.out << ran.err;
}

TEST_F(Profile, SumsBecomeAProfileThatIsListedShownAndExported) {
  const Ran sums = run_shell("berthctl profile fit --sums -", observations());
  ASSERT_EQ(sums.exit, 0) << sums.err;
  const auto path = file("profiles.json", sums.out);
  const Ran list = run_shell("berthctl profile list --file " + path);
  EXPECT_EQ(list.exit, 0) << list.err;
  EXPECT_THAT(list.out, HasSubstr("web by cpi: accepted: its error"));
  EXPECT_EQ(json::parse(run_shell("berthctl profile list --json --file " + path).out)["models"].size(), 2U);
  const Ran show = run_shell("berthctl profile show web --file " + path);
  EXPECT_THAT(show.out, HasSubstr("web by cpi"));
  EXPECT_EQ(show.out.find("db"), std::string::npos);
  EXPECT_EQ(json::parse(run_shell("berthctl profile show web --json --file " + path).out)["models"].size(),
            1U);
  expect_complaint(run_shell("berthctl profile show other --file " + path), 1, "nothing is learned of");
  EXPECT_EQ(run_shell("berthctl profile export --file " + path).out, sums.out);
}

TEST_F(Profile, ADamagedOrNewerFileIsRefusedWithItsPlace) {
  const auto later = file("later.json", R"({"schema": "berth.profiles/2", "profiles": []})");
  expect_complaint(run_shell("berthctl profile list --file " + later), 2,
                   "$.schema: expected \"berth.profiles/1\", found \"berth.profiles/2\"");
  expect_complaint(run_shell("berthctl profile import " + later), 2, "later.json");
  expect_complaint(run_shell("berthctl profile list --file " + file("broken.json", "{\"schema\": ")), 2,
                   "broken.json");
}

TEST_F(Profile, WrongUseIsOneLine) {
  expect_complaint(run_shell("berthctl profile"), 2, "action");
  expect_complaint(run_shell("berthctl profile learn"), 2,
                   "there are list, show, export, import, forget and fit");
  expect_complaint(run_shell("berthctl profile fit"), 2, "fit takes one FILE");
  expect_complaint(run_shell("berthctl profile show"), 2, "show takes one SERVICE");
  expect_complaint(run_shell("berthctl profile list web"), 2, "list takes no argument");
  expect_complaint(run_shell("berthctl profile fit x --file y"), 2, "fit takes no --file");
  expect_complaint(run_shell("berthctl profile list --sums"), 2, "--sums needs fit");
  expect_complaint(run_shell("berthctl profile list -o interference.min_samples=40"), 2,
                   "need fit, or list or show with --file");
  expect_complaint(run_shell("berthctl profile export --file x -o interference.min_samples=40"), 2,
                   "need fit, or list or show with --file");
  expect_complaint(run_shell("berthctl profile fit - --config -"), 2,
                   "standard input can be read for one thing only");
  expect_complaint(run_shell("berthctl profile list"), 4, "system bus");
}

}  // namespace berth::test
