// SPDX-License-Identifier: Apache-2.0
#include "model/topology_json.h"

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace berth::model {

namespace {

constexpr const char* kSchema = "berth.topology/1";

// How the links of a GPU are written: by the id of the other one. Limits come before copies.
struct AsLinks {
  void read(const JsonValue& value, std::vector<GpuPeer>& links) const {
    value.each_member([&links, &value](const std::string& peer, const JsonValue& link) {
      if (links.size() == kMostLinkedGpus) {
        value.fail(fmt::format("more than {} links", kMostLinkedGpus));
      } else if (peer.empty() || peer.size() > kMaxNameBytes) {
        value.fail(fmt::format("a link to a GPU with an id of {} bytes; 1 to {} are accepted", peer.size(),
                               kMaxNameBytes));
      } else {
        links.push_back({.id = peer, .link = link.choice(kGpuLinks, to_string)});
      }
    });
  }
  void write(JsonWriter& out, const std::vector<GpuPeer>& links) const {
    out.begin_object();
    for (const GpuPeer& peer : links) out.member(peer.id, to_string(peer.link));
    out.end_object();
  }
};

// The links of GPUs as they were before, by id.
using FormerLinks = std::map<std::string_view, const std::vector<GpuPeer>*>;

FormerLinks links_of(std::span<const Gpu> gpus) {
  FormerLinks links;
  for (const Gpu& gpu : gpus) {
    if (!gpu.links.empty()) links.emplace(gpu.id, &gpu.links);
  }
  return links;
}

// Each entry once, so that a document cannot copy the links of one id again and again.
std::vector<GpuPeer> take_links(FormerLinks& former, const std::string& gpu) {
  const auto found = former.find(gpu);
  if (found == former.end()) return {};
  std::vector<GpuPeer> links = *found->second;
  former.erase(found);
  return links;
}

// Limits come before copies: a document may have millions of values.
NumaDistances read_distances(const JsonValue& value) {
  JsonObject object(value);
  ReadContext& context = object.context();
  NumaDistances distances;
  const CpuSet nodes = object.required("nodes").cpulist();
  if (!context.failed() && nodes.size() > kMostDistantNodes)
    context.fail(object.path_of("nodes"), fmt::format("{} NUMA nodes; at most {} can have distances",
                                                      nodes.size(), kMostDistantNodes));
  if (context.failed()) return distances;
  distances.nodes = nodes.to_vector();
  std::size_t rows = 0;
  object.required("values").each([&](const JsonValue& row) {
    std::size_t columns = 0;
    row.each([&](const JsonValue& distance) {
      if (++columns > nodes.size() || rows >= nodes.size()) return;
      distances.values.push_back(distance.small_integer(1, kMaxNumaDistance));
    });
    ++rows;
    if (columns != nodes.size())
      row.fail(fmt::format("{} distances for {} NUMA nodes", columns, nodes.size()));
  });
  if (rows != nodes.size())
    context.fail(object.path_of("values"), fmt::format("{} rows for {} NUMA nodes", rows, nodes.size()));
  return distances;
}

// Limits come before copies.
std::vector<NumaNode> read_nodes(const JsonValue& value) {
  std::vector<NumaNode> nodes;
  value.each([&nodes](const JsonValue& entry) {
    NumaNode node;
    as::object.read(entry, node);
    if (nodes.size() <= kMostNumaNodes) nodes.push_back(node);
  });
  return nodes;
}

// The processors, with the distances and nodes of the reference.
struct Processors {
  std::vector<Cpu> cpus;
  NumaDistances distances;
  std::vector<NumaNode> nodes;
};

// Exactly one of a list of vCPUs and a reference to one.
std::optional<Processors> read_processors(JsonObject& object, const TopologyResolver& resolve) {
  const auto list = object.optional("cpus");
  const auto synthetic = object.optional("hwloc_synthetic");
  const auto xml = object.optional("hwloc_xml");
  ReadContext& context = object.context();
  if (list.has_value() + synthetic.has_value() + xml.has_value() != 1) {
    context.fail(object.path_of("cpus"), list || synthetic || xml
                                             ? "give one of cpus, hwloc_synthetic and hwloc_xml, not several"
                                             : "missing, and neither hwloc_synthetic nor hwloc_xml is given");
    return std::nullopt;
  }
  if (list) {
    Processors read;
    as::list(as::object).read(*list, read.cpus);
    return read;
  }
  const JsonValue& given = synthetic ? *synthetic : *xml;
  const std::string text = given.name();
  if (context.failed()) return std::nullopt;
  if (!resolve) {
    given.fail("a topology by reference cannot be resolved here");
    return std::nullopt;
  }
  auto resolved =
      resolve(synthetic ? TopologyReference(HwlocSynthetic{text}) : TopologyReference(HwlocXml{text}));
  if (resolved)
    return Processors{
        .cpus = resolved->cpus(), .distances = resolved->numa_distances(), .nodes = resolved->numa_nodes()};
  given.fail(resolved.error().message());
  return std::nullopt;
}

}  // namespace

void AsGpus::read(const JsonValue& value, std::vector<Gpu>& gpus) const {
  FormerLinks former = links_of(before);
  value.each([&](const JsonValue& element) {
    FieldReader io(element);
    Gpu& gpu = gpus.emplace_back();
    fields(io, gpu);
    if (const auto links = io.object().optional("links")) {
      AsLinks().read(*links, gpu.links);
    } else {
      gpu.links = take_links(former, gpu.id);
    }
  });
}

void AsGpus::write(JsonWriter& out, const std::vector<Gpu>& gpus) const {
  const FormerLinks former = links_of(before);
  out.begin_array();
  for (const Gpu& gpu : gpus) {
    const auto known = former.find(gpu.id);
    const bool same = known == former.end() ? gpu.links.empty() : gpu.links == *known->second;
    out.begin_object();
    FieldWriter io(out);
    fields(io, gpu);
    if (!same) io.required("links", gpu.links, AsLinks());
    out.end_object();
  }
  out.end_array();
}

std::optional<Topology> read_topology(JsonObject& object, const TopologyResolver& resolve) {
  ReadContext& context = object.context();
  auto processors = read_processors(object, resolve);
  std::vector<Gpu> gpus;
  if (const auto list = object.optional("gpus")) AsGpus().read(*list, gpus);
  const auto distances = object.optional("numa_distances");
  if (distances && processors) processors->distances = read_distances(*distances);
  const auto nodes = object.optional("numa_nodes");
  if (nodes && processors) processors->nodes = read_nodes(*nodes);
  if (!processors || context.failed()) return std::nullopt;
  auto topology = Topology::make(std::move(processors->cpus), std::move(gpus),
                                 std::move(processors->distances), std::move(processors->nodes));
  if (topology) return *std::move(topology);
  // "cpus[3]: why", "numa_distances: why" or "numa_nodes: why", seen from the object.
  const std::string& message = topology.error().message();
  const auto colon = message.find(": ");
  context.fail(object.path() + "." + message.substr(0, colon), message.substr(colon + 2));
  return std::nullopt;
}

namespace {

void write_distances(JsonWriter& out, const NumaDistances& distances) {
  out.key("numa_distances").begin_object();
  CpuSet nodes;
  for (const int node : distances.nodes) nodes.insert(node);
  out.member("nodes", nodes).key("values").begin_array();
  for (std::size_t row = 0; row < distances.nodes.size(); ++row) {
    out.begin_array();
    for (std::size_t column = 0; column < distances.nodes.size(); ++column)
      out.value(distances.values[row * distances.nodes.size() + column]);
    out.end_array();
  }
  out.end_array().end_object();
}

}  // namespace

void write_topology(JsonWriter& out, const Topology& topology) {
  FieldWriter io(out);
  io.required("cpus", topology.cpus(), as::list(as::object));
  io.required("gpus", topology.gpus(), AsGpus());
  if (!topology.numa_distances().nodes.empty()) write_distances(out, topology.numa_distances());
  io.if_set("numa_nodes", topology.numa_nodes(), as::list(as::object));
}

static void fields(FieldWriter& io, const Topology& topology) {
  io.schema(kSchema);
  write_topology(io.out(), topology);
}

static void fields(FieldReader& io, Topology& topology) {
  io.schema(kSchema);
  if (auto read = read_topology(io.object(), {})) topology = *std::move(read);
}

std::string to_json(const Topology& topology) { return document_text(topology); }

Result<Topology> parse_topology(std::string_view text) { return parse_document<Topology>(text); }

}  // namespace berth::model
