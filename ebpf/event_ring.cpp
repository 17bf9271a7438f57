// SPDX-License-Identifier: Apache-2.0
#include "ebpf/event_ring.h"

#include "ebpf/abi.h"
#include "ebpf/load.h"
#include "events.skel.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace berth::ebpf {

using model::Result;

namespace {

struct DestroyRing {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};

int take(void* context, void* data, std::size_t size) {
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

}  // namespace

struct EventRing::State {
  Owned<bpf_events> programs;
  std::vector<CgroupEvent> taken;  // ring_buffer__new() keeps its address
  std::unique_ptr<ring_buffer, DestroyRing> ring;
  std::uint64_t lost = 0;
};

EventRing::EventRing(std::unique_ptr<State> state) : state_(std::move(state)) {}
EventRing::~EventRing() = default;

Result<std::unique_ptr<EventRing>> EventRing::start(const std::filesystem::path& log_directory) {
  auto state = std::make_unique<State>();
  auto loaded = load<bpf_events>("events", log_directory, [](bpf_events&) {});
  if (!loaded) return model::fail(std::move(loaded.error()));
  state->programs = std::move(*loaded);
  auto attached = attempt("events", log_directory, [&] { return bpf_events::attach(state->programs.get()); });
  if (!attached) return model::fail(std::move(attached.error()));
  auto opened = attempt("events", log_directory, [&] {
    state->ring.reset(
        ring_buffer__new(bpf_map__fd(state->programs->maps.events), take, &state->taken, nullptr));
    return state->ring ? 0 : failure();
  });
  if (!opened) return model::fail(std::move(opened.error()));
  return std::unique_ptr<EventRing>(new EventRing(std::move(state)));
}

int EventRing::fd() const { return ring_buffer__epoll_fd(state_->ring.get()); }

bool EventRing::drain(std::vector<CgroupEvent>& to) {
  ring_buffer__consume(state_->ring.get());
  to.insert(to.end(), std::make_move_iterator(state_->taken.begin()),
            std::make_move_iterator(state_->taken.end()));
  state_->taken.clear();
  const std::uint64_t lost = __atomic_load_n(&state_->programs->bss->lost, __ATOMIC_RELAXED);
  return std::exchange(state_->lost, lost) != lost;
}

}  // namespace berth::ebpf
