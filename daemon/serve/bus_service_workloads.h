// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "daemon/serve/bus_service_glue.h"
#include "daemon/serve/control.h"

#include <array>
#include <cstddef>
#include <map>
#include <string>

namespace berth::daemon {

// org.berth.Node1.Workload, an object per workload below /org/berth/Node1/workload. The objects are not kept:
// one table answers for all of them on request. So a workload costs little more than its name here.
class WorkloadObjects {
 public:
  // `bus` and `control` outlive this. Throws std::system_error.
  WorkloadObjects(sd_bus* bus, Control& control);
  WorkloadObjects(const WorkloadObjects&) = delete;
  WorkloadObjects& operator=(const WorkloadObjects&) = delete;

  // False where the object exists already, or Control knows no such workload.
  bool add(const std::string& id);
  bool contains(const std::string& id) const { return known_.contains(id); }
  // False where there is no such object.
  bool remove(const std::string& id);

  // Signals; each throws std::system_error where the bus does not take it.
  void announce_added(const std::string& id);
  void announce_removed(const std::string& id);
  // Sends one PropertiesChanged with the changes since the last one; none without changes.
  void announce_changes(const std::string& id);

 private:
  // A hash of each property whose changes are announced.
  using Announced = std::array<std::size_t, 14>;
  static Announced announced(const WorkloadView& view);

  static int find(sd_bus* bus, const char* path, const char* interface, void* userdata, void** found,
                  sd_bus_error* error);
  static int enumerate(sd_bus* bus, const char* prefix, void* userdata, char*** paths, sd_bus_error* error);

  sd_bus* bus_;
  Control& control_;
  std::map<std::string, Announced> known_;
  WorkloadView found_;  // set by find(), for the properties that are read right after
  Slot objects_;
  Slot nodes_;
};

// Object path of a workload, its id escaped as sd_bus_path_encode(3) does.
std::string workload_path(const std::string& id);

}  // namespace berth::daemon
