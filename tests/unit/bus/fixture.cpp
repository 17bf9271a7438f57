// SPDX-License-Identifier: Apache-2.0
#include "fixture.h"

#include "tests/paths.h"

#include <stdexcept>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace berth::test {

void become(uid_t uid) {
  // The library's wrapper would change every thread.
  if (syscall(SYS_setresuid, uid, uid, uid) != 0) throw std::runtime_error("setresuid failed");
}

Client::Client() : connection_(sdbus::createSystemBusConnection()) {}

std::string Client::get(const char* method) { return change(method).text; }

std::unique_ptr<sdbus::IProxy> Client::proxy(const std::string& path) {
  return sdbus::createProxy(*connection_, bus::ServiceName{bus::kServiceName}, sdbus::ObjectPath{path});
}

bool Client::pump(const std::function<bool()>& enough) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!enough()) {
    if (bus::process_one(*connection_)) continue;
    if (std::chrono::steady_clock::now() > deadline) return false;
    const bus::PollData data = bus::poll_data(*connection_);
    pollfd waited{data.fd, data.events, 0};
    poll(&waited, 1, 20);
  }
  return true;
}

std::unique_ptr<FakePolkit> FakePolkit::start(Answer answer) {
  auto connection = sdbus::createSystemBusConnection();
  std::unique_ptr<FakePolkit> polkit(new FakePolkit(std::move(connection), answer));
  polkit->connection_->requestName(bus::ServiceName{"org.freedesktop.PolicyKit1"});
  polkit->thread_ = std::thread([raw = polkit.get()] { raw->serve(); });
  return polkit;
}

FakePolkit::FakePolkit(std::unique_ptr<sdbus::IConnection> connection, Answer answer)
    : AdaptorInterfaces(*connection, sdbus::ObjectPath{"/org/freedesktop/PolicyKit1/Authority"}),
      connection_(std::move(connection)),
      answer_(answer) {
  registerAdaptor();
}

FakePolkit::~FakePolkit() {
  stopping_ = true;
  thread_.join();
  open_.clear();
  unregisterAdaptor();
}

void FakePolkit::serve() {
  try {
    while (!stopping_) {
      {
        const std::lock_guard lock(mutex_);
        if (bus::process_one(*connection_)) continue;
      }
      const bus::PollData data = bus::poll_data(*connection_);
      pollfd waited{data.fd, data.events, 0};
      poll(&waited, 1, 5);
    }
  } catch (const sdbus::Error&) {
    // The bus ended, as some tests have it.
  }
}

std::vector<FakePolkit::Question> FakePolkit::questions() const {
  const std::lock_guard lock(mutex_);
  return questions_;
}

void FakePolkit::release(bool authorised) {
  const std::lock_guard lock(mutex_);
  for (Reply& reply : open_) reply.returnResults({authorised, false, {}});
  open_.clear();
}

void FakePolkit::CheckAuthorization(Reply&& reply,
                                    sdbus::Struct<std::string, std::map<std::string, sdbus::Variant>> subject,
                                    std::string action_id, std::map<std::string, std::string>,
                                    std::uint32_t flags, std::string) {
  // serve() holds the lock.
  questions_.push_back(
      {subject.get<0>(), subject.get<1>().at("name").get<std::string>(), std::move(action_id), flags});
  if (answer_ == Answer::never) {
    open_.push_back(std::move(reply));
  } else {
    reply.returnResults({answer_ == Answer::yes, answer_ == Answer::challenge, {}});
  }
}

bool BusServiceTest::root() { return geteuid() == 0; }

void BusServiceTest::SetUp() {
  bus_ = std::make_unique<PrivateBus>(BERTH_BUS_DIR "/org.berth.Node1.conf");
  ASSERT_GE(sd_event_new(&event_), 0);
  control_.add("system.slice/web@1.service");
  start_service();
  if (service_->link() == daemon::Link::lost && !root()) GTEST_SKIP() << service_->problem();
  ASSERT_EQ(service_->link(), daemon::Link::up) << service_->problem();
}

void BusServiceTest::start_service() {
  auto service = daemon::BusService::start(event_, control_);
  ASSERT_TRUE(service) << service.error().message();
  service_ = std::move(*service);
  serve_until([&] { return service_->link() != daemon::Link::connecting; });
}

std::string BusServiceTest::problem_of_another() {
  FakeControl control;
  sd_event* event = nullptr;
  sd_event_new(&event);
  std::string problem;
  {
    auto service = daemon::BusService::start(event, control);
    while (service && (*service)->link() == daemon::Link::connecting) sd_event_run(event, 5000);
    problem = service ? (*service)->problem() : service.error().message();
  }
  sd_event_unref(event);
  return problem;
}

void BusServiceTest::TearDown() {
  service_.reset();
  sd_event_unref(event_);
  bus_.reset();
}

void BusServiceTest::serve_until(const std::function<bool()>& enough) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!enough()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "nothing came of it";
    sd_event_run(event_, 5000);
  }
}

void BusServiceTest::settle() {
  while (sd_event_run(event_, 0) > 0) {
  }
}

bool BusServiceTest::left_unserved() const {
  return eventually([this] {
    pollfd loop{sd_event_get_fd(event_), POLLIN, 0};
    return poll(&loop, 1, 0) > 0;
  });
}

}  // namespace berth::test
