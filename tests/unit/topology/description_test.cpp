// SPDX-License-Identifier: Apache-2.0
// Topologies out of hwloc's XML exports and synthetic descriptions.
#include "fake_host.h"
#include "topology/discover.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <hwloc.h>
#include <hwloc/export.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

namespace berth::topology {
namespace {

namespace fs = std::filesystem;
using model::CpuSet;
using model::DomainKind;

std::string error_of(const model::Result<model::Topology>& topology) {
  return topology ? "" : topology.error().message();
}

bool says(const std::string& message, const std::string& part) {
  return message.find(part) != std::string::npos;
}

// Exports a synthetic machine as lstopo would.
void export_xml(const std::string& description, const fs::path& file) {
  hwloc_topology_t tree = nullptr;
  ASSERT_EQ(hwloc_topology_init(&tree), 0);
  ASSERT_EQ(hwloc_topology_set_synthetic(tree, description.c_str()), 0);
  ASSERT_EQ(hwloc_topology_load(tree), 0);
  ASSERT_EQ(hwloc_topology_export_xml(tree, file.c_str(), 0), 0);
  hwloc_topology_destroy(tree);
}

TEST(Synthetic, ADescriptionIsTakenAtItsWord) {
  const auto topology = from_synthetic("package:2 l3:2 core:4 pu:2");
  ASSERT_TRUE(topology) << error_of(topology);
  EXPECT_EQ(topology->usable(), CpuSet::range(0, 31));
  EXPECT_EQ(topology->sockets().size(), 2U);
  EXPECT_EQ(topology->domains(DomainKind::llc).size(), 4U);
  EXPECT_EQ(topology->core_threads(0), (CpuSet{0, 1}));
}

TEST(Synthetic, WhatHwlocCannotReadIsQuoted) {
  for (const char* description :
       {"", "banana", "package:0", "package:-1", "core:4 package:2", "pu", "package:2 core:"}) {
    const auto topology = from_synthetic(description);
    ASSERT_FALSE(topology) << description;
    EXPECT_EQ(topology.error().kind(), model::ErrorKind::invalid_input) << description;
    EXPECT_NE(error_of(topology).find('"' + std::string(description) + '"'), std::string::npos)
        << error_of(topology);
  }
}

TEST(Synthetic, AbsurdSizesAreRefusedBeforeTheyAreBuilt) {
  for (const char* description : {"pu:8193", "package:100000 core:100000 pu:2",
                                  "package:2 [numa] core:99999999999999999999 pu:2", "64 64 3"}) {
    EXPECT_NE(error_of(from_synthetic(description)).find("more than 8192 vCPUs"), std::string::npos)
        << description;
  }
}

TEST(Synthetic, TheLargestHostIsAccepted) {
  const auto topology = from_synthetic("package:8 l3:8 core:64 pu:2");
  ASSERT_TRUE(topology) << error_of(topology);
  EXPECT_EQ(topology->usable().size(), 8192U);
}

TEST(Xml, AnExportReadsBack) {
  const test::FakeHost host;
  const auto file = host.root() / "machine.xml";
  const std::string description = "[numa] package:2 l3:2 core:2 pu:2";
  export_xml(description, file);
  const auto topology = from_xml(file);
  ASSERT_TRUE(topology) << error_of(topology);
  const auto direct = from_synthetic(description);
  ASSERT_TRUE(direct) << error_of(direct);
  EXPECT_EQ(*topology, *direct);
}

TEST(Xml, BadFilesAreNamed) {
  const test::FakeHost host;
  const auto write = [&](const char* name, const std::string& content) {
    std::ofstream(host.root() / name) << content;
    return host.root() / name;
  };
  const auto fifo = host.root() / "fifo.xml";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  for (const auto& file :
       {write("empty.xml", ""),
        write("half.xml", "<?xml version=\"1.0\"?><topology version=\"2.0\"><object type=\"Ma"),
        write("other.xml", "<html><body/></html>"), write("text.xml", "package:2 core:2"),
        write("zeros.xml", std::string(1000, '\0')), host.root() / "missing.xml", host.root(), fifo}) {
    const auto topology = from_xml(file);
    ASSERT_FALSE(topology) << file;
    EXPECT_EQ(error_of(topology).rfind(file.string(), 0), 0U) << error_of(topology);
  }
}

TEST(Xml, ARefusedFileIsRefusedWithTheCauseAndTheRemedy) {
  const auto refused = [](const std::string& text) { return error_of(from_xml_text(text, "x.xml")); };
  EXPECT_EQ(refused(R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc3.dtd">
<topology version="3.0">
</topology>)"),
            "x.xml: it was written by hwloc 3; this berth reads 1.x to 2.x: `lstopo --export-xml-flags v2 "
            "FILE.xml` "
            "writes an older format");
  EXPECT_TRUE(says(refused(" <!-- a --> <topology a='1' version = '12.1'>"), "written by hwloc 12;"));
  EXPECT_TRUE(says(refused(" \n"), "it is empty; `lstopo FILE.xml`"));
  EXPECT_TRUE(says(refused("package:2 core:2"), "it is no XML"));
  EXPECT_TRUE(says(refused("<html><body/></html>"), "its first element is <html>"));
  EXPECT_TRUE(says(refused("<" + std::string(100'000, 'x') + ">"), "xxx>, so"));
  EXPECT_TRUE(says(refused("<topologydiff/>"), "hwloc-patch(1)"));
  EXPECT_TRUE(says(refused("<topology version=\"2.0\"><object type=\"Ma"), "its end is missing"));
  EXPECT_TRUE(says(refused("<topology version=\"2.0\">\n<object type=\"Rock\"/>\n</topology>"),
                   "reads no topology in it"));
  // Nothing here may be read past its end.
  const std::string whole = "\xEF\xBB\xBF<?xml?><!DOCTYPE x><!-- x --><topology version = \"3.0\" a='b' >";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refused(whole.substr(0, length)), "") << length;
  }
}

TEST(Xml, ResolvesBothKindsOfReference) {
  const test::FakeHost host;
  export_xml("core:2 pu:1", host.root() / "m.xml");
  const auto by_xml = resolve(model::HwlocXml{(host.root() / "m.xml").string()});
  const auto by_description = resolve(model::HwlocSynthetic{"core:2 pu:1"});
  ASSERT_TRUE(by_xml && by_description);
  EXPECT_EQ(*by_xml, *by_description);
}

// Every count of a random description comes back out of the topology.
RC_GTEST_PROP(Synthetic, CountsAgreeWithTheDescription, ()) {
  const int packages = *rc::gen::inRange(1, 5);
  const int nodes = *rc::gen::inRange(1, 4);
  const int caches = *rc::gen::inRange(1, 4);
  const int cores = *rc::gen::inRange(1, 6);
  const int threads = *rc::gen::inRange(1, 5);
  const bool with_l3 = *rc::gen::arbitrary<bool>();
  const auto domains = static_cast<std::size_t>(packages * nodes * caches);
  const auto description = fmt::format("package:{} group:{} [numa] {}:{} core:{} pu:{}", packages, nodes,
                                       with_l3 ? "l3" : "group", caches, cores, threads);
  const auto topology = from_synthetic(description);
  RC_ASSERT(topology.has_value());
  const auto all = domains * static_cast<std::size_t>(cores * threads);
  RC_ASSERT(topology->cpus().size() == all);
  RC_ASSERT(topology->usable().size() == all);
  RC_ASSERT(topology->max_threads_per_core() == threads);
  RC_ASSERT(topology->has_llc() == with_l3);
  RC_ASSERT(topology->sockets().size() == static_cast<std::size_t>(packages));
  RC_ASSERT(topology->domains(DomainKind::llc).size() ==
            (with_l3 ? domains : static_cast<std::size_t>(packages)));
  std::set<int> node_ids;
  std::set<int> core_ids;
  for (const auto& cpu : topology->cpus()) {
    node_ids.insert(cpu.numa);
    core_ids.insert(cpu.core);
  }
  RC_ASSERT(node_ids.size() == static_cast<std::size_t>(packages * nodes));
  RC_ASSERT(core_ids.size() == all / static_cast<std::size_t>(threads));
}

// Few of them: each costs some hundred files.
TEST(Discover, RegularHostsAreFoundAsTheyWereWritten) {
  for (const int sockets : {1, 2, 3}) {
    for (const int cores : {1, 3}) {
      for (const int threads : {1, 2, 4}) {
        test::FakeHost host;
        host.set_cpus(test::regular_host(sockets, cores, threads));
        const auto found = discover(host.sys(), host.proc());
        ASSERT_TRUE(found) << error_of(found);
        ASSERT_EQ(found->cpus().size(), static_cast<std::size_t>(sockets * cores * threads));
        for (const auto& cpu : found->cpus()) {
          EXPECT_EQ(cpu.core, cpu.cpu % (sockets * cores));
          EXPECT_EQ(cpu.socket, cpu.core / cores);
          EXPECT_EQ(cpu.llc, cpu.socket);
          EXPECT_EQ(cpu.numa, cpu.socket);
          EXPECT_EQ(found->smt_rank(cpu.cpu), cpu.cpu / (sockets * cores));
        }
      }
    }
  }
}

}  // namespace
}  // namespace berth::topology
