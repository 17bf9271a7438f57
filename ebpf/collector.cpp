// SPDX-License-Identifier: Apache-2.0
#include "ebpf/collector.h"

#include "ebpf/abi.h"
#include "ebpf/aggregate.h"
#include "ebpf/counters.h"
#include "ebpf/load.h"
#include "ebpf/switch.h"
#include "ebpf/walker.h"
#include "events.skel.h"
#include "model/error.h"
#include "os/clock.h"
#include "os/file_descriptor.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <unistd.h>

namespace berth::ebpf {

using model::Result;

namespace {

struct DestroyRing {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

// Reports cgroups of the v2 hierarchy that the kernel makes and removes.
class EventRing {
 public:
  static Result<std::unique_ptr<EventRing>> start(const std::filesystem::path& log_directory);

  // Readable when there are events.
  int fd() const { return ring_buffer__epoll_fd(ring_.get()); }
  // Appends the events since the last call; true where some were lost.
  bool drain(std::vector<CgroupEvent>& to);

 private:
  static int take(void* context, void* data, std::size_t size);

  Owned<bpf_events> programs_;
  std::vector<CgroupEvent> taken_;  // ring_buffer__new() keeps its address
  std::unique_ptr<ring_buffer, DestroyRing> ring_;
  std::uint64_t lost_ = 0;
};

int EventRing::take(void* context, void* data, std::size_t size) {
  constexpr std::size_t head = offsetof(berth_event, path);
  if (size < head) return 0;
  const auto& event = *static_cast<const berth_event*>(data);
  std::string_view path(event.path, std::min<std::size_t>(event.path_length, size - head));
  if (path.starts_with('/')) path.remove_prefix(1);
  static_cast<std::vector<CgroupEvent>*>(context)->push_back({.created = event.kind == BERTH_MKDIR,
                                                              .id = event.id,
                                                              .parent = event.parent,
                                                              .path = std::string(path)});
  return 0;
}

Result<std::unique_ptr<EventRing>> EventRing::start(const std::filesystem::path& log_directory) {
  auto ring = std::make_unique<EventRing>();
  auto loaded = load<bpf_events>("events", log_directory, [](bpf_events&) {});
  if (!loaded) return model::fail(std::move(loaded.error()));
  ring->programs_ = std::move(*loaded);
  auto attached = attempt("events", log_directory, [&] { return bpf_events::attach(ring->programs_.get()); });
  if (!attached) return model::fail(std::move(attached.error()));
  auto opened = attempt("events", log_directory, [&] {
    ring->ring_.reset(
        ring_buffer__new(bpf_map__fd(ring->programs_->maps.events), take, &ring->taken_, nullptr));
    return ring->ring_ ? 0 : failure();
  });
  if (!opened) return model::fail(std::move(opened.error()));
  return ring;
}

bool EventRing::drain(std::vector<CgroupEvent>& to) {
  ring_buffer__consume(ring_.get());
  to.insert(to.end(), std::make_move_iterator(taken_.begin()), std::make_move_iterator(taken_.end()));
  taken_.clear();
  const std::uint64_t lost = __atomic_load_n(&programs_->bss->lost, __ATOMIC_RELAXED);
  return std::exchange(lost_, lost) != lost;
}

constexpr std::uint32_t kLeastRows = 1024;
// Limit for the tables of all CPUs, which are charged to this process's cgroup.
constexpr std::uint64_t kMostTableBytes = 384ULL << 20;
// If the caller never asks for events, this process must not grow.
constexpr std::size_t kMostEvents = 16384;
// Every so many readings, it reads the kernel's own CPU figures, which cost a flush. Where there are no
// events, it then reads the tree too.
constexpr std::uint64_t kFullEvery = 10;

// The most rows the table of a CPU may have, a power of two.
std::uint32_t most_rows(const Options& options, bool with_counts) {
  if (options.most_rows != 0) return std::bit_floor(options.most_rows);
  const std::uint64_t cpus = cpus_to_count(options.sys_root).size();
  const std::uint64_t row_bytes = sizeof(berth_row) + (with_counts ? sizeof(berth_counts) : 0);
  return static_cast<std::uint32_t>(
      std::bit_floor(std::max<std::uint64_t>(kMostTableBytes / row_bytes / cpus, 16)));
}

std::uint32_t rows_for(std::size_t cgroups) {
  return std::max(kLeastRows, std::bit_ceil(static_cast<std::uint32_t>(2 * cgroups)));
}

// Usage stays what it was where this walk did not ask for it.
void take_accounts(const berth_walked& walked, std::uint64_t page_bytes, model::CgroupAccounts& accounts) {
  if (walked.has & BERTH_HAS_USAGE) accounts.usage_ns = walked.usage_ns;
  accounts.memory_bytes.reset();
  if (walked.has & BERTH_HAS_MEMORY) accounts.memory_bytes = walked.memory_pages * page_bytes;
  accounts.throttled.reset();
  accounts.throttled_ns.reset();
  if (walked.has & BERTH_HAS_THROTTLING) {
    accounts.throttled = walked.throttled;
    accounts.throttled_ns = walked.throttled_ns;
  }
}

}  // namespace

struct Collector::State {
  Options options;
  std::vector<FigureWay> ways;
  std::unique_ptr<Counters> counters;
  std::unique_ptr<Switch> hook;
  os::FileDescriptor after;  // of each hook
  std::unique_ptr<Walker> walker;
  std::unique_ptr<EventRing> ring;
  Aggregate aggregate;
  std::vector<Aggregate::Table> tables;
  std::vector<std::uint32_t> hints;  // of the walk, by position
  Events pending;
  std::vector<CgroupEvent> drained;
  bool only_walked = false;  // there are figures that only a walk gives
  std::set<std::uint64_t> keepers;
  bool unsure = false;  // some events were lost since the tree was last read
  std::uint32_t rows_limit = 0;
  std::uint64_t readings = 0;
  Cost replaced;  // of hooks whose tables were too small
  Cost reads;
  std::uint64_t page_bytes = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));

  Result<void> start_hook(std::uint32_t rows) {
    rows_limit = most_rows(options, counters != nullptr);
    auto started = Switch::start(std::min(rows, rows_limit), options, counters.get(), after.get());
    if (!started) return model::fail(std::move(started.error()));
    rest();
    hook = std::move(*started);
    hook->keep_together(keepers);
    tables = hook->tables();
    aggregate.reset();
    return {};
  }

  void rest() {
    if (!hook) return;
    const Cost until_now = hook->cost();
    replaced.switches += until_now.switches;
    replaced.bpf_ns += until_now.bpf_ns;
    hook.reset();
  }

  // Takes the events out of the ring.
  void take_events() {
    if (!ring) return;
    drained.clear();
    const bool lost = ring->drain(drained);
    pending.lost |= lost;
    unsure |= lost;
    for (CgroupEvent& event : drained) {
      if (!hook) {
        unsure = true;
      } else if (!event.created) {
        aggregate.forget(event.id);
      } else if (aggregate.size() < kMostCgroups) {  // else the next walk fails
        aggregate.learn(event.id, event.parent);
      }
      if (pending.events.size() < kMostEvents) {
        pending.events.push_back(std::move(event));
      } else {
        pending.lost = true;
      }
    }
  }

  Result<void> scan() {
    const auto found = scan_tree(options.cgroup_root);
    if (!found) return model::fail(found.error());
    aggregate.begin_scan();
    for (const ScannedGroup& group : *found) aggregate.learn(group.id, group.parent);
    aggregate.end_scan();
    return {};
  }

  Result<void> walk(bool with_usage) {
    const auto walked = walker->walk(with_usage);
    if (!walked) return model::fail(walked.error());
    if (hints.size() < walked->size()) hints.resize(walked->size(), UINT32_MAX);
    std::uint32_t has = 0;
    aggregate.begin_scan();
    for (std::size_t at = 0; at < walked->size(); ++at) {
      const berth_walked& group = (*walked)[at];
      has |= group.has;
      take_accounts(group, page_bytes, aggregate.learn(group.id, group.parent, hints[at]).accounts);
    }
    aggregate.end_scan();
    only_walked = (has & (BERTH_HAS_MEMORY | BERTH_HAS_THROTTLING)) != 0;
    return {};
  }

  // Updates the tree, by events where they are complete, and the figures that the hook cannot count.
  Result<void> update_tree(bool full) {
    take_events();
    const bool anew = unsure || aggregate.unknown() > 0 || aggregate.size() == 0;
    Result<void> done;
    if (walker) {
      if (full || anew || !ring || only_walked) done = walk(full);
    } else if (anew || (full && !ring)) {
      done = scan();
    }
    if (done) unsure = false;
    return done;
  }

  FigureWay counter_way(const Result<void>& opened) const {
    if (!opened) {
      return {"hardware-counters", "none", false,
              opened.error().message() + "; " + resctrl_offer(options.sys_root)};
    }
    return {"hardware-counters", "perf", true,
            counters->grouped() ? "" : "each by itself: the PMU has no room for the group"};
  }

  Result<void> open_counters() {
    auto opened = Counters::open(options.events);
    if (!opened) return model::fail(std::move(opened.error()));
    counters = std::move(*opened);
    return {};
  }

  // The old counters are closed first, because the PMU may not have enough for both.
  Result<void> reopen_counters() {
    counters.reset();
    if (auto done = hook->use(nullptr); !done) return done;
    const auto opened = open_counters();
    for (FigureWay& way : ways) {
      if (way.figure == "hardware-counters") way = counter_way(opened);
    }
    return opened ? hook->use(counters.get()) : opened;
  }

  bool has_all_cpus() const { return cpus_to_count(options.sys_root).is_subset_of(hook->cpus()); }

  // Error where a cgroup found no row, as its figures are then too low. Larger tables count from zero.
  Result<void> grow() {
    if (hook->trouble().full == 0) return {};
    if (!has_all_cpus() && start_hook(hook->rows()))
      return model::fail(model::ErrorKind::transient, "a CPU came, and has a table from now on");
    if (hook->rows() < rows_limit && start_hook(std::max(2 * hook->rows(), rows_for(aggregate.size())))) {
      return model::fail(model::ErrorKind::transient,
                         "the tables had no row for some cgroups, and are larger now");
    }
    return model::fail(
        model::ErrorKind::unavailable,
        fmt::format("the tables have no row for some cgroups ({} rows a CPU, {} cgroups), and berth cannot "
                    "make them larger",
                    hook->rows(), aggregate.size()));
  }

  Result<void> read_once(bool full) {
    full |= readings++ % kFullEvery == 0;
    hook->flush(full);
    if (auto done = update_tree(full); !done) return done;
    if (counters) {
      const auto scales = counters->scales();
      for (std::size_t cpu = 0; cpu < tables.size() && cpu < scales.size(); ++cpu)
        tables[cpu].scale = scales[cpu];
    }
    hook->update(tables);
    aggregate.collect(tables);
    return grow();
  }
};

model::Error too_many_cgroups() {
  return {model::ErrorKind::unavailable,
          fmt::format("this host has more than {} cgroups, or they are too deep, so they are not counted in "
                      "the kernel",
                      kMostCgroups)};
}

Collector::Collector(std::unique_ptr<State> state) : state_(std::move(state)) {}
Collector::~Collector() = default;

Result<std::unique_ptr<Collector>> Collector::start(Options options) {
  auto state = std::make_unique<State>();
  const auto btf = options.sys_root / "kernel/btf/vmlinux";
  std::error_code ignored;
  if (!std::filesystem::exists(btf, ignored)) {
    return model::fail(model::ErrorKind::unavailable,
                       "no " + btf.string() + ": this kernel was built without CONFIG_DEBUG_INFO_BTF");
  }
  std::size_t cgroups = options.cgroups;
  if (cgroups == 0) {
    const auto found = scan_tree(options.cgroup_root);
    if (!found) return model::fail(found.error());
    cgroups = found->size();
  }
  state->options = std::move(options);
  auto& ways = state->ways;

  state->after = os::FileDescriptor(bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "berth_after",
                                                   sizeof(std::uint32_t), sizeof(std::uint32_t), 1, nullptr));
  const auto counters = state->open_counters();
  if (auto hook = state->start_hook(rows_for(cgroups)); !hook) {
    return model::fail(hook.error().context("counting at the context switch"));
  }
  ways.push_back({"run-time", "sched-switch", true, ""});
  ways.push_back({"run-queue-delay", "sched-switch", true, ""});
  ways.push_back(state->counter_way(counters));

  // It has a row for each cgroup, and grows by itself.
  auto walker =
      Walker::start(state->options, std::max(kLeastRows, std::bit_ceil(static_cast<std::uint32_t>(cgroups))));
  if (walker) state->walker = std::move(*walker);
  ways.push_back(walker ? FigureWay{"usage", state->walker->name(), true, state->walker->detail()}
                        : FigureWay{"usage", "none", false, walker.error().message()});
  auto ring = EventRing::start(state->options.log_directory);
  if (ring) state->ring = std::move(*ring);
  ways.push_back(ring ? FigureWay{"cgroup-events", "ring-buffer", true, ""}
                      : FigureWay{"cgroup-events", "none", false, ring.error().message()});

  // Counts from before this reading must not enter any rate.
  if (auto done = state->read_once(true); !done && done.error().kind() != model::ErrorKind::transient)
    return model::fail(std::move(done.error()));
  return std::unique_ptr<Collector>(new Collector(std::move(state)));
}

Result<void> Collector::read(Depth depth) {
  if (!state_->hook) return model::fail(model::ErrorKind::unavailable, "counting rests");
  const std::uint64_t begin = os::nanoseconds_of(CLOCK_THREAD_CPUTIME_ID);
  auto done = state_->read_once(depth == Depth::full);
  Cost& reads = state_->reads;
  reads.last_read_ns = os::nanoseconds_of(CLOCK_THREAD_CPUTIME_ID) - begin;
  reads.read_ns += reads.last_read_ns;
  ++reads.reads;
  return done;
}

void Collector::rest() { state_->rest(); }

Result<void> Collector::begin_again() {
  const auto found = scan_tree(state_->options.cgroup_root);
  if (!found) return model::fail(found.error());
  state_->aggregate = {};
  state_->aggregate.keep_together(state_->keepers);
  state_->unsure = true;
  if (auto done = state_->start_hook(rows_for(found->size())); !done) return done;
  return state_->read_once(true);
}

std::size_t Collector::rows() const { return state_->rows_limit; }

void Collector::keep_together(std::set<std::uint64_t> cgroups) {
  if (cgroups == state_->keepers) return;
  state_->keepers = std::move(cgroups);
  state_->aggregate.keep_together(state_->keepers);
  if (state_->hook) state_->hook->keep_together(state_->keepers);
}

Result<void> Collector::follow_cpus() {
  if (!state_->hook) return {};
  if (!state_->has_all_cpus()) {
    if (auto done = state_->start_hook(state_->hook->rows()); !done) return done;
  }
  if (!state_->counters) return {};
  return state_->reopen_counters().map_error(
      [](const model::Error& error) { return error.context("counting anew after CPUs came or went"); });
}

const model::CgroupReading* Collector::find(std::uint64_t id) const { return state_->aggregate.find(id); }

void Collector::for_each(const std::function<void(const model::CgroupReading&)>& visit) const {
  state_->aggregate.for_each(visit);
}

std::size_t Collector::size() const { return state_->aggregate.size(); }

int Collector::events_fd() const { return state_->ring ? state_->ring->fd() : -1; }

int Collector::after_switch() const {
  return state_->hook && state_->hook->runs_after() ? state_->after.get() : -1;
}

Collector::Events Collector::take_events() {
  state_->take_events();
  return std::exchange(state_->pending, {});
}

Cost Collector::cost() const {
  Cost all = state_->hook ? state_->hook->cost() : Cost{};
  all.switches += state_->replaced.switches;
  all.bpf_ns += state_->replaced.bpf_ns;
  all.reads = state_->reads.reads;
  all.read_ns = state_->reads.read_ns;
  all.last_read_ns = state_->reads.last_read_ns;
  return all;
}

const std::vector<FigureWay>& Collector::ways() const { return state_->ways; }

std::vector<FigureWay> ways_without(const model::Error& error) {
  std::vector<FigureWay> ways;
  for (const char* figure : {"run-time", "run-queue-delay", "hardware-counters", "usage", "cgroup-events"}) {
    ways.push_back({figure, "none", false, error.message()});
  }
  return ways;
}

std::string resctrl_offer(const std::filesystem::path& sys_root) {
  const auto root = sys_root / "fs/resctrl";
  std::error_code ignored;
  if (!std::filesystem::is_directory(root, ignored))
    return "no resource control (" + root.string() + " is missing)";
  if (!std::filesystem::is_directory(root / "info", ignored)) return "resource control is not mounted";
  std::ifstream features(root / "info/L3_MON/mon_features");
  std::string names;
  for (std::string name; features >> name;) names += (names.empty() ? "" : ", ") + name;
  if (names.empty()) return "resource control monitors nothing here";
  return "resource control monitors " + names + ", but by monitoring groups, which berth does not make";
}

}  // namespace berth::ebpf
