// SPDX-License-Identifier: Apache-2.0
// Why pressure cannot be watched; that it wakes the loop where it can is for tests/vm to show.
#include "daemon/observe/pressure_watch.h"

#include "tests/unit/daemon/fake_node.h"

#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <systemd/sd-event.h>

namespace berth::daemon {
namespace {

struct EventUnref {
  void operator()(sd_event* event) const { sd_event_unref(event); }
};

class PressureWatchTest : public testing::Test {
 protected:
  void attach(double share) {
    sd_event* raw = nullptr;
    ASSERT_GE(sd_event_new(&raw), 0);
    event.reset(raw);
    watch = std::make_unique<PressureWatch>(node.proc(), share);
    watch->attach(raw, [](const std::string&) { FAIL() << "nothing is under pressure"; });
  }
  std::string why_not() const {
    const auto capability = watch->capability();
    EXPECT_FALSE(capability.available);
    return capability.detail;
  }

  test::FakeNode node;
  std::unique_ptr<sd_event, EventUnref> event;
  std::unique_ptr<PressureWatch> watch;
};

TEST_F(PressureWatchTest, SwitchedOffByTheConfigurationItSaysSo) {
  attach(0);
  EXPECT_EQ(why_not(),
            "switched off by sampling.pressure_threshold = 0; berth sees pressure at its next tick");
}

TEST_F(PressureWatchTest, AFileThatIsNotTheKernelsIsLeftAndNamed) {
  const auto file = node.proc() / "pressure/memory";
  const auto size = std::filesystem::file_size(file);
  attach(0.1);
  EXPECT_EQ(
      why_not(),
      "memory of the node: pressure/memory is an ordinary file, not the kernel's; berth sees pressure at "
      "its next tick");
  EXPECT_EQ(std::filesystem::file_size(file), size);
}

TEST_F(PressureWatchTest, WithoutPsiItNamesTheFileThatIsMissing) {
  std::filesystem::remove_all(node.proc() / "pressure");
  attach(0.1);
  EXPECT_EQ(
      why_not(),
      "memory of the node: cannot open pressure/memory: No such file or directory; berth sees pressure at "
      "its next tick");
}

TEST_F(PressureWatchTest, AnotherThresholdTakesEffectAtOnce) {
  attach(0);
  watch->set_share(0.5);
  EXPECT_NE(why_not().find("ordinary file"), std::string::npos);
  watch->set_share(0);
  EXPECT_NE(why_not().find("switched off"), std::string::npos);
}

}  // namespace
}  // namespace berth::daemon
