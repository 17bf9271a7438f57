// SPDX-License-Identifier: Apache-2.0
#include "ebpf/collector.h"

#include <fstream>

#include <gtest/gtest.h>
#include <stdlib.h>

namespace berth::ebpf {
namespace {

class ResctrlTest : public ::testing::Test {
 protected:
  ResctrlTest() {
    std::string name = (std::filesystem::temp_directory_path() / "berth-resctrl-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("mkdtemp");
    sys = name;
  }
  ~ResctrlTest() override { std::filesystem::remove_all(sys); }

  std::filesystem::path sys;
};

TEST_F(ResctrlTest, AHostWithoutItIsSaidToHaveNone) {
  EXPECT_NE(resctrl_offer(sys).find("is missing"), std::string::npos);
}

TEST_F(ResctrlTest, AMountPointWithNothingOnItIsNotMounted) {
  std::filesystem::create_directories(sys / "fs/resctrl");
  EXPECT_EQ(resctrl_offer(sys), "resource control is not mounted");
}

TEST_F(ResctrlTest, AllocationWithoutMonitoringIsSaid) {
  std::filesystem::create_directories(sys / "fs/resctrl/info/L3");
  EXPECT_EQ(resctrl_offer(sys), "resource control monitors nothing here");
}

TEST_F(ResctrlTest, MonitoringFiguresAreNamed) {
  std::filesystem::create_directories(sys / "fs/resctrl/info/L3_MON");
  std::ofstream(sys / "fs/resctrl/info/L3_MON/mon_features") << "llc_occupancy\nmbm_total_bytes\n";
  EXPECT_NE(resctrl_offer(sys).find("llc_occupancy, mbm_total_bytes"), std::string::npos);
}

}  // namespace
}  // namespace berth::ebpf
