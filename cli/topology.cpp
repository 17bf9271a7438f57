// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/input.h"
#include "cli/render_topology.h"
#include "model/json.h"
#include "topology/discover.h"
#include "topology/gpu_inventory.h"

#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace berth::cli {

namespace {

struct TopologyArguments {
  std::optional<std::string> xml;
  std::optional<std::string> synthetic;
};

RenderOptions drawing(const Style& style) {
  RenderOptions options;
  options.colour = style.colour;
  if (style.width > 0) options.width = static_cast<int>(style.width);
  return options;
}

model::Result<model::Topology> from_xml(const std::string& file) {
  if (file != "-") return topology::from_xml(file);
  const auto xml = read_input(file);
  if (!xml) return model::fail(model::ErrorKind::invalid_input, xml.error().message);
  return topology::from_xml_text(*xml, input_name(file));
}

// A user can be expected to wait this long for the drivers of GPUs.
constexpr double kGpuPatience_s = 3;

model::Result<model::Topology> of_this_host() {
  auto topology = topology::discover();
  if (!topology) return topology;
  topology::GpuInventory inventory({});
  inventory.settle(topology->cpus(), kGpuPatience_s);
  std::vector<model::Gpu> gpus;
  for (const auto& known : inventory.gpus()) gpus.push_back(known.gpu);
  if (auto taken = topology->set_gpus(std::move(gpus)); !taken) return model::fail(taken.error());
  return topology;
}

Outcome<void> show_topology(Session& session, const TopologyArguments& arguments) {
  const auto topology = arguments.xml         ? from_xml(*arguments.xml)
                        : arguments.synthetic ? topology::from_synthetic(*arguments.synthetic)
                                              : of_this_host();
  if (!topology) {
    // Any fault of an input that the command line names is wrong use.
    const bool named = arguments.xml || arguments.synthetic;
    return named ? problem(Exit::wrong_use, topology.error().message()) : problem(topology.error());
  }
  if (session.json) {
    session.out << model::to_json(*topology) << "\n";
    return {};
  }
  session.out << render_topology(*topology, drawing(session.style));
  render_gpus(session.out, topology->gpus(), session.style);
  return {};
}

}  // namespace

Action declare_topology(const Options& options) {
  const auto arguments = std::make_shared<TopologyArguments>();
  const auto xml = options.option("--xml", arguments->xml, "Draw this hwloc XML export, - for standard input")
                       .type_name("FILE");
  options.option("--synthetic", arguments->synthetic, "Draw this hwloc synthetic description")
      .type_name("DESC")
      .excludes(xml);
  return [arguments](Session& session) { return show_topology(session, *arguments); };
}

}  // namespace berth::cli
