// SPDX-License-Identifier: Apache-2.0
// The command `topology`, on topologies that are given.
#include "program.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::test {

using nlohmann::json;
using testing::HasSubstr;

TEST_F(Berthctl, DrawsTopologies) {
  const Ran drawn = run_shell("berthctl topology --synthetic 'package:2 l3:1 core:2 pu:2'");
  EXPECT_EQ(drawn.exit, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("socket 1"));
  const Ran printed = run_shell("berthctl topology --json --synthetic 'package:2 l3:1 core:2 pu:2'");
  EXPECT_EQ(json::parse(printed.out).at("schema"), "berth.topology/1");
  EXPECT_EQ(json::parse(printed.out).at("cpus").size(), 8U);
  EXPECT_EQ(run_shell("berthctl topology").exit, 0);
}

TEST_F(Berthctl, WrongTopologiesAreNamed) {
  expect_complaint(run_shell("berthctl topology --synthetic nonsense"), 2, "nonsense");
  expect_complaint(run_shell("berthctl topology --xml /no/such.xml"), 2, "/no/such.xml");
}

TEST_F(Berthctl, ReadsATopologyFromStandardInput) {
  // In lines, as hwloc writes it: without its plugin for libxml2 it reads nothing else.
  const std::string xml =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
      R"(<topology version="2.0">)"
      R"(<object type="Machine" os_index="0" cpuset="0x1" complete_cpuset="0x1" )"
      R"(allowed_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" allowed_nodeset="0x1" gp_index="1">)"
      R"(<object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" )"
      R"(complete_nodeset="0x1" gp_index="4" local_memory="1024"/>)"
      R"(<object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" )"
      R"(complete_nodeset="0x1" gp_index="2"><object type="Core" os_index="0" cpuset="0x1" )"
      R"(complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3">)"
      R"(<object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" )"
      R"(complete_nodeset="0x1" gp_index="5"/></object></object></object></topology>)";
  const Ran ran = run_shell("berthctl topology --xml - --json", xml);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  EXPECT_EQ(json::parse(ran.out).at("cpus").size(), 1U);
  expect_complaint(run_shell("berthctl topology --xml -", "nonsense"), 2, "standard input");
}

}  // namespace berth::test
