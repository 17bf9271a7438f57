// SPDX-License-Identifier: Apache-2.0
#include "cli/command.h"
#include "cli/cpu_use.h"
#include "cli/daemon_client.h"
#include "cli/render_top.h"
#include "cli/terminal.h"
#include "config/units.h"
#include "model/json.h"
#include "model/json_text.h"
#include "os/clock.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace berth::cli {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Utilisation over a shorter time is noise: /proc/stat counts in hundredths of a second.
constexpr milliseconds kShortestLook{200};
// A screen has room for a few.
constexpr std::uint32_t kMostDecisions = 20;

struct TopArguments {
  std::string interval = "1";
  double interval_s = 1;
  std::uint32_t frames = 0;  // 0: without end
  bool once = false;
};

// Fetches frames; a frame's use of vCPUs is that since the frame before.
class Source {
 public:
  static Outcome<Source> open() {
    auto daemon = DaemonClient::connect();
    if (!daemon) return tl::unexpected(daemon.error());
    return Source(std::move(*daemon));
  }

  void wait_by(DaemonClient::Waiter waiter) { daemon_.wait_by(std::move(waiter)); }
  // The earliest time at which the next frame's figures have a meaning.
  Clock::time_point earliest() const { return read_at_ + kShortestLook; }

  Outcome<TopFrame> fetch() {
    TopFrame frame;
    const auto status = parse_document(daemon_.status(), "status");
    if (!status) return tl::unexpected(status.error());
    const auto workloads = parse_document(daemon_.workloads(), "list of workloads");
    if (!workloads) return tl::unexpected(workloads.error());
    const auto decisions = parse_document(daemon_.log(kMostDecisions), "log");
    if (!decisions) return tl::unexpected(decisions.error());
    auto times = read_cpu_times();
    if (const auto known = know_topology(*status, times); !known) return tl::unexpected(known.error());
    frame.status = *status;
    frame.workloads = *workloads;
    frame.decisions = *decisions;
    frame.topology = topology_;
    frame.vcpu_use = cpu_use(times_, times);
    times_ = std::move(times);
    read_at_ = Clock::now();
    frame.now = os::epoch_s();
    return frame;
  }

 private:
  explicit Source(DaemonClient daemon)
      : daemon_(std::move(daemon)), times_(read_cpu_times()), read_at_(Clock::now()) {}

  // Fetches the topology where it can have changed: after a restart of the daemon, or with other processors
  // online.
  Outcome<void> know_topology(const Document& status, const std::map<int, CpuTimes>& times) {
    const auto started = number_of(status, "started");
    const bool same_cpus = std::equal(times.begin(), times.end(), times_.begin(), times_.end(),
                                      [](const auto& a, const auto& b) { return a.first == b.first; });
    if (topology_known_ && same_cpus && started == started_) return {};
    const auto text = daemon_.topology();
    if (!text) return tl::unexpected(text.error());
    auto topology = model::parse_topology(*text);
    if (!topology) return problem(Exit::failed, "the daemon's topology: " + topology.error().message());
    topology_ = std::move(*topology);
    topology_known_ = true;
    started_ = started;
    return {};
  }

  DaemonClient daemon_;
  std::map<int, CpuTimes> times_;
  Clock::time_point read_at_;
  model::Topology topology_;
  bool topology_known_ = false;
  std::optional<double> started_;  // start time of the daemon that it came from
};

void print_json(std::ostream& out, TopFrame& frame) {
  Document use = Document::object();
  for (const auto& [cpu, share] : frame.vcpu_use) use[std::to_string(cpu)] = share;
  const Document line{{"schema", "berth.top/1"},
                      {"time", frame.now},
                      {"status", std::move(frame.status)},
                      {"workloads", std::move(frame.workloads)},
                      {"vcpu_use", std::move(use)}};
  out << model::json_text(line) << "\n" << std::flush;
}

// Waits until `due`; false where no process reads standard output any more.
bool wait_for_next(Clock::time_point due) {
  pollfd reader{STDOUT_FILENO, 0, 0};
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(due - Clock::now());
    if (left.count() <= 0) return true;
    poll(&reader, 1, static_cast<int>(left.count()));
    if ((reader.revents & POLLERR) != 0) return false;
    if (reader.revents != 0) reader.fd = -1;  // nothing that could say more
  }
}

// Prints frame after frame, for a file, a pipe or a program.
Outcome<void> stream(Session& session, Source& source, milliseconds interval, std::uint32_t frames) {
  Clock::time_point due = source.earliest();
  for (std::uint32_t i = 0; i < frames && session.out; ++i) {
    if (!wait_for_next(due)) {
      raise(SIGPIPE);  // as a write would; where the signal is ignored, this is the end as well
      return {};
    }
    due = std::max(due + interval, Clock::now());
    auto frame = source.fetch();
    if (!frame) return tl::unexpected(frame.error());
    if (session.json) {
      print_json(session.out, *frame);
    } else {
      if (i > 0) session.out << "\n";
      session.out << render_top(*frame, {}, session.style).text << std::flush;
    }
  }
  return {};
}

// Shows frames on the terminal until the user quits.
class Screen {
 public:
  Screen(Terminal& terminal, Source& source, const Style& style)
      : terminal_(terminal), source_(source), style_(style) {
    // It handles keys and signals also while the daemon is slow to answer.
    source_.wait_by([this](int fd, short events, milliseconds timeout) {
      handle(terminal_.wait(timeout, fd, events));
      return !ended_;
    });
  }
  ~Screen() { source_.wait_by({}); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // 0, or the signal that ended it.
  Outcome<int> run(milliseconds interval, std::uint32_t frames) {
    due_ = source_.earliest();
    while (!ended_) {
      const auto left = std::chrono::duration_cast<milliseconds>(due_ - Clock::now());
      if (left.count() > 0) {
        handle(terminal_.wait(left + milliseconds(1)));
        continue;
      }
      auto frame = source_.fetch();
      if (ended_) break;
      if (!frame) return tl::unexpected(frame.error());
      frame_ = std::move(*frame);
      fetched_ = true;
      draw();
      if (--frames == 0) return 0;
      due_ = Clock::now() + interval;
    }
    return *ended_;
  }

 private:
  void handle(const Event& event) {
    if (event.kind == Event::Kind::none) return;
    if (event.kind == Event::Kind::ended) {
      ended_ = event.signal;
      return;
    }
    if (event.kind == Event::Kind::key && event.key == Key::quit) {
      ended_ = 0;
      return;
    }
    if (event.kind == Event::Kind::key) follow(event);
    draw();
  }

  void draw() {
    if (!fetched_) return;
    style_.width = terminal_style().width;
    view_.height = Terminal::rows();
    const TopPage page = render_top(frame_, view_, style_);
    rows_ = page.rows;
    terminal_.show(page.text);
  }

  void follow(const Event& event) {
    const std::size_t all = list_of(frame_.workloads, "workloads").size();
    const std::size_t last = all > rows_ ? all - rows_ : 0;
    const std::size_t page = std::max<std::size_t>(rows_, 1);
    std::size_t& first = view_.first_row;
    switch (event.key) {
      case Key::up:
        first -= std::min<std::size_t>(first, 1);
        break;
      case Key::down:
        ++first;
        break;
      case Key::page_up:
        first -= std::min(first, page);
        break;
      case Key::page_down:
        first += page;
        break;
      case Key::home:
        first = 0;
        break;
      case Key::end:
        first = last;
        break;
      case Key::other:
        if (event.character == 's') view_.sort = next_sort(view_.sort);
        if (event.character == 'r') view_.reversed = !view_.reversed;
        break;
      case Key::space:
        due_ = source_.earliest();
        break;
      case Key::quit:
        break;
    }
    first = std::min(first, last);
  }

  Terminal& terminal_;
  Source& source_;
  Style style_;
  TopFrame frame_;
  bool fetched_ = false;
  TopView view_;
  std::size_t rows_ = 0;  // number of workloads that fit the last frame
  Clock::time_point due_;
  std::optional<int> ended_;  // 0, or the signal that asked for the end
};

Outcome<void> show_top(Session& session, const TopArguments& arguments) {
  auto source = Source::open();
  if (!source) return tl::unexpected(source.error());
  const milliseconds interval(static_cast<long>(arguments.interval_s * 1000));
  const bool on_terminal = isatty(STDOUT_FILENO) != 0;
  if (session.json || arguments.once || !on_terminal) {
    const std::uint32_t endless = std::numeric_limits<std::uint32_t>::max();
    const std::uint32_t frames = arguments.once         ? 1
                                 : arguments.frames > 0 ? arguments.frames
                                 : session.json         ? endless
                                                        : 1;
    return stream(session, *source, interval, frames);
  }
  int signal = 0;
  {
    auto terminal = Terminal::take();
    if (!terminal) return tl::unexpected(terminal.error());
    const auto ended = Screen(**terminal, *source, session.style).run(interval, arguments.frames);
    if (!ended) return tl::unexpected(ended.error());
    signal = *ended;
  }
  if (signal != 0) {
    std::signal(signal, SIG_DFL);  // nohup(1) has SIGHUP ignored, a script's background job SIGINT
    raise(signal);                 // so that the parent process sees the reason
  }
  return {};
}

std::string check_interval(const std::string& text) {
  const auto seconds = config::parse_duration_s(text);
  if (!seconds) return seconds.error().message();
  return *seconds >= 0.1 && *seconds <= 3600 ? "" : "an interval is from 100ms to 1h";
}

}  // namespace

Action declare_top(const Options& options) {
  const auto arguments = std::make_shared<TopArguments>();
  options.option("--interval", arguments->interval, "Time between two refreshes, such as 2 or 500ms")
      .type_name("DURATION")
      .check(check_interval)
      .show_default();
  const auto frames = options.option("-n", arguments->frames, "End after so many frames")
                          .type_name("NUMBER")
                          .from_to(1, std::numeric_limits<std::uint32_t>::max());
  options.flag("--once", arguments->once, "Print one frame and end").excludes(frames);
  return [arguments](Session& session) {
    arguments->interval_s = *config::parse_duration_s(arguments->interval);
    return show_top(session, *arguments);
  };
}

}  // namespace berth::cli
