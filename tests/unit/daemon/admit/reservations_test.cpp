// SPDX-License-Identifier: Apache-2.0
#include "daemon/admit/reservations.h"

#include "tests/unit/daemon/fake_node.h"

#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

Reservation reservation(const std::string& id, double since = 100, double hold_s = 10) {
  Reservation made{.request = {}, .since = since, .hold_s = hold_s};
  made.request.id = made.request.service = id;
  made.request.vcpus = 2;
  made.request.memory_request_bytes = 4096;
  return made;
}

Arrival workload(const std::string& id) { return {.id = id, .named_by_root = id}; }

class ReservationsTest : public testing::Test {
 protected:
  Reservations open() {
    warning.reset();
    return {node.runtime_dir(), test::fake_clock([] { return 0.0; }), warning};
  }
  test::FakeNode node;
  std::optional<std::string> warning;
};

}  // namespace

TEST_F(ReservationsTest, OfADaemonThatDidNotKeepTheDecisionAreReadAllTheSame) {
  std::ofstream(node.runtime_dir() / "reservations.json")
      << R"([{"since": 1, "hold_s": 5, "request": {"schema": "berth.request/1", "id": "a", "vcpus": 1}}])";
  const auto read = open();
  EXPECT_EQ(warning, std::nullopt);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read.all()[0].decision, "");
}

TEST_F(ReservationsTest, AreShownWithTheirPlaces) {
  auto held = open();
  ASSERT_TRUE(held.hold(reservation("a")));
  ASSERT_TRUE(held.hold(reservation("b", 101)));
  model::FittingBin place;
  place.numa = 1;
  place.cpus = {4, 5};
  const auto shown = nlohmann::json::parse(reservations_json("node-a", 103, 0, held, {{"b", place}}));
  EXPECT_EQ(shown["schema"], "berth.reservations/1");
  EXPECT_EQ(shown["host"], "node-a");
  ASSERT_EQ(shown["reservations"].size(), 2U);
  EXPECT_EQ(shown["reservations"][0]["place"], nullptr);
  EXPECT_EQ(shown["reservations"][1]["place"]["cpus"], "4-5");
  EXPECT_FALSE(shown["reservations"][1]["place"].contains("numa_nodes"));
  place.numa_nodes = {1, 2};
  const auto wide = nlohmann::json::parse(reservations_json("node-a", 103, 0, held, {{"b", place}}));
  EXPECT_EQ(wide["reservations"][1]["place"]["numa_nodes"], "1-2");
  EXPECT_EQ(shown["reservations"][1]["until"], 111);
  EXPECT_EQ(shown["reservations"][1]["request"]["memory_request_bytes"], 4096);
}

TEST(ReservationMatch, GoesByPathOrByTheNameOfADirectoryInIt) {
  EXPECT_TRUE(is_meant("system.slice/web.service", "system.slice/web.service"));
  EXPECT_TRUE(is_meant("web.service", "system.slice/web.service"));
  EXPECT_TRUE(is_meant("web", "system.slice/web.service"));
  EXPECT_TRUE(is_meant("kubepods-pod12", "kubepods.slice/kubepods-pod12.slice/cri-containerd-ab.scope"));
  EXPECT_FALSE(is_meant("web", "system.slice/web-2.service"));
  EXPECT_FALSE(is_meant("web", "system.slice/web.timer"));
  EXPECT_FALSE(is_meant("system.slice/web", "system.slice/web.service"));
  EXPECT_FALSE(is_meant("eb.service", "system.slice/web.service"));
}

bool nobody(const std::string&) { return false; }

TEST_F(ReservationsTest, LastForTheirTime) {
  auto held = open();
  ASSERT_TRUE(held.hold(reservation("a")));
  ASSERT_TRUE(held.hold(reservation("b", 105)));
  EXPECT_TRUE(held.expire(109.9, nobody).empty());
  const auto ended = held.expire(110, nobody);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].request.id, "a");
  EXPECT_EQ(held.pending().size(), 1U);
}

TEST_F(ReservationsTest, WhoHasComeIsNotLate) {
  auto held = open();
  ASSERT_TRUE(held.hold(reservation("a")));
  ASSERT_TRUE(held.hold(reservation("b")));
  const auto ended = held.expire(110, [](const std::string& id) { return id == "a"; });
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].request.id, "b");
}

TEST_F(ReservationsTest, OneThatIsRenewedKeepsItsTurn) {
  auto held = open();
  ASSERT_TRUE(held.hold(reservation("a")));
  ASSERT_TRUE(held.hold(reservation("b")));
  ASSERT_TRUE(held.hold(reservation("a", 105)));
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held.all()[0].request.id, "a");
  EXPECT_EQ(held.all()[0].since, 105);
}

TEST_F(ReservationsTest, LastNoLongerAndNoShorterOverARestartAfterTheWallClockWasSet) {
  for (const double step : {-28800.0, 28800.0}) {
    Reservations held(node.runtime_dir(),
                      os::Clock({.boot = [] { return 100.0; }, .wall = [] { return 1e6; }}), warning);
    ASSERT_TRUE(held.hold(reservation("a", 1e6)));
    const os::Clock clock({.boot = [] { return 105.0; }, .wall = [step] { return 1e6 + 5 + step; }});
    Reservations again(node.runtime_dir(), clock, warning);
    ASSERT_EQ(again.size(), 1U);
    EXPECT_TRUE(again.expire(clock.now() + 4.9, nobody).empty());
    EXPECT_EQ(again.expire(clock.now() + 5, nobody).size(), 1U);
  }
}

TEST_F(ReservationsTest, EndWhenTheirWorkloadComesOneForEach) {
  auto held = open();
  ASSERT_TRUE(held.hold(reservation("web")));
  ASSERT_TRUE(held.hold(reservation("system.slice/web.service")));
  EXPECT_TRUE(held.meet(workload("system.slice/db.service")).empty());
  const auto met = held.meet(workload("system.slice/web.service"));
  ASSERT_EQ(met.size(), 1U);
  EXPECT_EQ(met[0].request.id, "web");
  EXPECT_EQ(held.size(), 1U);
}

TEST_F(ReservationsTest, ADirectoryThatAUserNamedConsumesNone) {
  const std::string ground = "user.slice/user-1000.slice/user@1000.service";
  const Arrival users{.id = ground + "/app.slice/train", .named_by_root = ground};
  EXPECT_FALSE(is_meant("train", users));
  EXPECT_FALSE(is_meant("app", users));
  EXPECT_TRUE(is_meant("user@1000", users)) << "root named that one";
  EXPECT_TRUE(is_meant(users.id, users)) << "nobody else can make that";
  auto held = open();
  ASSERT_TRUE(held.hold(reservation("train")));
  EXPECT_TRUE(held.meet(users).empty());
  EXPECT_EQ(held.meet(workload("system.slice/train.service")).size(), 1U);
}

TEST_F(ReservationsTest, OneOfTheSameIdIsReplaced) {
  auto held = open();
  ASSERT_TRUE(held.hold(reservation("a")));
  auto larger = reservation("a", 103);
  larger.request.vcpus = 4;
  ASSERT_TRUE(held.hold(larger));
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held.find("a")->request.vcpus, 4);
  EXPECT_TRUE(held.release("a"));
  EXPECT_FALSE(held.release("a"));
}

TEST_F(ReservationsTest, OneThatAsksForSomethingElseIsTheLast) {
  auto held = open();
  ASSERT_TRUE(held.hold(reservation("a")));
  ASSERT_TRUE(held.hold(reservation("b")));
  auto larger = reservation("a", 103);
  larger.request.vcpus = 4;
  ASSERT_TRUE(held.hold(larger));
  ASSERT_EQ(held.size(), 2U);
  EXPECT_EQ(held.all()[1].request.id, "a");
}

TEST_F(ReservationsTest, AreNotWithoutEnd) {
  auto held = open();
  for (std::size_t i = 0; i < Reservations::kMost; ++i)
    ASSERT_TRUE(held.hold(reservation("r" + std::to_string(i))));
  const auto refused = held.hold(reservation("one more"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), model::ErrorKind::refused);
  EXPECT_TRUE(held.hold(reservation("r7")));
}

TEST_F(ReservationsTest, OutliveTheDaemon) {
  auto written = reservation("a");
  written.decision = "d-0123456789ab";
  written.request.workload_class = model::WorkloadClass::best_effort;
  written.request.gpus = 2;
  written.request.gpu_memory_bytes = 7;
  written.request.gpu_model = "NVIDIA *";
  written.request.gpu_exclusive = false;
  ASSERT_TRUE(open().hold(written));
  const auto read = open();
  EXPECT_EQ(warning, std::nullopt);
  ASSERT_EQ(read.size(), 1U);
  EXPECT_EQ(read.all()[0].request, written.request);
  EXPECT_EQ(read.all()[0].until(), 110);
  EXPECT_EQ(read.all()[0].decision, "d-0123456789ab");
}

TEST_F(ReservationsTest, ADamagedFileIsAsGoodAsNone) {
  for (const char* text :
       {"{", "[{}]", R"([{"since": 1, "hold_s": -1, "request": {}}])", "7",
        R"([{"since": 1, "hold_s": 5, "request": {"schema": "berth.request/1"}}])",
        R"([{"since": 1, "hold_s": 0, "request": {"schema": "berth.request/1", "vcpus": 1}}])"}) {
    std::ofstream(node.runtime_dir() / "reservations.json") << text;
    EXPECT_EQ(open().size(), 0U) << text;
    EXPECT_NE(warning.value_or("").find("reservations.json"), std::string::npos) << text;
  }
}

TEST_F(ReservationsTest, KeepWhatRoomWasMade) {
  auto held = open();
  ASSERT_TRUE(held.hold(reservation("a")));
  held.set_room({{"a", {1.5, 100}}, {"b", {1, 1}}});
  EXPECT_EQ(held.pending()[0].room_cpu_cores, 1.5);
  EXPECT_EQ(held.pending()[0].room_memory_bytes, 100U);
  held.set_room({});
  EXPECT_EQ(held.pending()[0].room_cpu_cores, 0);
}

}  // namespace berth::daemon
