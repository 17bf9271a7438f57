// SPDX-License-Identifier: Apache-2.0
#include "integrations/slurm/decide.h"

#include "tests/unit/integrations/slurm/shown_node.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::slurm {
namespace {

using model::SchedulingState;
using test::Shown;
using test::shown;
using ::testing::ElementsAre;

Node node(const Shown& it) {
  const auto read = parse_node(shown(it), "n1");
  EXPECT_TRUE(read) << read.error().message();
  return read.value_or(Node());
}

// 14 cores and 2 GiB for best-effort work, a score of 0.33.
Berth healthy() {
  model::NodeState state;
  state.score = 0.33;
  state.cpu = {.advertised = 18.2, .requested_latency_sensitive = 4, .utilisation = 0.5};
  state.memory = {.advertised = 5e9, .requested_latency_sensitive = 2e9, .utilisation = 0.4};
  return {.state = state, .silence = {}};
}

Berth closed() {
  Berth berth = healthy();
  berth.state->cpu.state = SchedulingState::no_schedule;
  berth.state->cpu.utilisation = 0.873;
  return berth;
}

Berth silent() { return {.state = std::nullopt, .silence = "berthd does not run"}; }

const std::string kExtra =
    R"({"berth_be_memory_gib":2,"berth_becpu":14,"berth_score":33,"berth_state":"schedule"})";
const std::string kOwnDrain = "   Reason=berth: cpu no-schedule, 87 % in use [root@2026-11-24T22:48:27]\n";

Settings no_extra() {
  Settings settings;
  settings.extra = false;
  return settings;
}

TEST(SlurmDecide, PublishesWeightResourceAndExtra) {
  const Update update = decide(node({.gres = "gpu:2(S:0),becpu:8"}), healthy(), {});
  EXPECT_THAT(arguments_of("n1", update),
              ElementsAre("update", "NodeName=n1", "Weight=34", "Gres=gpu:2,becpu:14", "Extra=" + kExtra));
  EXPECT_EQ(describe(node({.gres = "gpu:2(S:0),becpu:8"}), update),
            "weight 1 -> 34, gres gpu:2(S:0),becpu:8 -> gpu:2,becpu:14, extra " + kExtra);
}

TEST(SlurmDecide, ChangesNothingWhereNothingIsToChange) {
  EXPECT_TRUE(
      decide(node({.gres = "becpu:14", .weight = "34", .tail = "   Extra=" + kExtra + "\n"}), healthy(), {})
          .empty());
}

TEST(SlurmDecide, PublishesAgainWhatAReconfigurationReset) {
  const Update update = decide(
      node({.gres = "becpu:32", .weight = "1000", .tail = "   Extra=" + kExtra + "\n"}), healthy(), {});
  EXPECT_THAT(arguments_of("n1", update), ElementsAre("update", "NodeName=n1", "Weight=34", "Gres=becpu:14"));
}

TEST(SlurmDecide, KeepsAWeightThatIsNear) {
  for (const char* near : {"30", "34", "38"})
    EXPECT_EQ(decide(node({.weight = near}), healthy(), no_extra()).weight, std::nullopt) << near;
  for (const char* far : {"29", "39", "1", "102", "0"})
    EXPECT_EQ(decide(node({.weight = far}), healthy(), no_extra()).weight, 34U) << far;
  Settings tier;
  tier.base_weight = 1000;
  EXPECT_EQ(decide(node({.weight = "34"}), healthy(), tier).weight, 1033U);
  // The extra text says the score that the weight has.
  EXPECT_THAT(*decide(node({.weight = "36"}), healthy(), {}).extra,
              ::testing::HasSubstr("\"berth_score\":35"));
}

TEST(SlurmDecide, TakesPartsOfCoresForNone) {
  Berth berth = healthy();
  berth.state->cpu.advertised = 17.999;
  EXPECT_EQ(decide(node({}), berth, {}).gres, "becpu:13");
  // A difference of sums is a little less than a whole number.
  berth.state->cpu.advertised = 0.1 + 0.2 + 3.7 + 14 - 1e-12;
  EXPECT_EQ(decide(node({}), berth, {}).gres, "becpu:14");
  berth.state->cpu.requested_latency_sensitive = 40;
  EXPECT_EQ(decide(node({}), berth, {}).gres, "becpu:0");
  berth.state->cpu.advertised = 1e17;
  EXPECT_EQ(decide(node({}), berth, {}).gres, "becpu:1000000");
}

TEST(SlurmDecide, ANodeWithoutTheResourceHasNoneOfIt) {
  EXPECT_EQ(decide(node({.gres = "gpu:2"}), silent(), {}).gres, std::nullopt);
  EXPECT_EQ(decide(node({.gres = "(null)"}), silent(), {}).gres, std::nullopt);
  EXPECT_EQ(decide(node({.gres = "gpu:2"}), healthy(), {}).gres, "gpu:2,becpu:14");
}

TEST(SlurmDecide, DrainsWhileTheHostTakesNoWork) {
  const Update update = decide(node({}), closed(), no_extra());
  EXPECT_EQ(update.service, Service::drain);
  EXPECT_EQ(update.reason, "berth: cpu no-schedule, 87 % in use");
  EXPECT_THAT(arguments_of("n1", update),
              ElementsAre("update", "NodeName=n1", "Weight=34", "Gres=becpu:14", "State=DRAIN",
                          "Reason=berth: cpu no-schedule, 87 % in use"));
  Berth both = closed();
  both.state->memory.state = SchedulingState::evict;
  both.state->memory.utilisation = 0.96;
  EXPECT_EQ(decide(node({}), both, {}).reason,
            "berth: cpu no-schedule, 87 % in use; memory evict, 96 % in use");
  EXPECT_THAT(*decide(node({}), both, {}).extra, ::testing::HasSubstr("\"berth_state\":\"evict\""));
}

TEST(SlurmDecide, TouchesNoDrainOfOthers) {
  const Shown others{.state = "IDLE+DRAIN", .tail = "   Reason=disk broken [root@2026-11-24T22:48:27]\n"};
  for (const Berth& berth : {healthy(), closed(), silent()})
    EXPECT_EQ(decide(node(others), berth, {}).service, Service::keep);
  EXPECT_EQ(decide(node({.state = "IDLE+DRAIN"}), healthy(), {}).service, Service::keep);
  EXPECT_EQ(decide(node({.state = "IDLE+DRAIN", .tail = "   Reason=no berth: x [root@1]\n"}), healthy(), {})
                .service,
            Service::keep);
  // Slurm starts nothing there anyway, and the reason would be lost.
  EXPECT_EQ(
      decide(node({.state = "DOWN*", .tail = "   Reason=Not responding [slurm@1]\n"}), closed(), {}).service,
      Service::keep);
}

TEST(SlurmDecide, ResumesItsOwnDrainAlone) {
  const Shown own{.state = "MIXED+DRAIN", .tail = kOwnDrain};
  EXPECT_EQ(decide(node(own), closed(), {}).service, Service::keep);
  const Update update = decide(node(own), healthy(), no_extra());
  EXPECT_EQ(update.service, Service::resume);
  EXPECT_THAT(arguments_of("n1", update), ElementsAre("update", "NodeName=n1", "Weight=34", "Gres=becpu:14",
                                                      "State=UNDRAIN", "Reason=resumed by berth"));
  // A reason that stays although the drain has ended would make a later drain of Slurm look like berth's.
  const Update leftover =
      decide(node({.gres = "becpu:14", .weight = "34", .tail = kOwnDrain}), healthy(), no_extra());
  EXPECT_THAT(arguments_of("n1", leftover), ElementsAre("update", "NodeName=n1", "Reason=resumed by berth"));
  EXPECT_EQ(decide(node({.state = "DOWN", .tail = kOwnDrain}), healthy(), {}).reason, "");
  // Slurm would refuse the whole update.
  EXPECT_EQ(decide(node({.state = "IDLE+DRAIN+INVALID_REG", .tail = kOwnDrain}), healthy(), {}).service,
            Service::keep);
}

TEST(SlurmDecide, ASilentBerthdHasNothingForBestEffortWorkAndNoDrain) {
  const Update fresh = decide(node({.weight = "34"}), silent(), {});
  EXPECT_EQ(fresh.gres, "becpu:0");
  EXPECT_EQ(fresh.weight, 51U);
  EXPECT_EQ(fresh.service, Service::keep);
  EXPECT_EQ(fresh.extra,
            R"({"berth_be_memory_gib":0,"berth_becpu":0,"berth_score":50,"berth_state":"silent"})");
  EXPECT_EQ(decide(node({.state = "IDLE+DRAIN", .tail = kOwnDrain}), silent(), {}).service, Service::resume);
}

TEST(SlurmDecide, LeavesAloneWhatItIsToLeaveAlone) {
  Settings none;
  none.weight = none.gres = none.drain = none.extra = false;
  EXPECT_TRUE(decide(node({}), closed(), none).empty());
  EXPECT_TRUE(decide(node({.state = "IDLE+DRAIN", .tail = kOwnDrain}), healthy(), none).empty());
  // Without a drain nothing else keeps best-effort work away.
  Settings no_drain;
  no_drain.drain = false;
  EXPECT_EQ(decide(node({}), closed(), no_drain).gres, "becpu:0");
}

TEST(SlurmDecide, KeepsTheMembersOfOthersInTheExtraText) {
  const auto extra = [](const std::string& present) {
    return decide(node({.tail = "   Extra=" + present + "\n"}), healthy(), {}).extra;
  };
  EXPECT_EQ(
      extra(R"({"rack":"r1","berth_becpu":3})"),
      R"({"berth_be_memory_gib":2,"berth_becpu":14,"berth_score":33,"berth_state":"schedule","rack":"r1"})");
  EXPECT_EQ(extra("(null)"), kExtra);
  for (const std::string& kept :
       {std::string("rack 7"), std::string("[1]"), std::string("{\"a\":"),
        "{\"a\":\"" + std::string(kMaxExtraBytes, 'x') + "\"}", std::string(2000, '[')})
    EXPECT_EQ(extra(kept), std::nullopt) << kept;
  EXPECT_EQ(decide(node({.version = "21.08.8"}), healthy(), {}).extra, std::nullopt);
  EXPECT_NE(decide(node({.version = "24.11.5"}), healthy(), {}).extra, std::nullopt);
  EXPECT_EQ(decide(node({.version = "x"}), healthy(), {}).extra, std::nullopt);
}

TEST(SlurmDecide, PublishesNoMoreThanSlurmConfHasOnceSlurmComplains) {
  const Shown refused{
      .gres = "becpu:14",
      .state = "IDLE+DRAIN+INVALID_REG",
      .tail =
          "   Reason=gres/becpu count reported lower than configured (8 < 14) [root@2026-11-24T22:48:27]\n"};
  EXPECT_EQ(configured_too_low(node(refused), "becpu"), 8U);
  EXPECT_EQ(configured_too_low(node(refused), "gpu"), std::nullopt);
  EXPECT_EQ(configured_too_low(node({}), "becpu"), std::nullopt);
  EXPECT_EQ(decide(node(refused), healthy(), {}).gres, "becpu:8");
  EXPECT_EQ(decide(node(refused), healthy(), {}).service, Service::keep);
}

}  // namespace
}  // namespace berth::slurm
