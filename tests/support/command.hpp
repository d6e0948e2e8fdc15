// Runs a command line under a time limit and keeps everything it said.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rdma_read::test {

struct CommandSettings {
    std::chrono::seconds limit{90};
    std::map<std::string, std::string> environment;  ///< on top of the test's own
};

/// For an mpirun that is going to end its ranks: leaves them the time that they take on a busy
/// machine, and not one second, before SIGKILL follows SIGTERM.
inline CommandSettings patient_launcher() {
    CommandSettings settings;
    settings.environment = {{"OMPI_MCA_odls_base_sigkill_timeout", "4"}};
    return settings;
}

struct CommandResult {
    int status = -1;  ///< exit status; 128 + n after signal n
    std::string out;
    std::string err;
    double seconds = 0;
    bool timed_out = false;              ///< the limit was reached and everything was killed
    std::vector<std::string> left_over;  ///< processes of the command that outlived it
};

/// A command that runs while the test does something else. Kills what is left of it at the end.
class Command {
  public:
    explicit Command(const std::vector<std::string>& words, const CommandSettings& settings = {});
    Command(const Command&) = delete;
    Command& operator=(const Command&) = delete;
    Command(Command&&) = delete;
    Command& operator=(Command&&) = delete;
    ~Command();

    /// Waits until stderr holds the text, or the limit or the end of the command came first.
    bool wait_for_stderr(const std::string& text);
    [[nodiscard]] const std::string& said_on_stderr() const;
    void send_signal(int signal_number);
    [[nodiscard]] int process_id() const;
    [[nodiscard]] CommandResult finish();

  private:
    struct Parts;
    std::unique_ptr<Parts> parts_;
};

CommandResult run(const std::vector<std::string>& words, const CommandSettings& settings = {});

}  // namespace rdma_read::test
