// SPDX-License-Identifier: Apache-2.0
// The service shows by Introspect exactly the interfaces of the XML files.
#include "daemon/serve/bus_service_workloads.h"
#include "fixture.h"
#include "tests/paths.h"

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace berth::test {

namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Every member of interface `name` as "interface/method SetMode/arg mode s in", in no order.
std::set<std::string> members(const std::string& xml, const std::string& name) {
  static const std::regex tag(R"(<(/?)(interface|method|signal|property|arg|annotation)\b([^>]*?)(/?)>)");
  static const std::regex attribute(R"re((\w+)="([^"]*)")re");
  std::set<std::string> found;
  std::vector<std::string> path;
  const std::string text = std::regex_replace(xml, std::regex("<!--[^]*?-->"), "");
  for (std::sregex_iterator it(text.begin(), text.end(), tag), end; it != end; ++it) {
    const std::smatch& match = *it;
    if (match[1] == "/") {
      path.pop_back();
      continue;
    }
    std::map<std::string, std::string> values;
    const std::string attributes = match[3];
    for (std::sregex_iterator a(attributes.begin(), attributes.end(), attribute); a != end; ++a) {
      values[(*a)[1]] = (*a)[2];
    }
    std::string here = match[2].str() + " " + values["name"];
    for (const char* key : {"type", "direction", "access", "value"}) {
      if (values.contains(key)) here += " " + values[key];
    }
    path.push_back(here);
    std::string whole;
    for (const std::string& part : path) whole += "/" + part;
    if (path.front() == "interface " + name) found.insert(whole);
    if (match[4] == "/") path.pop_back();
  }
  return found;
}

}  // namespace

class Introspection : public BusServiceTest {
 protected:
  std::string introspect(const std::string& path) {
    return with_client([path] {
      Client client;
      std::string xml;
      client.proxy(path)
          ->callMethod("Introspect")
          .onInterface("org.freedesktop.DBus.Introspectable")
          .storeResultsTo(xml);
      return xml;
    });
  }

  void expect_same(const std::string& path, const std::string& interface, const std::string& file) {
    const auto promised = members(read_file(std::string(BERTH_BUS_DIR) + "/" + file), interface);
    EXPECT_GT(promised.size(), 3U);
    EXPECT_EQ(members(introspect(path), interface), promised);
  }
};

TEST_F(Introspection, ManagerIsAsItsXmlSays) {
  expect_same(bus::kManagerPath, "org.berth.Node1.Manager", "org.berth.Node1.xml");
}

TEST_F(Introspection, WorkloadIsAsItsXmlSays) {
  expect_same(daemon::workload_path("system.slice/web@1.service"), "org.berth.Node1.Workload",
              "org.berth.Node1.Workload.xml");
}

TEST_F(Introspection, LogControlIsAsItsXmlSays) {
  expect_same(bus::kLogControlPath, "org.freedesktop.LogControl1", "org.freedesktop.LogControl1.xml");
}

TEST_F(Introspection, ManagerOffersTheStandardInterfaces) {
  const std::string xml = introspect(bus::kManagerPath);
  for (const char* name : {"org.freedesktop.DBus.Properties", "org.freedesktop.DBus.Introspectable",
                           "org.freedesktop.DBus.ObjectManager"}) {
    EXPECT_NE(xml.find("<interface name=\"" + std::string(name) + "\">"), std::string::npos) << name;
  }
}

}  // namespace berth::test
