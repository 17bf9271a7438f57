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

// Limits come before copies.
std::vector<GpuPeer> read_links(const JsonValue& value) {
  std::vector<GpuPeer> links;
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
  return links;
}

// The links of GPUs as they were before, by id.
using FormerLinks = std::map<std::string_view, const std::vector<GpuPeer>*>;

FormerLinks links_of(const std::vector<Gpu>& gpus) {
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

// A GPU without "links" takes its former ones.
Gpu read_gpu(const JsonValue& value, FormerLinks& former) {
  FieldReader io(value);
  Gpu gpu;
  fields(io, gpu);
  const auto links = io.object().optional("links");
  gpu.links = links ? read_links(*links) : take_links(former, gpu.id);
  return gpu;
}

void write_links(JsonWriter& out, const std::vector<GpuPeer>& links) {
  out.begin_object();
  for (const GpuPeer& peer : links) out.member(peer.id, to_string(peer.link));
  out.end_object();
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

// With its links, unless they are as before.
void write_gpu(JsonWriter& out, const Gpu& gpu, const FormerLinks& former) {
  const auto before = former.find(gpu.id);
  const bool same = before == former.end() ? gpu.links.empty() : gpu.links == *before->second;
  out.begin_object();
  FieldWriter io(out);
  fields(io, gpu);
  if (!same) write_links(out.key("links"), gpu.links);
  out.end_object();
}

}  // namespace

std::vector<Gpu> read_changed_gpus(const JsonValue& value, const std::vector<Gpu>& before) {
  std::vector<Gpu> gpus;
  FormerLinks former = links_of(before);
  value.each([&](const JsonValue& gpu) { gpus.push_back(read_gpu(gpu, former)); });
  return gpus;
}

void write_changed_gpus(JsonWriter& out, const std::vector<Gpu>& gpus, const std::vector<Gpu>& before) {
  const FormerLinks former = links_of(before);
  out.begin_array();
  for (const Gpu& gpu : gpus) write_gpu(out, gpu, former);
  out.end_array();
}

void write_gpus(JsonWriter& out, const std::vector<Gpu>& gpus) { write_changed_gpus(out, gpus, {}); }

std::optional<Topology> read_topology(JsonObject& object, const TopologyResolver& resolve) {
  ReadContext& context = object.context();
  auto processors = read_processors(object, resolve);
  std::vector<Gpu> gpus;
  if (const auto list = object.optional("gpus")) gpus = read_changed_gpus(*list, {});
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
  out.key("gpus");
  write_gpus(out, topology.gpus());
  if (!topology.numa_distances().nodes.empty()) write_distances(out, topology.numa_distances());
  io.if_set("numa_nodes", topology.numa_nodes(), as::list(as::object));
}

std::string to_json(const Topology& topology) {
  JsonWriter out;
  out.begin_object().member("schema", kSchema);
  write_topology(out, topology);
  return out.end_object().take();
}

Result<Topology> parse_topology(std::string_view text) {
  const auto root = parse_json(text);
  if (!root) return fail(root.error());
  ReadContext context;
  const JsonValue document(context, *root);
  JsonObject object(document);
  object.ignore_unknown();
  object.require_schema(kSchema);
  auto topology = context.failed() ? std::nullopt : read_topology(object, {});
  if (context.failed()) return fail(*context.error());
  return *std::move(topology);
}

}  // namespace berth::model
