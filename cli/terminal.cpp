// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

namespace berth::cli {

namespace {

// xterm's control sequences, which every present terminal has: alternate screen, no cursor, no line wrap.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kLeave = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearLine = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

// A terminal that takes no output, as after Ctrl-S, has this long to take the rest.
constexpr std::chrono::milliseconds kPatience{200};
// A terminal that can take output takes at least this much at once (a pseudo terminal of Linux takes more).
constexpr std::size_t kChunk = 128;

// The terminal on standard output again, not blocking for this program alone; -1 where it may not be opened.
int open_unblocked() { return open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); }

sigset_t handled_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGQUIT, SIGHUP, SIGTSTP, SIGCONT, SIGWINCH}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

Event key_event(Key key, char character = 0) { return {Event::Kind::key, key, character, 0}; }

struct Sequence {
  std::string_view bytes;
  Key key;
};

// The bytes of keys in both cursor modes, on xterm, the Linux console, screen and rxvt.
constexpr std::array kSequences{
    Sequence{"\x1b[A", Key::up},    Sequence{"\x1bOA", Key::up},       Sequence{"\x1b[B", Key::down},
    Sequence{"\x1bOB", Key::down},  Sequence{"\x1b[5~", Key::page_up}, Sequence{"\x1b[6~", Key::page_down},
    Sequence{"\x1b[H", Key::home},  Sequence{"\x1bOH", Key::home},     Sequence{"\x1b[1~", Key::home},
    Sequence{"\x1b[7~", Key::home}, Sequence{"\x1b[F", Key::end},      Sequence{"\x1bOF", Key::end},
    Sequence{"\x1b[4~", Key::end},  Sequence{"\x1b[8~", Key::end}};

// An escape sequence's bytes up to and with its last one (ECMA-48, 5.4), or as many as there are.
std::size_t sequence_length(std::string_view typed) {
  if (typed.size() < 2 || (typed[1] != '[' && typed[1] != 'O')) return 1;
  std::size_t length = 2;
  while (length < typed.size() && (typed[length] < '@' || typed[length] > '~')) ++length;
  return std::min(length + 1, typed.size());
}

}  // namespace

std::optional<std::pair<Event, std::size_t>> next_key(const std::string& typed) {
  if (typed.empty()) return std::nullopt;
  const std::string_view text = typed;
  for (const Sequence& sequence : kSequences) {
    if (text.starts_with(sequence.bytes)) return std::pair(key_event(sequence.key), sequence.bytes.size());
  }
  const char first = text.front();
  if (first == '\x1b') return std::pair(key_event(Key::other), sequence_length(text));
  if (first == 'q') return std::pair(key_event(Key::quit, first), std::size_t{1});
  if (first == ' ' || first == '\r' || first == '\n')
    return std::pair(key_event(Key::space, ' '), std::size_t{1});
  return std::pair(key_event(Key::other, first), std::size_t{1});
}

struct Terminal::State {
  termios before{};
  sigset_t mask_before{};
  int signals = -1;
  int screen = -1;  // the descriptor for writing
  bool blocks = false;
  bool stuck = false;  // it takes no output
  bool entered = false;
  std::optional<Event> held;  // an event that came during a write
  bool input_ended = false;
  std::string typed;

  ~State() {
    if (signals >= 0) close(signals);
    if (screen >= 0 && screen != STDOUT_FILENO) close(screen);
  }

  // Waits until output is possible; false where waiting is pointless.
  bool writable(bool heeding_signals) {
    std::array<pollfd, 2> waited{pollfd{screen, POLLOUT, 0}, pollfd{signals, POLLIN, 0}};
    for (;;) {
      const int limit = heeding_signals ? -1 : static_cast<int>(kPatience.count());
      const int count = poll(waited.data(), heeding_signals ? 2 : 1, limit);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      if (waited[0].revents != 0) return (waited[0].revents & POLLOUT) != 0;
      stuck = true;
      held = take_signal();
      if (held->kind == Event::Kind::ended) return false;
    }
  }

  // The terminal may go away during the write; SIGHUP reports that too.
  void write_all(std::string_view text, bool heeding_signals) {
    while (!text.empty()) {
      if (!writable(heeding_signals)) {
        stuck = true;
        return;
      }
      const ssize_t count = write(screen, text.data(), blocks ? std::min(text.size(), kChunk) : text.size());
      if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (count <= 0) return;
      stuck = false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  // Changing the settings after the output would wait for a terminal that does not take it.
  void set(const termios& settings) const { tcsetattr(STDIN_FILENO, stuck ? TCSANOW : TCSAFLUSH, &settings); }

  void enter() {
    termios raw = before;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    set(raw);
    write_all(kEnter, false);
    entered = true;
  }

  void leave() {
    if (!entered) return;
    write_all(kLeave, false);
    set(before);
    entered = false;
  }

  Event take_signal() {
    signalfd_siginfo info{};
    if (read(signals, &info, sizeof info) != sizeof info) return {};
    const int signal = static_cast<int>(info.ssi_signo);
    switch (signal) {
      case SIGTSTP:
        leave();
        raise(SIGSTOP);
        enter();
        return {Event::Kind::resized, Key::other, 0, 0};
      case SIGCONT:  // perhaps after a SIGSTOP, which gives no notice
        enter();
        [[fallthrough]];
      case SIGWINCH:
        return {Event::Kind::resized, Key::other, 0, 0};
      default:
        return {Event::Kind::ended, Key::other, 0, signal};
    }
  }

  Event take_key() {
    if (typed.empty()) {
      std::array<char, 256> buffer{};
      const ssize_t count = read(STDIN_FILENO, buffer.data(), buffer.size());
      if (count > 0) typed.append(buffer.data(), static_cast<std::size_t>(count));
      // No user is there any more to type a q.
      if (count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN)) input_ended = true;
    }
    const auto key = next_key(typed);
    if (!key) return {};
    typed.erase(0, key->second);
    return key->first;
  }
};

Terminal::Terminal(std::unique_ptr<State> state) : state_(std::move(state)) {}

Outcome<std::unique_ptr<Terminal>> Terminal::take() {
  auto state = std::make_unique<State>();
  if (isatty(STDOUT_FILENO) == 0 || tcgetattr(STDIN_FILENO, &state->before) != 0) {
    return problem(Exit::failed, "standard input and output are not a terminal; --once needs none");
  }
  const sigset_t signals = handled_signals();
  state->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  if (state->signals < 0) {
    return problem(Exit::failed, "signalfd: " + std::generic_category().message(errno));
  }
  state->screen = open_unblocked();
  state->blocks = state->screen < 0;
  if (state->blocks) state->screen = STDOUT_FILENO;
  sigprocmask(SIG_BLOCK, &signals, &state->mask_before);
  state->enter();
  return std::unique_ptr<Terminal>(new Terminal(std::move(state)));
}

Terminal::~Terminal() {
  state_->leave();
  sigprocmask(SIG_SETMASK, &state_->mask_before, nullptr);
}

std::string drawing(const std::string& text, std::size_t height) {
  std::string screen(kHome);
  std::size_t row = 0;
  for (std::size_t begin = 0; begin < text.size() && row < height; ++row) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (row > 0) screen += "\r\n";
    // First: after a line that fills the terminal, it would take the last character.
    screen += kClearLine;
    screen.append(text, begin, end - begin);
    begin = end + 1;
  }
  if (row < height) screen += std::string("\r\n") + std::string(kClearBelow);
  return screen;
}

void Terminal::show(const std::string& text) { state_->write_all(drawing(text, rows()), true); }

Event Terminal::wait(std::chrono::milliseconds timeout, int fd, short events) {
  if (state_->held) return *std::exchange(state_->held, std::nullopt);
  if (!state_->typed.empty()) return state_->take_key();
  std::array<pollfd, 3> waited{pollfd{state_->signals, POLLIN, 0}, pollfd{STDIN_FILENO, POLLIN, 0},
                               pollfd{fd, events, 0}};
  const int count = poll(waited.data(), waited.size(), static_cast<int>(timeout.count()));
  if (count <= 0) return {};
  if (waited[0].revents != 0) return state_->take_signal();
  if (waited[1].revents == 0) return {};
  const Event event = state_->take_key();
  if (state_->input_ended) return {Event::Kind::ended, Key::other, 0, SIGHUP};
  return event;
}

std::size_t Terminal::rows() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0) return 24;
  return size.ws_row;
}

}  // namespace berth::cli
