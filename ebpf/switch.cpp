// SPDX-License-Identifier: Apache-2.0
#include "ebpf/switch.h"

#include "ebpf/load.h"
#include "os/file_descriptor.h"
#include "os/proc_files.h"
#include "switch.skel.h"

#include <algorithm>
#include <array>
#include <bit>

#include <bpf/bpf.h>
#include <sched.h>

namespace berth::ebpf {

using model::Result;

struct Switch::State {
  Owned<bpf_switch> programs;
  std::uint32_t cpus = 0;  // possible ones
  model::CpuSet tabled;
  std::uint32_t rows = 0;
  std::set<std::uint64_t> keepers;
  std::vector<std::uint64_t> runs;  // by CPU, at the last flush
  bool counted = false;
  bool runs_after = false;
  MappedArray<berth_row> table;
  MappedArray<berth_counts> counts;
  MappedArray<berth_cpu> per_cpu;

  // The position of its table.
  std::optional<std::uint32_t> table_of(std::uint32_t cpu) const {
    std::uint32_t position = 0;
    for (const int tabled_cpu : tabled) {
      if (tabled_cpu == static_cast<int>(cpu)) return position;
      ++position;
    }
    return std::nullopt;
  }
};

namespace {

// A CPU with so many switches since the last flush is skipped. The running task's missing credit is about
// half a percent of the time between, and goes to the next reading. That is not worth an interrupt of the
// CPU.
constexpr std::uint64_t kLively = 200;

Result<void> seed(bpf_program* program, const std::filesystem::path& log_directory) {
  return attempt("seed", log_directory, [&] {
    const Link link(bpf_program__attach_iter(program, nullptr));
    if (!link) return -errno;
    const os::FileDescriptor run(bpf_iter_create(bpf_link__fd(link.get())));
    if (!run) return -errno;
    std::array<char, 64> nothing{};
    ssize_t got = 0;
    while ((got = read(run.get(), nothing.data(), nothing.size())) > 0 || (got < 0 && errno == EINTR)) {
    }
    return got < 0 ? -errno : 0;
  });
}

std::array<int, BERTH_HARDWARE_COUNTERS> counter_maps(const bpf_switch& programs) {
  return {bpf_map__fd(programs.maps.counter0), bpf_map__fd(programs.maps.counter1),
          bpf_map__fd(programs.maps.counter2), bpf_map__fd(programs.maps.counter3)};
}

// Runs the flush program on a CPU; does nothing where the CPU is offline.
void flush_cpu(const bpf_switch& programs, std::uint32_t cpu) {
  LIBBPF_OPTS(bpf_test_run_opts, run);
  run.flags = BPF_F_TEST_RUN_ON_CPU;
  run.cpu = cpu;
  bpf_prog_test_run_opts(bpf_program__fd(programs.progs.flush), &run);
}

}  // namespace

model::CpuSet cpus_to_count(const std::filesystem::path& sys_root) {
  const auto possible = static_cast<std::size_t>(std::max(1, libbpf_num_possible_cpus()));
  constexpr std::size_t kLongestList = 65536;
  const auto text = os::read_start(sys_root / "devices/system/cpu/online", kLongestList);
  auto online = model::CpuSet::parse(text).value_or(model::CpuSet());
  if (!online.empty() && online.size() <= possible) return online;
  for (std::size_t cpu = 0; cpu < possible; ++cpu) online.insert(static_cast<int>(cpu));
  return online;
}

Switch::Switch(std::unique_ptr<State> state) : state_(std::move(state)) {}
Switch::~Switch() = default;

Result<std::unique_ptr<Switch>> Switch::start(std::uint32_t rows, const Options& options,
                                              const Counters* counters, int after) {
  auto state = std::make_unique<State>();
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return model::fail(model::Error::from_errno(-cpus, "counting the possible CPUs"));
  state->cpus = static_cast<std::uint32_t>(cpus);
  state->runs.resize(state->cpus);
  state->rows = rows;
  state->counted = counters != nullptr;
  state->tabled = cpus_to_count(options.sys_root);
  const auto all = static_cast<std::uint32_t>(state->tabled.size()) * rows;
  const std::uint32_t places = std::bit_ceil(std::clamp(options.tasks, 2U, 1U << 20));
  const std::uint32_t place_shift = 32U - static_cast<std::uint32_t>(std::countr_zero(places));

  auto loaded = load<bpf_switch>("switch", options.log_directory, [&](bpf_switch& programs) {
    programs.rodata->place_shift = place_shift;
    programs.rodata->with_counters = state->counted;
    bpf_program__set_autoload(state->counted ? programs.progs.on_switch : programs.progs.on_switch_counted,
                              false);
    bpf_map__set_max_entries(programs.maps.places, places);
    bpf_map__set_max_entries(programs.maps.rows, all);
    bpf_map__set_max_entries(programs.maps.counts, state->counted ? all : 1);
    bpf_map__set_max_entries(programs.maps.cpus, state->cpus);
    for (bpf_map* set :
         {programs.maps.counter0, programs.maps.counter1, programs.maps.counter2, programs.maps.counter3}) {
      bpf_map__set_max_entries(set, state->cpus);
    }
    state->runs_after = after >= 0 && bpf_map__reuse_fd(programs.maps.after, after) == 0;
  });
  if (!loaded) return model::fail(std::move(loaded.error()));
  state->programs = std::move(*loaded);
  auto& maps = state->programs->maps;

  auto table = MappedArray<berth_row>::map(maps.rows, all, true);
  if (!table) return model::fail(std::move(table.error()));
  state->table = std::move(*table);
  auto per_cpu = MappedArray<berth_cpu>::map(maps.cpus, state->cpus, true);
  if (!per_cpu) return model::fail(std::move(per_cpu.error()));
  state->per_cpu = std::move(*per_cpu);
  for (std::uint32_t cpu = 0; cpu < state->cpus; ++cpu) {
    berth_cpu& own = state->per_cpu.data()[cpu];
    own.first_row = all;  // there is no such row
    if (const auto position = state->table_of(cpu)) own.first_row = *position * rows;
    own.row_mask = rows - 1;
    own.row_shift = 64U - static_cast<std::uint32_t>(std::countr_zero(rows));
    own.place_shift = place_shift;
  }
  if (counters) {
    auto counts = MappedArray<berth_counts>::map(maps.counts, all, false);
    if (!counts) return model::fail(std::move(counts.error()));
    state->counts = std::move(*counts);
    if (auto given = counters->give_to(counter_maps(*state->programs)); !given) {
      return model::fail(std::move(given.error()));
    }
  }

  // The hooks for ending and new tasks come first, then the tasks that are there, and only then the switch.
  // So no task is credited its past.
  auto& links = state->programs->links;
  auto& progs = state->programs->progs;
  const auto attach = [&](const char* name, bpf_program* program, bpf_link*& link) {
    return attempt(name, options.log_directory, [&] {
      link = bpf_program__attach(program);
      return link ? 0 : failure();
    });
  };
  if (auto done = attach("on_free_task", progs.on_free_task, links.on_free_task); !done) {
    return model::fail(std::move(done.error()));
  }
  if (auto done = attach("on_new_task", progs.on_new_task, links.on_new_task); !done) {
    return model::fail(std::move(done.error()));
  }
  if (auto done = seed(progs.seed, options.log_directory); !done) return model::fail(std::move(done.error()));
  auto switched = state->counted
                      ? attach("on_switch_counted", progs.on_switch_counted, links.on_switch_counted)
                      : attach("on_switch", progs.on_switch, links.on_switch);
  if (!switched) return model::fail(std::move(switched.error()));
  return std::unique_ptr<Switch>(new Switch(std::move(state)));
}

Result<void> Switch::use(const Counters* counters) {
  const auto maps = counter_maps(*state_->programs);
  for (std::uint32_t cpu = 0; cpu < state_->cpus; ++cpu) {
    for (const int map : maps) bpf_map_delete_elem(map, &cpu);  // fails where the CPU had none
    // The program finds no event, and so forgets the old one's count: the new one begins at zero.
    flush_cpu(*state_->programs, cpu);
  }
  return counters ? counters->give_to(maps) : Result<void>{};
}

void Switch::flush(bool all) {
  const int here = sched_getcpu();
  for (std::uint32_t cpu = 0; cpu < state_->cpus; ++cpu) {
    const berth_cpu& own = state_->per_cpu.data()[cpu];
    const std::uint64_t runs = __atomic_load_n(&own.runs, __ATOMIC_RELAXED);
    const bool lively = runs - std::exchange(state_->runs[cpu], runs) >= kLively;
    // On this CPU the running task is the reader.
    if ((lively || static_cast<int>(cpu) == here) && !all) continue;
    if (__atomic_load_n(&own.running, __ATOMIC_RELAXED) == BERTH_RUNNING_IDLE) continue;
    flush_cpu(*state_->programs, cpu);
  }
}

std::vector<Aggregate::Table> Switch::tables() const {
  std::vector<Aggregate::Table> all(state_->cpus);
  for (std::uint32_t cpu = 0; cpu < state_->cpus; ++cpu) {
    const auto table = state_->table_of(cpu);
    if (!table) continue;
    const std::size_t begin = std::size_t{*table} * state_->rows;
    all[cpu].rows = {state_->table.data() + begin, state_->rows};
    if (state_->counted) all[cpu].counts = {state_->counts.data() + begin, state_->rows};
  }
  return all;
}

void Switch::update(std::vector<Aggregate::Table>& tables) const {
  for (std::uint32_t cpu = 0; cpu < state_->cpus; ++cpu) {
    tables[cpu].taken = __atomic_load_n(&state_->per_cpu.data()[cpu].taken, __ATOMIC_ACQUIRE);
  }
}

void Switch::keep_together(const std::set<std::uint64_t>& cgroups) {
  const int map = bpf_map__fd(state_->programs->maps.keepers);
  std::erase_if(state_->keepers, [&](std::uint64_t id) {
    if (cgroups.contains(id)) return false;
    bpf_map_delete_elem(map, &id);
    return true;
  });
  for (const std::uint64_t id : cgroups) {
    if (state_->keepers.size() >= BERTH_MOST_KEEPERS) break;
    constexpr std::uint8_t kYes = 1;
    if (bpf_map_update_elem(map, &id, &kYes, BPF_ANY) == 0) state_->keepers.insert(id);
  }
  state_->programs->bss->keeper_count = static_cast<std::uint32_t>(state_->keepers.size());
}

bool Switch::runs_after() const { return state_->runs_after; }

const model::CpuSet& Switch::cpus() const { return state_->tabled; }

std::uint32_t Switch::rows() const { return state_->rows; }

Switch::Trouble Switch::trouble() const {
  Trouble sum;
  for (std::uint32_t cpu = 0; cpu < state_->cpus; ++cpu) {
    const berth_cpu& own = state_->per_cpu.data()[cpu];
    sum.full += __atomic_load_n(&own.full, __ATOMIC_RELAXED);
    sum.untracked += __atomic_load_n(&own.untracked, __ATOMIC_RELAXED);
    sum.counter_errors += __atomic_load_n(&own.counter_errors, __ATOMIC_RELAXED);
  }
  return sum;
}

Cost Switch::cost() const {
  Cost sum;
  for (std::uint32_t cpu = 0; cpu < state_->cpus; ++cpu) {
    const berth_cpu& own = state_->per_cpu.data()[cpu];
    const auto runs = __atomic_load_n(&own.runs, __ATOMIC_RELAXED);
    const auto sampled = __atomic_load_n(&own.sampled, __ATOMIC_RELAXED);
    const auto sampled_ns = __atomic_load_n(&own.sampled_ns, __ATOMIC_RELAXED);
    sum.switches += runs;
    if (sampled == 0) continue;
    sum.bpf_ns += static_cast<std::uint64_t>(static_cast<double>(sampled_ns) / static_cast<double>(sampled) *
                                             static_cast<double>(runs));
  }
  return sum;
}

}  // namespace berth::ebpf
