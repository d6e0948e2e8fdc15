// The rows of the fault matrix: what is broken, what must come of it, and one printed line for
// each.
#pragma once

#include "device_test.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace rdma_read::test {

/// How one side of a row must end.
struct End {
    int status = 0;
    std::string says;  ///< part of what it says on stderr
};

/// One fault between a server and a reader of the two-process form.
struct Row {
    std::string where;  ///< "reader", "server", "both", "network"
    std::string what;   ///< for a person
    std::string reader_fault;
    std::string server_fault;
    End reader;
    /// Unset: the server goes on, and proves it with a second, real reader.
    std::optional<End> server;
    /// Seconds the row may take; it has failed once they and 5 more are over.
    int deadline = 10;
    /// More than a busy machine takes, but where it is to be used up.
    std::string reader_timeout = "8";
    std::vector<std::string> server_options;
    /// Unset: what is wrong with the server is wrong for every reader.
    bool serves_others = true;
};

/// Settings under which a program meets faults, and the file that tells which of them struck.
[[nodiscard]] CommandSettings with_faults(const std::string& faults, const std::string& log,
                                          int deadline);
/// The words of a program that meets faults, for a launcher's line.
[[nodiscard]] std::vector<std::string> words_with_faults(const std::string& faults,
                                                         const std::string& log);

/// One row as it is played: `work` checks what must be, and returns what came of it, for the line.
struct Play {
    std::string where;
    std::string what;
    int deadline;
    std::function<std::string()> work;
};

/// What all tables have in common.
class FaultMatrix : public DeviceTest {
  protected:
    void SetUp() override;

    /// How many rows are played at a time.
    enum class Lanes { one = 1, two = 2 };

    /// Plays rows, prints the line of each, and checks what all have in common: the time, and that
    /// no RDMA object stays behind them.
    void play(const std::vector<Play>& plays, Lanes lanes = Lanes::two);
    /// Plays rows with a server for each.
    void play_rows(const std::vector<Row>& rows);
    /// Plays rows in which the readers are at fault at one server, which must outlive them all.
    void play_at_one_server(const std::vector<Row>& rows);

    /// Everything named has struck, as the log tells.
    static void expect_struck(const std::string& faults, const std::string& log);
    /// The log of a program that met none of its faults.
    [[nodiscard]] static bool is_empty_file(const std::string& log);
    /// A reader without fault gets the server's text.
    void expect_served(const std::string& port) const;
    /// A new file name in the test's folder.
    [[nodiscard]] std::string new_log();
    /// A reader that ended as it must; never with the text unless that is a success.
    static std::string expect_reader(const CommandResult& result, const End& end);

  private:
    [[nodiscard]] std::string run_reader(const Row& row, const std::string& port);
    [[nodiscard]] std::string run_row(const Row& row);

    std::atomic<int> logs_ = 0;
};

}  // namespace rdma_read::test
