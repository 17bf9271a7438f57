// SPDX-License-Identifier: Apache-2.0
// fleet-simulation [--NAME VALUE]...: the hosts of a simulated fleet. It reads a line of JSON with the
// scheduler's answers, lets a step of time pass, and writes a line with its orders. tests/fleet/run speaks
// with it. The last line, after the end of the input, has the figures.
#include "model/json.h"
#include "tests/fleet/simulation.h"
#include "tests/judge/loads.h"

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace {

using berth::fleet::Answers;
using berth::fleet::Figures;
using berth::fleet::Interference;
using berth::fleet::Orders;
using berth::fleet::Simulation;
using nlohmann::json;

Answers answers_of(const std::string& line) {
  const json document = json::parse(line);
  Answers answers;
  const json all_bound = document.value("bound", json::object());
  for (const auto& [pod, bound] : all_bound.items())
    answers.bound[pod] = {.node = bound.at(0).get<std::string>(), .uid = bound.at(1).get<std::string>()};
  answers.gone = document.value("gone", std::vector<std::string>());
  return answers;
}

json orders_json(const Orders& orders) {
  json create = json::array();
  for (const auto* pod : orders.create) {
    create.push_back({{"name", pod->arrival.name},
                      {"latency_sensitive", pod->arrival.latency_sensitive},
                      {"cores", pod->arrival.cores},
                      {"memory_bytes", static_cast<std::uint64_t>(pod->arrival.memory_bytes)}});
  }
  json nodes = json::array();
  for (const auto& change : orders.nodes) {
    nodes.push_back({{"node", change.node},
                     {"status", json::parse(berth::kubernetes::status_patch(
                                    change.wanted, berth::kubernetes::Names("berth.org")))},
                     {"closed", change.wanted.closed}});
  }
  return {{"time_s", orders.time_s}, {"create", create}, {"remove", orders.remove}, {"nodes", nodes}};
}

// One snapshot a line. The scheduler's extender takes them.
void write_snapshots(const std::string& file, const Simulation& simulation, const Orders& orders) {
  std::ofstream out(file);
  for (const std::size_t host : orders.changed)
    out << berth::model::to_json(simulation.snapshot(host)) << '\n';
  if (!out.flush()) throw std::runtime_error("cannot write " + file);
}

json interference_json(const Interference& it) {
  return {{"service_cores", it.service_cores},
          {"p99", berth::judge::quantile(it.p99_ratios, 0.5)},
          {"violations", it.violations()},
          {"job_work", it.job_work}};
}

json figures_json(const Figures& it) {
  return {{"host_steps", it.host_steps},
          {"service_cores_alone", it.service_cores_alone},
          {"job_cores", it.job_cores},
          {"interference", interference_json(it.interference)},
          {"idle_anywhere", interference_json(it.idle_anywhere)},
          {"service_asked_core_s", it.service_asked_core_s},
          {"job_asked_core_s", it.job_asked_core_s},
          {"job_core_s", it.job_core_s},
          {"lost_core_s", it.lost_core_s},
          {"services", it.services},
          {"services_rejected", it.services_rejected},
          {"jobs", it.jobs},
          {"jobs_rejected", it.jobs_rejected},
          {"jobs_finished", it.jobs_finished},
          {"jobs_late", it.jobs_late},
          {"evicted_for_room", it.evicted_for_room},
          {"evicted_for_memory", it.evicted_for_memory},
          {"short_of_cpu", it.short_of_cpu},
          {"short_of_memory", it.short_of_memory},
          {"closed", it.closed},
          {"advertised_cores", it.advertised_cores},
          {"be_cores", it.be_cores}};
}

double number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::runtime_error("no number: " + std::string(text));
  return value;
}

void run(int count, char** words) {
  berth::fleet::Settings settings;
  std::string snapshots;
  for (int i = 1; i < count; i += 2) {
    const std::string_view name = words[i];
    if (i + 1 == count) throw std::runtime_error(std::string(name) + " needs a value");
    const std::string_view value = words[i + 1];
    if (name == "--hosts")
      settings.day.hosts = static_cast<int>(number(value));
    else if (name == "--seed")
      settings.day.seed = static_cast<std::uint64_t>(number(value));
    else if (name == "--step")
      settings.day.step_s = number(value);
    else if (name == "--services")
      settings.day.latency_sensitive = number(value);
    else if (name == "--jobs")
      settings.day.best_effort = number(value);
    else if (name == "--measure-every")
      settings.measure_every = static_cast<int>(number(value));
    else if (name == "--count-from")
      settings.count_from_s = number(value) * berth::fleet::kHour_s;
    else if (name == "--berth")
      settings.berth = number(value) != 0;
    else if (name == "--snapshots")
      snapshots = value;
    else
      throw std::runtime_error("unknown option " + std::string(name));
  }
  Simulation simulation(settings);
  for (std::string line; std::getline(std::cin, line);) {
    const Orders orders = simulation.advance(answers_of(line));
    if (!snapshots.empty()) write_snapshots(snapshots, simulation, orders);
    std::cout << orders_json(orders).dump() << '\n' << std::flush;
  }
  std::cout << figures_json(simulation.figures()).dump() << '\n' << std::flush;
}

}  // namespace

int main(int count, char** words) {
  try {
    run(count, words);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fleet-simulation: %s\n", error.what());
    return 1;
  }
}
