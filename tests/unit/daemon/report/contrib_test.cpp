// SPDX-License-Identifier: Apache-2.0
// The dashboard and the alert rules of contrib/: their form, and that berthd exports every metric that they
// name.
#include "daemon/report/metrics.h"
#include "tests/paths.h"
#include "tests/unit/daemon/report/exposition.h"

#include <cstdlib>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {
namespace {

using nlohmann::json;

constexpr const char* kDashboard = BERTH_CONTRIB "/grafana/berth.json";
constexpr const char* kRules = BERTH_CONTRIB "/prometheus/berth.rules.yml";

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::set<std::string> exported() {
  const std::string contract = read_file(BERTH_DOCS "/contract/metrics.md");
  std::set<std::string> names;  // Metrics.AreNamedInTheContractAllOfThem compares these with the code
  const std::regex name("`((?:berth|process)_[a-z0-9_]+)");
  for (std::sregex_iterator it(contract.begin(), contract.end(), name), end; it != end; ++it)
    names.insert((*it)[1]);
  return names;
}

std::set<std::string> names_in(const std::string& expression) {
  std::set<std::string> names;
  const std::regex name(R"re(\b(?:berth|process)_[a-z0-9_]+\b)re");
  for (std::sregex_iterator it(expression.begin(), expression.end(), name), end; it != end; ++it)
    names.insert(it->str());
  return names;
}

// Labels that the contract gives to families, and "instance", which Prometheus adds.
std::set<std::string> exported_labels() {
  const std::string contract = read_file(BERTH_DOCS "/contract/metrics.md");
  std::set<std::string> labels{"instance", "workload", "service", "class", "gpu", "vendor", "model"};
  const std::regex braces(R"re(`berth_[a-z0-9_]+\{([a-z,]+)\}`)re");
  for (std::sregex_iterator it(contract.begin(), contract.end(), braces), end; it != end; ++it) {
    std::stringstream names((*it)[1]);
    for (std::string name; std::getline(names, name, ',');) labels.insert(name);
  }
  return labels;
}

// Labels that a legend shows, as "{{name}}".
std::set<std::string> labels_in(const std::string& legend) {
  std::set<std::string> labels;
  const std::regex label(R"re(\{\{([a-z]+)\}\})re");
  for (std::sregex_iterator it(legend.begin(), legend.end(), label), end; it != end; ++it)
    labels.insert((*it)[1]);
  return labels;
}

void expect_exported(const std::string& expression) {
  static const auto known = exported();
  const auto names = names_in(expression);
  EXPECT_FALSE(names.empty()) << expression;
  for (const auto& name : names) EXPECT_TRUE(known.contains(name)) << name << " in " << expression;
}

// Panels of the dashboard; they are not nested.
json panels() { return json::parse(read_file(kDashboard)).at("panels"); }

// Ranges and names are those of kinds/dashboard/dashboard_kind.cue in Grafana's sources.
TEST(Dashboard, HasTheFormOfGrafanasModel) {
  const json dashboard = json::parse(read_file(kDashboard));
  EXPECT_EQ(dashboard.at("id"), nullptr) << "Grafana gives it a number";
  EXPECT_GE(dashboard.at("schemaVersion").get<int>(), 36)
      << "of Grafana 9, the first with data sources as objects";
  EXPECT_FALSE(dashboard.at("title").get<std::string>().empty());
  EXPECT_GE(dashboard.at("uid").get<std::string>().size(), 8U);
  EXPECT_LE(dashboard.at("uid").get<std::string>().size(), 40U);
  EXPECT_LE(dashboard.at("graphTooltip").get<unsigned>(), 2U);
  for (const char* member : {"time", "templating", "annotations", "tags", "links", "refresh", "timezone"})
    EXPECT_TRUE(dashboard.contains(member)) << member;
  std::set<std::string> variables;
  for (const json& variable : dashboard.at("templating").at("list")) {
    variables.insert(variable.at("name").get<std::string>());
    EXPECT_LE(variable.at("hide").get<unsigned>(), 2U);
    EXPECT_TRUE(variable.at("type") == "query" || variable.at("type") == "datasource") << variable;
    if (variable.at("type") != "query") continue;
    EXPECT_EQ(variable.at("datasource").at("uid"), "${datasource}");
    expect_exported(variable.at("query").at("query"));
  }
  EXPECT_EQ(variables, (std::set<std::string>{"datasource", "instance", "workload"}));
  const std::set<std::string> global{"__rate_interval"};
  const std::regex variable(R"(\$\{?([a-z_]+))");
  const std::string text = dashboard.dump();
  for (std::sregex_iterator it(text.begin(), text.end(), variable), end; it != end; ++it)
    EXPECT_TRUE(variables.contains((*it)[1]) || global.contains((*it)[1])) << it->str();
}

TEST(Dashboard, PanelsFillAGridWithoutOverlap) {
  std::set<int> ids;
  std::set<std::pair<int, int>> taken;
  for (const json& panel : panels()) {
    const std::string title = panel.at("title");
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second) << title;
    const json& at = panel.at("gridPos");
    const int x = at.at("x");
    const int y = at.at("y");
    EXPECT_GE(x, 0) << title;
    EXPECT_GE(at.at("w").get<int>(), 1) << title;
    EXPECT_GE(at.at("h").get<int>(), 1) << title;
    EXPECT_LE(x + at.at("w").get<int>(), 24) << title;
    for (int i = x; i < x + at.at("w").get<int>(); ++i) {
      for (int j = y; j < y + at.at("h").get<int>(); ++j) EXPECT_TRUE(taken.insert({i, j}).second) << title;
    }
  }
  EXPECT_GT(ids.size(), 15U);
}

TEST(Dashboard, PanelsAskForMetricsThatBerthdExports) {
  const std::set<std::string> types{"row", "stat", "timeseries", "table"};
  const json source{{"type", "prometheus"}, {"uid", "${datasource}"}};
  const auto known_labels = exported_labels();
  for (const json& panel : panels()) {
    const std::string title = panel.at("title");
    EXPECT_TRUE(types.contains(panel.at("type").get<std::string>())) << title;
    if (panel.at("type") == "row") {
      // The panels of an open row stand behind it; only a closed one has them in itself.
      EXPECT_EQ(panel.at("collapsed"), false) << title;
      EXPECT_TRUE(panel.at("panels").empty()) << title;
      continue;
    }
    EXPECT_EQ(panel.at("datasource"), source) << title;
    EXPECT_TRUE(panel.at("fieldConfig").at("defaults").is_object()) << title;
    EXPECT_TRUE(panel.at("fieldConfig").at("overrides").is_array()) << title;
    std::set<std::string> references;
    for (const json& target : panel.at("targets")) {
      EXPECT_EQ(target.at("datasource"), source) << title;
      for (const auto& label : labels_in(target.value("legendFormat", "")))
        EXPECT_TRUE(known_labels.contains(label)) << label << " in " << title;
      EXPECT_TRUE(references.insert(target.at("refId").get<std::string>()).second) << title;
      const std::string expression = target.at("expr");
      expect_exported(expression);
      EXPECT_NE(expression.find("instance=~\"$instance\""), std::string::npos)
          << "of the chosen host: " << title;
    }
    EXPECT_FALSE(references.empty()) << title;
  }
}

TEST(Alerts, AskForMetricsThatBerthdExports) {
  const std::string rules = read_file(kRules);
  const std::regex expression("\n +expr: (.*)");
  int found = 0;
  for (std::sregex_iterator it(rules.begin(), rules.end(), expression), end; it != end; ++it, ++found) {
    if ((*it)[1] == "up{job=\"berth\"} == 0") continue;  // of Prometheus itself
    expect_exported((*it)[1]);
  }
  EXPECT_GT(found, 8);
}

TEST(Alerts, PassPromtool) {
  if (std::system("command -v promtool >/dev/null") != 0) GTEST_SKIP() << "there is no promtool here";
  const std::string directory = BERTH_CONTRIB "/prometheus";
  EXPECT_EQ(std::system(("cd '" + directory + "' && promtool check rules berth.rules.yml").c_str()), 0);
  EXPECT_EQ(std::system(("cd '" + directory + "' && promtool test rules berth.rules.test.yml").c_str()), 0);
}

}  // namespace
}  // namespace berth::daemon
