// SPDX-License-Identifier: Apache-2.0
#include "ebpf/blame.h"

#include "blame.skel.h"
#include "ebpf/blame_abi.h"
#include "ebpf/load.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include <bpf/bpf.h>

namespace berth::ebpf {

using model::Result;

namespace {

// Cgroups nested deeper are not asked about: the program has a bit for each level.
constexpr unsigned kDeepest = 63;
// Between two times that culprits are forgotten as some were beyond the limits of a cgroup above.
constexpr std::chrono::minutes kCrowdedPause{1};

// A question: its number, and what each vCPU's sum was when take_waited() was called last.
struct Question {
  std::uint32_t number = 0;
  std::vector<std::uint64_t> waited_ns;
};

using Pair = std::pair<std::uint64_t, std::uint64_t>;

template <typename Key>
std::vector<Key> keys_of(int map, std::size_t most) {
  std::vector<Key> keys;
  Key key{};
  const void* before = nullptr;
  while (keys.size() < most && bpf_map_get_next_key(map, before, &key) == 0) {
    keys.push_back(key);
    before = &keys.back();
  }
  return keys;
}

}  // namespace

struct Blame::State {
  Owned<bpf_blame> programs;
  std::uint32_t cpus = 0;  // possible ones
  MappedArray<berth_blame_cpu> per_cpu;
  std::map<std::uint64_t, Question> questions;                     // by the cgroup's id
  std::map<std::uint64_t, unsigned> levels;                        // likewise
  std::map<Pair, std::uint64_t> read_ns;                           // at the last read(), by asked and culprit
  std::optional<std::chrono::steady_clock::time_point> made_room;  // for those beyond the limits

  std::optional<int> wanted_after;  // of run_after()
  int after = -1;                   // the one that the program is in

  ~State() { leave(); }
  void leave();
  int map(bpf_map* of) const { return bpf_map__fd(of); }
  std::optional<std::uint32_t> free_number() const;
  std::vector<std::uint64_t> waited(std::uint32_t number) const;
  void forget_all();
};

// Ends what run_after() began.
void Blame::State::leave() {
  constexpr std::uint32_t kOnly = 0;
  if (const int map = std::exchange(after, -1); map >= 0) bpf_map_delete_elem(map, &kOnly);
}

// The lowest number that no question has.
std::optional<std::uint32_t> Blame::State::free_number() const {
  std::vector<bool> taken(BERTH_MOST_ASKED + 1);
  for (const auto& [id, question] : questions) taken[question.number] = true;
  for (std::uint32_t number = 1; number <= BERTH_MOST_ASKED; ++number) {
    if (!taken[number]) return number;
  }
  return std::nullopt;
}

std::vector<std::uint64_t> Blame::State::waited(std::uint32_t number) const {
  std::vector<std::uint64_t> all(cpus);
  for (std::uint32_t cpu = 0; cpu < cpus; ++cpu)
    all[cpu] = __atomic_load_n(&per_cpu.data()[cpu].waited_ns[number], __ATOMIC_RELAXED);
  return all;
}

// Makes room for culprits that come. What a hook adds meanwhile may be lost: microseconds of one wait.
void Blame::State::forget_all() {
  // Culprits go first: a sum without its culprit would be nobody's until the next time.
  std::uint32_t gone = 0;
  for (const auto& key : keys_of<std::uint64_t>(map(programs->maps.culprits), BERTH_MOST_CULPRITS))
    gone += bpf_map_delete_elem(map(programs->maps.culprits), &key) == 0 ? 1 : 0;
  __atomic_fetch_sub(&programs->bss->culprit_count, gone, __ATOMIC_RELAXED);
  for (const auto& key : keys_of<berth_blamed_key>(map(programs->maps.blamed), BERTH_MOST_BLAMED)) {
    if (bpf_map_delete_elem(map(programs->maps.blamed), &key) == 0) read_ns.erase({key.asked, key.by});
  }
}

Blame::Blame(std::unique_ptr<State> state) : state_(std::move(state)) {}
Blame::~Blame() = default;

Result<std::unique_ptr<Blame>> Blame::start(const std::filesystem::path& log_directory) {
  auto state = std::make_unique<State>();
  const int cpus = libbpf_num_possible_cpus();
  if (cpus <= 0) return model::fail(model::Error::from_errno(-cpus, "counting the possible CPUs"));
  state->cpus = static_cast<std::uint32_t>(cpus);
  auto loaded = load<bpf_blame>("blame", log_directory, [&](bpf_blame& programs) {
    bpf_map__set_max_entries(programs.maps.cpus, state->cpus);
    // run_after() does that: ending a hook may take the kernel a moment, in which no switch is seen.
    bpf_program__set_autoattach(programs.progs.on_switch, false);
  });
  if (!loaded) return model::fail(std::move(loaded.error()));
  state->programs = std::move(*loaded);
  auto per_cpu = MappedArray<berth_blame_cpu>::map(state->programs->maps.cpus, state->cpus, false);
  if (!per_cpu) return model::fail(std::move(per_cpu.error()));
  state->per_cpu = std::move(*per_cpu);
  auto attached = attempt("blame", log_directory, [&] { return bpf_blame::attach(state->programs.get()); });
  if (!attached) return model::fail(std::move(attached.error()));
  return std::unique_ptr<Blame>(new Blame(std::move(state)));
}

Result<void> Blame::run_after(int map) {
  bpf_link*& own = state_->programs->links.on_switch;
  bpf_program* program = state_->programs->progs.on_switch;
  if (std::exchange(state_->wanted_after, map) == map) return {};
  state_->leave();
  if (map >= 0) {
    // Not twice on one switch; a switch that is missed meanwhile is a moment of another's.
    bpf_link__destroy(std::exchange(own, nullptr));
    constexpr std::uint32_t kOnly = 0;
    const int number = bpf_program__fd(program);
    if (bpf_map_update_elem(map, &kOnly, &number, BPF_ANY) == 0) state_->after = map;
  }
  if (state_->after >= 0 || own) return {};
  own = bpf_program__attach(program);
  if (own) return {};
  return model::fail(model::Error::from_errno(-failure(), "attaching blame's hook on the context switch"));
}

void Blame::ask(const std::vector<AskedGroup>& groups) {
  std::map<std::uint64_t, unsigned> wanted;
  for (const AskedGroup& group : groups) {
    // The rest may hold some that are asked about already.
    if (group.level == 0 || group.level > kDeepest) continue;
    if (wanted.size() < BERTH_MOST_ASKED) wanted.emplace(group.id, group.level);
  }
  if (wanted == state_->levels) return;
  const int map = state_->map(state_->programs->maps.asked);
  std::erase_if(state_->questions, [&](const auto& question) {
    if (wanted.contains(question.first)) return false;
    bpf_map_delete_elem(map, &question.first);
    return true;
  });
  std::uint64_t levels = 0;
  for (const auto& [id, level] : wanted) {
    levels |= std::uint64_t{1} << level;
    if (state_->questions.contains(id)) continue;
    const auto number = state_->free_number();
    if (!number || bpf_map_update_elem(map, &id, &*number, BPF_ANY) != 0) continue;
    state_->questions[id] = {*number, state_->waited(*number)};
  }
  state_->levels = std::move(wanted);
  auto& shared = *state_->programs->bss;
  __atomic_store_n(&shared.asked_levels, levels, __ATOMIC_RELEASE);
  __atomic_fetch_add(&shared.asked_generation, std::uint64_t{1}, __ATOMIC_ACQ_REL);
}

std::vector<BlamedWait> Blame::read() {
  std::vector<BlamedWait> grown;
  const int map = state_->map(state_->programs->maps.blamed);
  const auto keys = keys_of<berth_blamed_key>(map, BERTH_MOST_BLAMED);
  for (const berth_blamed_key& key : keys) {
    std::uint64_t ns = 0;
    if (bpf_map_lookup_elem(map, &key, &ns) != 0) continue;
    std::uint64_t& before = state_->read_ns[{key.asked, key.by}];
    if (ns > before) grown.push_back({key.asked, key.by, ns - before});
    before = ns;
  }
  return grown;
}

std::vector<std::uint64_t> Blame::take_waited(std::uint64_t asked) {
  const auto question = state_->questions.find(asked);
  if (question == state_->questions.end()) return {};
  auto now = state_->waited(question->second.number);
  auto before = std::exchange(question->second.waited_ns, now);
  for (std::size_t cpu = 0; cpu < now.size(); ++cpu) now[cpu] -= std::min(now[cpu], before[cpu]);
  return now;
}

void Blame::make_room() {
  const bool full =
      state_->read_ns.size() > BERTH_MOST_BLAMED / 2 ||
      __atomic_load_n(&state_->programs->bss->culprit_count, __ATOMIC_RELAXED) > BERTH_MOST_CULPRITS / 2;
  std::uint32_t& crowded = state_->programs->bss->crowded;
  const auto now = std::chrono::steady_clock::now();
  const bool again = __atomic_load_n(&crowded, __ATOMIC_RELAXED) != 0 &&
                     (!state_->made_room || now - *state_->made_room >= kCrowdedPause);
  if (!full && !again) return;
  state_->made_room = now;
  state_->forget_all();
  __atomic_store_n(&crowded, 0U, __ATOMIC_RELAXED);
}

CulpritGroup Blame::culprit(std::uint64_t id) const {
  CulpritGroup group;
  berth_culprit found{};
  if (bpf_map_lookup_elem(state_->map(state_->programs->maps.culprits), &id, &found) != 0) return group;
  const std::size_t ids = std::min<std::size_t>(found.level, BERTH_CULPRIT_LEVELS);
  group.ids.assign(found.ids, found.ids + ids);
  const std::size_t names = std::min<std::size_t>(found.level, BERTH_CULPRIT_NAMES);
  for (std::size_t at = 0; at < names; ++at) {
    auto& name = found.names[at];
    name[BERTH_CULPRIT_NAME - 1] = '\0';
    if (at > 0) group.path += '/';
    if (at + 1 == names && found.level > BERTH_CULPRIT_NAMES) group.path += "…/";
    group.path += name;
  }
  return group;
}

BlameCost Blame::cost() const {
  const auto count = [](const auto& of) { return __atomic_load_n(&of, __ATOMIC_RELAXED); };
  const auto all_ns = [](std::uint64_t runs, std::uint64_t sampled, std::uint64_t sampled_ns) {
    if (sampled == 0) return std::uint64_t{0};
    return static_cast<std::uint64_t>(static_cast<double>(sampled_ns) / static_cast<double>(sampled) *
                                      static_cast<double>(runs));
  };
  BlameCost sum;
  for (std::uint32_t cpu = 0; cpu < state_->cpus; ++cpu) {
    const berth_blame_cpu& own = state_->per_cpu.data()[cpu];
    const auto switches = count(own.runs);
    const auto interrupts = count(own.interrupt_runs);
    sum.switches += switches;
    sum.interrupts += interrupts;
    sum.bpf_ns += all_ns(switches, count(own.sampled), count(own.sampled_ns)) +
                  all_ns(interrupts, count(own.interrupt_sampled), count(own.interrupt_sampled_ns));
  }
  return sum;
}

}  // namespace berth::ebpf
