// Commands in a process group of their own, marked so that what they leave behind is found.
#include "command.hpp"

// Boost.Asio 1.74 uses std::exchange without including it.
// clang-format off
#include <utility>
#include <boost/asio.hpp>
#include <boost/process.hpp>
// clang-format on
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace rdma_read::test {

namespace bp = boost::process;

namespace {

constexpr const char* kMark = "RDMA_READ_TEST_MARK";

// The command lines of all processes that carry the mark in their environment.
std::vector<std::string> marked_processes(const std::string& mark) {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", ignored)) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos
            || name == std::to_string(getpid())) {
            continue;
        }
        const auto content = [&](const char* file) {
            std::ifstream stream(entry.path() / file, std::ios::binary);
            return std::string(std::istreambuf_iterator<char>(stream), {});
        };
        if (content("environ").find(std::string(kMark) + "=" + mark) != std::string::npos) {
            std::string line = content("cmdline");
            std::ranges::replace(line, '\0', ' ');
            // What has ended and is not yet collected by its parent has no command line.
            if (!line.empty()) {
                found.push_back(name + " " + line);
            }
        }
    }
    return found;
}

std::string new_mark() {
    static std::atomic<int> count{0};
    return std::to_string(getpid()) + "-" + std::to_string(++count) + ";";
}

}  // namespace

struct Command::Parts {
    // Takes one pipe into a string, forever.
    void keep_reading(bp::async_pipe& pipe, std::string& into, std::array<char, 4096>& chunk) {
        pipe.async_read_some(boost::asio::buffer(chunk),
                             [this, &pipe, &into, &chunk](const boost::system::error_code& error,
                                                          std::size_t count) {
                                 into.append(chunk.data(), count);
                                 if (!error) {
                                     keep_reading(pipe, into, chunk);
                                 } else {
                                     --open_pipes;
                                 }
                             });
    }

    [[nodiscard]] bool ended() {
        if (!exited) {
            int status = 0;
            if (waitpid(child.id(), &status, WNOHANG) == child.id()) {
                exited = true;
                result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            }
        }
        return exited;
    }

    // Serves the pipes until `done`, the end of the command, or the limit.
    template <class Done>
    bool run_until(Done done) {
        while (!done()) {
            if (std::chrono::steady_clock::now() >= limit) {
                return false;
            }
            context.restart();
            context.run_for(std::chrono::milliseconds(10));
            if (context.stopped()) {
                std::this_thread::sleep_for(std::chrono::milliseconds(2));
            }
        }
        return true;
    }

    boost::asio::io_context context;
    bp::async_pipe out{context};
    bp::async_pipe err{context};
    std::array<char, 4096> out_chunk{};
    std::array<char, 4096> err_chunk{};
    std::string mark = new_mark();
    std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
    std::chrono::steady_clock::time_point limit;
    bp::group group;
    bp::child child;
    int open_pipes = 2;
    bool exited = false;
    CommandResult result;
};

Command::Command(const std::vector<std::string>& words, const CommandSettings& settings)
    : parts_(std::make_unique<Parts>()) {
    parts_->limit = parts_->started + settings.limit;
    // By env(1): looking for a variable in Boost.Process 1.74 reads beyond the ends of others.
    std::vector<std::string> arguments{
        // What a launcher needs on a small machine, as root or not.
        "OMPI_ALLOW_RUN_AS_ROOT=1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
        "OMPI_MCA_rmaps_base_oversubscribe=1",
        std::string(kMark) + "=" + parts_->mark,
    };
    for (const auto& [name, value] : settings.environment) {
        arguments.push_back(name + "=" + value);
    }
    const auto program = bp::search_path(words.front());
    if (program.empty() && words.front().find('/') == std::string::npos) {
        throw std::runtime_error(words.front() + ": no such program");
    }
    arguments.push_back(program.empty() ? words.front() : program.string());
    arguments.insert(arguments.end(), words.begin() + 1, words.end());
    parts_->child = bp::child(bp::exe = bp::search_path("env").string(), bp::args = arguments,
                              bp::std_in<bp::null, bp::std_out> parts_->out,
                              bp::std_err > parts_->err, parts_->group);
    parts_->keep_reading(parts_->out, parts_->result.out, parts_->out_chunk);
    parts_->keep_reading(parts_->err, parts_->result.err, parts_->err_chunk);
}

Command::~Command() {
    if (!parts_->ended()) {
        kill(-parts_->child.id(), SIGKILL);
        waitpid(parts_->child.id(), nullptr, 0);
    }
    // The group is gone; nothing is left for the library to wait for.
    parts_->group.detach();
    parts_->child.detach();
}

bool Command::wait_for_stderr(const std::string& text) {
    const auto said = [&] { return parts_->result.err.find(text) != std::string::npos; };
    parts_->run_until([&] { return said() || parts_->ended(); });
    return said();
}

const std::string& Command::said_on_stderr() const {
    return parts_->result.err;
}

void Command::send_signal(int signal_number) {
    kill(parts_->child.id(), signal_number);
}

int Command::process_id() const {
    return parts_->child.id();
}

CommandResult Command::finish() {
    CommandResult& result = parts_->result;
    result.timed_out = !parts_->run_until([&] { return parts_->ended(); });
    if (result.timed_out) {
        kill(-parts_->child.id(), SIGKILL);
        waitpid(parts_->child.id(), nullptr, 0);
        parts_->exited = true;
    }
    result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - parts_->started).count();
    // The rest of what was said, and the end of what was started: both a moment, not more.
    parts_->limit = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    parts_->run_until([&] { return marked_processes(parts_->mark).empty(); });
    parts_->run_until([&] { return parts_->open_pipes == 0; });
    result.left_over = marked_processes(parts_->mark);
    return result;
}

CommandResult run(const std::vector<std::string>& words, const CommandSettings& settings) {
    return Command(words, settings).finish();
}

}  // namespace rdma_read::test
