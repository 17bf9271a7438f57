// SPDX-License-Identifier: Apache-2.0
#include "daemon/admit/reservations.h"

#include "model/json.h"
#include "model/json_text.h"
#include "os/staged_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

namespace berth::daemon {

namespace {

using nlohmann::json;

// Enough for the largest number of requests, with the longest names.
constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20;

constexpr std::array<std::string_view, 3> kUnitSuffixes{".service", ".scope", ".slice"};

bool is_name_of(std::string_view directory, std::string_view name) {
  if (directory == name) return true;
  if (!directory.starts_with(name)) return false;
  directory.remove_prefix(name.size());
  return std::find(kUnitSuffixes.begin(), kUnitSuffixes.end(), directory) != kUnitSuffixes.end();
}

// As a request of berth.request/1, so that it is read back as strictly as the first time.
json request_of(const Reservation& reservation) {
  const model::PendingWorkload& request = reservation.request;
  json document = {
      {"schema", "berth.request/1"},        {"id", request.id},
      {"service", request.service},         {"class", model::to_string(request.workload_class)},
      {"vcpus", request.vcpus.value_or(1)}, {"memory_request_bytes", request.memory_request_bytes}};
  if (request.isolation) document["isolation"] = model::to_string(*request.isolation);
  if (request.gpus > 0) {
    document["gpus"] = request.gpus;
    document["gpu_memory_bytes"] = request.gpu_memory_bytes;
    if (request.gpu_model) document["gpu_model"] = *request.gpu_model;
    document["gpu_exclusive"] = request.gpu_exclusive;
  }
  return document;
}

json to_document(const Reservation& reservation, const os::Clock& clock) {
  return {{"since_boot_s", clock.since_boot(reservation.since)},
          {"hold_s", reservation.hold_s},
          {"decision", reservation.decision},
          {"gpus", reservation.gpus},
          {"cpus", reservation.cpus.to_string()},
          {"request", request_of(reservation)}};
}

json place_of(const model::FittingBin& bin) {
  json place = {{"numa", bin.numa}, {"cpus", bin.cpus.to_string()}, {"gpus", bin.gpus}};
  if (!bin.numa_nodes.empty()) place["numa_nodes"] = bin.numa_nodes.to_string();
  return place;
}

model::Result<Reservation> read_one(const json& element, const os::Clock& clock) {
  auto parsed = model::parse_request(model::json_text(element.at("request")));
  if (!parsed) return model::fail(parsed.error());
  // Earlier versions kept the time of the wall clock.
  const double since = element.contains("since_boot_s")
                           ? clock.of_boot(element.at("since_boot_s").get<double>())
                           : element.at("since").get<double>();
  Reservation read{.request = std::move(parsed->request),
                   .since = since,
                   .hold_s = element.at("hold_s").get<double>(),
                   .gpus = element.value("gpus", std::vector<std::string>()),
                   .cpus = {},
                   .decision = element.value("decision", std::string())};
  auto cpus = model::CpuSet::parse(element.value("cpus", std::string()));
  if (!cpus) return model::fail(cpus.error());
  read.cpus = std::move(*cpus);
  if (!(read.hold_s > 0) || !std::isfinite(read.until())) {
    return model::fail(model::ErrorKind::invalid_input, "a reservation in it has no time limit");
  }
  return read;
}

}  // namespace

bool is_same_request(model::PendingWorkload held, const model::PendingWorkload& request) {
  held.room_cpu_cores = request.room_cpu_cores;
  held.room_memory_bytes = request.room_memory_bytes;
  return held == request;
}

bool is_meant(const std::string& request, const std::string& workload) {
  if (request == workload) return true;
  std::string_view rest = workload;
  while (!rest.empty()) {
    const std::size_t slash = rest.find('/');
    if (is_name_of(rest.substr(0, slash), request)) return true;
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash + 1);
  }
  return false;
}

bool is_meant(const std::string& request, const Arrival& workload) {
  return request == workload.id || is_meant(request, workload.named_by_root);
}

Reservations::Reservations(const std::filesystem::path& runtime_dir, os::Clock clock,
                           std::optional<std::string>& warning)
    : file_(runtime_dir / "reservations.json"), clock_(std::move(clock)) {
  warning = os::read_document(file_, kMostBytes, [this](const json& document) {
    std::optional<std::string> wrong;
    for (const json& element : document) {
      auto read = read_one(element, clock_);
      if (!read) {
        wrong = read.error().message();
      } else if (held_.size() < kMost && !find(read->request.id)) {
        held_.push_back(std::move(*read));
      }
    }
    return wrong;
  });
}

model::Result<void> Reservations::hold(Reservation reservation) {
  const auto same = std::find_if(held_.begin(), held_.end(), [&](const Reservation& held) {
    return held.request.id == reservation.request.id;
  });
  if (same != held_.end() && is_same_request(same->request, reservation.request)) {
    *same = std::move(reservation);
    return save();
  }
  if (same != held_.end()) held_.erase(same);
  if (held_.size() >= kMost) {
    return model::fail(model::ErrorKind::refused,
                       fmt::format("there are {} reservations already, and berth keeps no more", kMost));
  }
  held_.push_back(std::move(reservation));
  return save();
}

bool Reservations::release(const std::string& id) {
  return !remove_if([&](const Reservation& held) { return held.request.id == id; }).empty();
}

std::vector<Reservation> Reservations::expire(double now,
                                              const std::function<bool(const std::string&)>& has_come) {
  return remove_if(
      [&](const Reservation& held) { return now >= held.until() && !has_come(held.request.id); });
}

std::vector<Reservation> Reservations::meet(const Arrival& came) {
  bool met = false;
  return remove_if([&](const Reservation& held) {
    if (met || !is_meant(held.request.id, came)) return false;
    met = true;
    return true;
  });
}

std::optional<Reservation> Reservations::find(const std::string& id) const {
  const auto found = std::find_if(held_.begin(), held_.end(),
                                  [&](const Reservation& held) { return held.request.id == id; });
  if (found == held_.end()) return std::nullopt;
  return *found;
}

std::vector<model::PendingWorkload> Reservations::pending() const {
  std::vector<model::PendingWorkload> list;
  for (const Reservation& held : held_) list.push_back(held.request);
  return list;
}

std::vector<model::PendingWorkload> Reservations::requests() const {
  auto list = pending();
  for (model::PendingWorkload& request : list) {
    request.room_cpu_cores = 0;
    request.room_memory_bytes = 0;
  }
  return list;
}

void Reservations::set_room(const std::map<std::string, model::Resources>& room) {
  for (Reservation& held : held_) {
    const auto made = room.find(held.request.id);
    const model::Resources amount = made == room.end() ? model::Resources() : made->second;
    held.request.room_cpu_cores = amount.cpu_cores;
    held.request.room_memory_bytes = amount.memory_bytes;
  }
}

// The file is a convenience here: an outdated entry ends after a restart too.
std::vector<Reservation> Reservations::remove_if(const std::function<bool(const Reservation&)>& ends) {
  std::vector<Reservation> removed;
  std::vector<Reservation> kept;
  for (Reservation& held : held_) (ends(held) ? removed : kept).push_back(std::move(held));
  held_ = std::move(kept);
  if (!removed.empty()) (void)save();
  return removed;
}

model::Result<void> Reservations::save() const {
  json document = json::array();
  for (const Reservation& held : held_) document.push_back(to_document(held, clock_));
  return os::replace_file(file_, model::json_text(document) + "\n");
}

std::string reservations_json(const std::string& host, double time, double wall_ahead_s,
                              const Reservations& reservations,
                              const std::map<std::string, model::FittingBin>& places) {
  json list = json::array();
  for (const Reservation& held : reservations.all()) {
    const auto place = places.find(held.request.id);
    list.push_back({{"request", request_of(held)},
                    {"decision", held.decision},
                    {"since", held.since + wall_ahead_s},
                    {"until", held.until() + wall_ahead_s},
                    {"place", place == places.end() ? json(nullptr) : place_of(place->second)}});
  }
  return model::json_text({{"schema", "berth.reservations/1"},
                           {"host", host},
                           {"time", time + wall_ahead_s},
                           {"reservations", std::move(list)}});
}

}  // namespace berth::daemon
