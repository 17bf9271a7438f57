// SPDX-License-Identifier: Apache-2.0
// A systemd that answers late, never, or is not there.
#include "systemd_owner_fixture.h"

#include <gmock/gmock.h>

namespace berth::cgroup {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;

class SystemdOwnerSilence : public SystemdOwnerTest {
 protected:
  FoundWorkload add_other() {
    systemd->add("other.service", {"system.slice/other.service", {}, false});
    return tree.found("system.slice/other.service", "other.service");
  }
  // From here on no call is answered, and an answer that takes more than a moment is not waited for.
  void fall_silent_for_the_hurried() {
    SystemdOwner::Options hurried = options(2s);
    hurried.patience = 1ms;
    systemd->fall_silent(true);
    owner = std::make_unique<SystemdOwner>(hurried);
  }
};

TEST_F(SystemdOwnerSilence, SilentSystemdIsTransientAndAskedOnlyOnce) {
  add();
  const FoundWorkload web = this->web();
  const FoundWorkload other = add_other();
  ASSERT_TRUE(writer().set(web, cpus("2")));
  ASSERT_TRUE(writer().set(other, cpus("2")));
  fall_silent();
  const std::vector<Request> requests{{&web, cpus("3")}, {&other, cpus("3")}};
  const auto results = writer().set_many(requests, 60s);
  EXPECT_EQ(systemd->unanswered(), 1) << "one timeout, not one for each";
  for (const SetResult& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().kind(), model::ErrorKind::transient);
  }
  EXPECT_EQ(journal->size(), 2U);
  systemd->fall_silent(false);
  connect(berth::test::kPatience);
  writer().restore_all();
  EXPECT_EQ(now(), "");
  EXPECT_TRUE(nothing_left());
}

TEST_F(SystemdOwnerSilence, BrokenConnectionIsMadeAgain) {
  add();
  Writer writer = this->writer();
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  systemd.reset();  // systemd leaves the bus
  EXPECT_FALSE(writer.set(web(), cpus("3")));
  systemd = std::make_unique<FakeSystemd>(bus.address(), tree, run.path());
  add();
  ASSERT_TRUE(writer.set(web(), cpus("4")));
  EXPECT_EQ(now(), "4");
}

TEST_F(SystemdOwnerSilence, SystemdThatComesLaterIsAsked) {
  systemd.reset();  // no systemd on the bus yet
  owner = std::make_unique<SystemdOwner>(options(berth::test::kPatience));
  tree.make(kGroup);
  Writer writer = this->writer();
  EXPECT_FALSE(owner->greet());
  const auto refused = writer.set(web(), cpus("2"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind(), model::ErrorKind::transient);
  EXPECT_NE(refused.error().message().find("systemd is not on the system bus"), std::string::npos);
  EXPECT_EQ(now(), "") << "nothing is written past systemd";
  systemd = std::make_unique<FakeSystemd>(bus.address(), tree, run.path());
  add();
  EXPECT_TRUE(owner->greet());
  ASSERT_TRUE(writer.set(web(), cpus("2")));
  EXPECT_EQ(configured(), "2");
}

TEST_F(SystemdOwnerSilence, AnAnswerThatTakesLongIsNotWaitedFor) {
  add();
  fall_silent_for_the_hurried();
  Writer writer = this->writer();
  for (int call = 0; call < 100; ++call)
    EXPECT_EQ(writer.set(web(), cpus("2")).error().kind(), model::ErrorKind::transient);
  EXPECT_LE(systemd->unanswered(), 1) << "a call waits for the one before";
  systemd->fall_silent(false);
  EXPECT_TRUE(berth::test::eventually([&] { return writer.set(web(), cpus("2")).has_value(); }));
  EXPECT_EQ(now(), "2");
  EXPECT_THAT(writer.restore_all().left, testing::Each(testing::Field(&RestoreReport::Left::kept, true)));
  owner->be_patient();
  EXPECT_THAT(writer.restore_all().left, IsEmpty());
  EXPECT_EQ(now(), "");
  EXPECT_EQ(journal->size(), 0U);
}

TEST_F(SystemdOwnerSilence, AChangeThatIsDoneLateIsStillOnRecord) {
  add("0-5");
  const FoundWorkload web = this->web();
  const FoundWorkload other = add_other();
  ASSERT_TRUE(writer().set(web, cpus("2")));
  ASSERT_TRUE(writer().set(other, cpus("2")));
  fall_silent_for_the_hurried();
  Writer writer = this->writer();
  const std::vector<Request> requests{{&web, cpus("3")}, {&other, cpus("3")}};
  EXPECT_FALSE(writer.set_many(requests, 60s).front());
  EXPECT_EQ(text(writer.written(web, Attribute::cpus)), "3");
  EXPECT_EQ(text(writer.written(other, Attribute::cpus)), "2") << "it was not asked for";
  ASSERT_TRUE(berth::test::eventually([&] { return systemd->unanswered() == 1; }));
  const auto postponed = writer.set(web, cpus("4"));
  ASSERT_FALSE(postponed);
  EXPECT_EQ(postponed.error().kind(), model::ErrorKind::transient);
  EXPECT_EQ(text(writer.written(web, Attribute::cpus)), "3") << "systemd may still do it";
  systemd->set_property(kUnit, Attribute::cpus, allowed("3"));
  EXPECT_EQ(writer.drift(web, cpus("3")), Drift::none);
  systemd->fall_silent(false);
  connect(berth::test::kPatience);
  EXPECT_THAT(this->writer().restore_all().left, IsEmpty());
  EXPECT_EQ(now(), "0-5");
  EXPECT_EQ(configured(), "0-5");
}

}  // namespace
}  // namespace berth::cgroup
