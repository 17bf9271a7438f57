// SPDX-License-Identifier: Apache-2.0
// Hosts with services and batch work, drawn at random, and what became of both.
#pragma once

#include "model/topology.h"
#include "tests/judge/contention.h"
#include "tests/judge/loads.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace berth::judge {

// The common part of the hosts of a row of the table.
struct Row {
  std::string name;
  int sockets = 1;
  int domains = 1;     // of a socket
  int cores = 4;       // of a domain
  int threads = 2;     // of a core
  double asked = 0.6;  // vCPUs that services ask for over all
  double use = 0.45;   // their use over what they ask for
  double work_s = 1e-3;
  double burst = 1;
  int slow_cores = 0;          // of a domain: hybrid processors
  int threads_of_service = 2;  // for each vCPU asked for
  double batch_run_s = 0;      // the mean stretch and pause of a batch thread; 0: without end
  double batch_pause_s = 0;
};
// The capacity of a slow core. Linux sees 0.4 to 0.8 on hybrid processors.
inline constexpr double kSlowCapacity = 0.6;
// The rows that the table has.
std::vector<Row> all_rows();

struct ServiceOnHost {
  int vcpus = 1;
  ServiceLoad load;  // its group is its index
  Software software;
};

// One host of a row. Groups are the services', then those of batch work.
struct Host {
  std::vector<CpuPlace> places;
  std::vector<ServiceOnHost> services;
  std::vector<BatchLoad> batch;
  std::vector<Software> batch_software;

  int cpus() const { return static_cast<int>(places.size()); }
  double capacity() const;  // of all vCPUs, in fast ones
  int groups() const { return static_cast<int>(services.size() + batch.size()); }
  bool is_batch(int group) const { return group >= static_cast<int>(services.size()); }
};
// Services of one to four vCPUs until the row's share is asked for; as many batch threads as vCPUs.
Host draw_host(const Row& row, std::uint64_t seed);

// A way of sharing the host: the groups at the start, and what changes later.
struct Way {
  // `used_s`: CPU time of each group in the last period.
  using Change = std::function<void(Kernel&, const std::vector<double>& used_s)>;

  std::string name;
  std::vector<Group> (*begin)(const Host&);
  Time period = 0;  // 0: nothing changes
  // It may remember one run.
  Change (*make)(const Host&) = nullptr;
};
std::vector<Way> all_ways();
// Everything anywhere at one priority, as the kernel has it without berth.
std::vector<Group> same_priority(const Host& host);
// The host as berth reads it.
model::Topology topology_of(const std::vector<CpuPlace>& places);
// berth as it is, with one of its searches: it decides each second.
Way::Change berth_by_window(const Host& host);
Way::Change berth_by_optimum(const Host& host);

struct Figures {
  double violations = 0;  // the share of service-windows whose p99 is above kTolerated of that alone
  double p99_ratio = 0;   // the median over services
  double worst_ratio = 0;
  double batch = 0;  // work over that of the batch alone on the host
  double emu = 0;    // cores of services in windows without a violation over those of the host, plus `batch`
};
inline constexpr double kTolerated = 1.5;
inline constexpr Time kWindow = 20 * kSecond;

// Of the same host: what each service and the batch do alone.
struct Alone {
  std::vector<double> p99_s;  // by service
  double batch_work_s = 0;    // a second
};
Alone alone_on(const Host& host, const Rules& rules, Time length, std::uint64_t seed);
Figures judge(const Host& host, const Way& way, const Alone& alone, const Rules& rules, Time length,
              std::uint64_t seed);

}  // namespace berth::judge
