// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/table.h"
#include "model/json.h"
#include "topology/discover.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>

namespace berth::cli {

namespace {

struct Arguments {
  std::optional<std::string> xml;
  std::optional<std::string> synthetic;
};

Outcome<void> show_topology(Session& session, const Arguments& arguments) {
  const auto topology = arguments.xml         ? topology::from_xml(*arguments.xml)
                        : arguments.synthetic ? topology::from_synthetic(*arguments.synthetic)
                                              : topology::discover();
  if (!topology) return problem(topology.error());
  if (session.json) {
    session.out << model::to_json(*topology) << "\n";
    return {};
  }
  Table table({{"CPU", Align::right},
               {"CORE", Align::right},
               {"LLC", Align::right},
               {"NUMA", Align::right},
               {"SOCKET", Align::right},
               {"STATE"}});
  for (const model::Cpu& cpu : topology->cpus()) {
    table.add({std::to_string(cpu.cpu), std::to_string(cpu.core), cpu.llc ? std::to_string(*cpu.llc) : "-",
               std::to_string(cpu.numa), std::to_string(cpu.socket),
               !cpu.online ? "offline" : (cpu.allowed ? "usable" : "not ours")});
  }
  table.print(session.out, session.style);
  return {};
}

}  // namespace

Action declare_topology(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  auto* xml = app.add_option("--xml", arguments->xml, "Of an hwloc XML export")->type_name("FILE");
  app.add_option("--synthetic", arguments->synthetic, "Of an hwloc synthetic description")
      ->type_name("DESC")
      ->excludes(xml);
  return [arguments](Session& session) { return show_topology(session, *arguments); };
}

}  // namespace berth::cli
