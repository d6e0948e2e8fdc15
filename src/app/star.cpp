// The story of a star run, rank by rank.
#include "app/star.hpp"

#include "app/atomic_file.hpp"
#include "app/check_in.hpp"
#include "app/collector.hpp"
#include "app/commentary.hpp"
#include "app/host.hpp"
#include "app/progress_line.hpp"
#include "app/say.hpp"
#include "rdma_read/rdma/error.hpp"
#include "rdma_read/verify/codec.hpp"
#include "rdma_read/verify/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cstring>
#include <future>
#include <optional>
#include <string_view>
#include <thread>

namespace rdma_read::app {

namespace {

using std::chrono::steady_clock;

// Between a reader's own deadline and the root's patience: time for its result to arrive.
constexpr std::chrono::seconds kGrace{5};
// What is left to report in once somebody asked to stop: mpirun(1) of Open MPI kills its ranks one
// second after it has told them.
constexpr std::chrono::milliseconds kStopGrace{400};
// Time for a server to choose a device and fill its buffer, and for all ranks to come.
constexpr std::chrono::seconds kPreparation{60};

// Starts the server, or says in the announcement why there is none: what fails before the broadcast
// is broadcast instead of the address, so that nobody waits for it.
verify::Announcement start_server(const RunContext& run, std::unique_ptr<Server>& server) {
    verify::Announcement announcement;
    announcement.server_rank = run.communicator.rank();
    announcement.server.rank = announcement.server_rank;
    announcement.server.host = host_name();
    try {
        announcement.run = verify::random_run_id();
        server = run.roles.serve({run.options, announcement.run, run.communicator.rank(),
                                  run.communicator.size(), host_name()});
        return server->announcement();
    } catch (const rdma::Error& error) {
        announcement.error = error.what();
        announcement.hint = error.hint();
    } catch (const std::exception& error) {
        announcement.error = error.what();
    }
    return announcement;
}

// One rank's part in a run. The root's part is Root.
class Rank {
  public:
    explicit Rank(const RunContext& run) : run_(run) { name_server(); }
    Rank(const Rank&) = delete;
    Rank& operator=(const Rank&) = delete;
    Rank(Rank&&) = delete;
    Rank& operator=(Rank&&) = delete;
    virtual ~Rank() = default;

    [[nodiscard]] virtual int play();

  protected:
    [[nodiscard]] const RunContext& run() const noexcept { return run_; }
    [[nodiscard]] cluster::Communicator& comm() const noexcept { return run_.communicator; }
    [[nodiscard]] bool serves() const noexcept { return comm().rank() == run_.options.server; }
    [[nodiscard]] const verify::Announcement& announcement() const { return announcement_; }
    // Ends the connections too: reads need no processor here, so whoever is still reading would not
    // notice otherwise.
    [[nodiscard]] verify::ServerInfo end_serving() {
        verify::ServerInfo info = server_->finish();
        server_.reset();
        return info;
    }
    // The server was given up while it was being started: to wait for its end may take long.
    [[nodiscard]] bool start_abandoned() const noexcept { return starting_.valid(); }
    [[nodiscard]] steady_clock::time_point root_deadline() const { return root_deadline_; }
    [[nodiscard]] const StopSignal& stop() const noexcept { return run_.stop; }

    // False if the server's rank was not heard of.
    [[nodiscard]] bool announce(const std::atomic<bool>* stop);
    [[nodiscard]] verify::Result read() const {
        verify::Result result = run_.roles.read({run_.options, announcement_, comm().rank(),
                                                 comm().size(), host_name(), stop().request()});
        if (stop().requested() && result.outcome == verify::Outcome::not_run) {
            result.stopped_by = stopped_by();
        }
        return result;
    }
    // "SIGTERM". Precondition: somebody asked to stop.
    [[nodiscard]] std::string stopped_by() const {
        return fmt::format("SIG{}", sigabbrev_np(stop().signal_number()));
    }

  private:
    // The server as far as it is known without its word.
    void name_server();
    // Starts the server unless this rank is told to stop meanwhile or it takes too long.
    [[nodiscard]] verify::Announcement prepared_server();

    const RunContext& run_;
    verify::Announcement announcement_;
    std::unique_ptr<Server> server_;
    std::future<verify::Announcement> starting_;  // valid only while the server is being started
    steady_clock::time_point root_deadline_;
};

void Rank::name_server() {
    announcement_.server_rank = run_.options.server;
    announcement_.server.rank = run_.options.server;
    // Only the root knows the hosts, and no check-in that was cut short made sure of the rank.
    const auto rank = static_cast<std::size_t>(run_.options.server);
    if (announcement_.server.host.empty() && rank < run_.hosts.size()) {
        announcement_.server.host = run_.hosts[rank];
    }
}

verify::Announcement Rank::prepared_server() {
    constexpr std::chrono::milliseconds kPause{20};
    // A large buffer takes long to fill and to register; in a thread of its own, so that this one
    // can say meanwhile that it is told to stop.
    starting_ = std::async(std::launch::async, [this] { return start_server(run_, server_); });
    const auto deadline = steady_clock::now() + kPreparation;
    bool ready = false;
    while (!ready && !stop().requested() && steady_clock::now() < deadline) {
        ready = starting_.wait_for(kPause) == std::future_status::ready;
    }
    if (ready) {
        return starting_.get();
    }
    verify::Announcement none;
    none.server.host = host_name();
    if (stop().requested()) {
        none.server.stopped_by = stopped_by();
        none.error = fmt::format("stopped by {} before the server was ready", stopped_by());
    } else {
        none.error = fmt::format("the server was not ready within {} s", kPreparation.count());
        none.hint = "a smaller --buffer is ready sooner";
    }
    return none;
}

bool Rank::announce(const std::atomic<bool>* stop) {
    std::vector<std::byte> bytes;
    if (serves()) {
        announcement_ = prepared_server();
        bytes = verify::encode(announcement_);
    }
    const bool heard =
        comm().broadcast(bytes, run_.options.server, cluster::Wait::lasting(kPreparation, stop));
    if (heard && !serves()) {
        announcement_ = verify::decode_announcement(bytes);
    }
    name_server();
    const auto wait = run_.options.longest_wait(static_cast<std::uint32_t>(comm().size()) - 1);
    root_deadline_ = steady_clock::now() + wait + run_.options.timeout + kGrace;
    return heard;
}

int Rank::play() {
    if (!announce(nullptr)) {
        // The root has noticed the same and ends the job once it has said so; who left before it
        // would make the launcher kill it in the middle of that.
        std::this_thread::sleep_for(kGrace);
        return 0;
    }
    if (!announcement().usable) {
        if (start_abandoned()) {
            // The root has the time to say so; to leave would be to wait for the server's start.
            std::this_thread::sleep_for(kGrace);
            run_.session.abort(verify::kExitNothingRead);
        }
        return 0;
    }
    const cluster::Wait wait{root_deadline() + kGrace};
    if (serves()) {
        // Nothing to do but to wait for the root's word that every reader has reported.
        const auto all_reported = static_cast<int>(Tag::stop_serving);
        if (!comm().receive(all_reported, {wait.deadline, &stop().flag()}) && stop().requested()) {
            // Whoever stops this rank likely stops them all. A reader that has not been told yet
            // must not take the end of the server for a failure of the path.
            (void)comm().receive(all_reported, cluster::Wait::lasting(kStopGrace));
        }
        verify::ServerInfo info = end_serving();
        if (stop().requested()) {
            info.stopped_by = stopped_by();
        }
        (void)comm().send(kRootRank, static_cast<int>(Tag::server_info), verify::encode(info),
                          wait);
    } else {
        (void)comm().send(kRootRank, static_cast<int>(Tag::result), verify::encode(read()), wait);
    }
    // MPI_Finalize waits for everybody, and burns a core while it does.
    (void)comm().barrier(wait);
    return 0;
}

// The rank that collects, judges and reports; it serves or reads besides.
class Root : public Rank {
  public:
    explicit Root(const RunContext& run) : Rank(run), started_(steady_clock::now()) {
        report_.started = utc_now();
        report_.tool_version = RDMA_READ_VERSION;
        report_.ranks = static_cast<std::uint32_t>(comm().size());
        report_.hosts = run.hosts;
        report_.pattern = "star";
        report_.options = options_for_report(run.options);
        report_.mpi = cluster::MpiSession::library_version();
        report_.verified = run.options.verify;
        report_.self_test = run.options.self_test;
        report_.sizes = run.options.sizes;
        if (!run.options.duration) {
            report_.reads = run.options.iterations;
        }
        if (!run.launch.slurm_job_id.empty()) {
            report_.slurm = verify::Slurm{run.launch.slurm_job_id, run.launch.slurm_step_id,
                                          run.launch.slurm_nodelist};
        }
    }

    [[nodiscard]] int play() override;

  private:
    // Puts the signal that asked this rank or another to stop into the report, if it cut anything
    // short. Precondition: all results are there.
    void note_interruption();
    void finish_server(verify::ServerInfo& info);
    // In the order of their numbers.
    [[nodiscard]] std::vector<std::size_t> missing_ranks() const;
    // Why nothing can be read, and what to do about it.
    struct Obstacle {
        std::string error;
        std::string hint;
    };
    // Precondition: the ranks, or they and the server, did not come together.
    [[nodiscard]] Obstacle what_was_missing() const;
    [[nodiscard]] int nothing_to_read(const Obstacle& obstacle);
    [[nodiscard]] int write_reports(int exit_code);
    [[nodiscard]] int print(int exit_code);

    steady_clock::time_point started_;
    verify::Report report_;
};

int Root::play() {
    if (stop().requested() || !missing_ranks().empty() || !announce(&stop().flag())) {
        // A collective call is outstanding or was never made, so there is no orderly end.
        run().session.abort(nothing_to_read(what_was_missing()));
    }
    if (!announcement().usable) {
        const int exit_code = nothing_to_read({announcement().error, announcement().hint});
        if (start_abandoned() || !announcement().server.stopped_by.empty()) {
            run().session.abort(exit_code);
        }
        return exit_code;
    }
    Collector collector(comm(), announcement(), run().hosts);
    if (!serves()) {
        collector.add(read());
    }
    {
        ProgressLine progress(run().options.progress);
        const auto show = [&](auto done, auto expected) { progress.show(done, expected); };
        collector.collect({root_deadline(), &stop().flag()}, show);
        if (stop().requested()) {
            collector.collect(cluster::Wait::lasting(kStopGrace), show);
        }
    }
    verify::ServerInfo info = announcement().server;
    finish_server(info);
    report_.run = announcement().run;
    report_.servers = {info};
    report_.results =
        stop().requested()
            ? collector.results(
                verify::Outcome::not_run,
                fmt::format("the run was stopped by {} before this rank reported", stopped_by()),
                "")
            : collector.results(
                verify::Outcome::timeout, "nothing was heard of this rank by the deadline",
                "its process or host may be stuck or dead; look at both, or give more time with "
                "--timeout");
    note_interruption();
    explain_bounds(report_, run().options);
    warn_of_shared_cores(report_, run().options);
    for (const std::string& warning : collected_warnings(report_)) {
        say(kMpiProgram, warning);
    }
    const int exit_code = print(verify::judge(report_).exit_code);
    const cluster::Wait wait = stop().requested()
                                   ? cluster::Wait::lasting(kGrace)
                                   : cluster::Wait{root_deadline() + kGrace, &stop().flag()};
    if (!collector.complete() || !comm().barrier(wait)) {
        // Somebody will never come to MPI_Finalize; the others must not wait for it.
        run().session.abort(exit_code);
    }
    return exit_code;
}

void Root::note_interruption() {
    // Who has read all there was to read is not failed for a signal that came too late to matter: a
    // batch job that is cancelled at its last moment has verified its nodes. Whatever is missing
    // makes the verdict FAIL by itself, so table, JSON and exit code agree.
    if (verify::judge(report_).exit_code == verify::kExitPass) {
        return;
    }
    if (stop().requested()) {
        report_.interrupted = stopped_by();
        return;
    }
    // Whoever stops all ranks may reach this one last, when all the others have reported.
    for (const verify::ServerInfo& server : report_.servers) {
        if (!server.stopped_by.empty()) {
            report_.interrupted = server.stopped_by;
        }
    }
    for (const verify::Result& result : report_.results) {
        if (!result.stopped_by.empty()) {
            report_.interrupted = result.stopped_by;
        }
    }
}

void Root::finish_server(verify::ServerInfo& info) {
    if (serves()) {
        info = end_serving();
        return;
    }
    // If the server's rank is gone, what it announced is all that is known.
    const cluster::Wait wait = cluster::Wait::lasting(kGrace, &stop().flag());
    std::optional<cluster::Message> message;
    if (comm().send(run().options.server, static_cast<int>(Tag::stop_serving), {}, wait)) {
        message = comm().receive(static_cast<int>(Tag::server_info), wait);
    }
    if (!message && !stop().requested()) {
        // Its readers may have missed nothing: reads need no process at the server.
        say(kMpiProgram,
            fmt::format("rank {} on {}, which served, does not answer: its process may be stopped; "
                        "look at it before the next run",
                        info.rank, info.host));
    }
    if (message && message->error.empty()) {
        try {
            info = verify::decode_server_info(message->bytes);
        } catch (const verify::CodecError& error) {
            say(kMpiProgram, fmt::format("the server's closing message: {}", error.what()));
        }
    }
}

std::vector<std::size_t> Root::missing_ranks() const {
    std::vector<std::size_t> missing;
    for (std::size_t rank = 0; rank < run().hosts.size(); ++rank) {
        if (run().hosts[rank].empty()) {
            missing.push_back(rank);
        }
    }
    return missing;
}

Root::Obstacle Root::what_was_missing() const {
    const auto missing = missing_ranks();
    const std::string who =
        fmt::format("rank{} {}", missing.size() == 1 ? "" : "s", fmt::join(missing, ", "));
    if (stop().requested()) {
        return {fmt::format("stopped by {} before {}", stopped_by(),
                            missing.empty() ? "the server was ready" : who + " had come"),
                ""};
    }
    if (!missing.empty()) {
        return {fmt::format("{} did not come within {} s of the start", who,
                            run().roles.patience.count()),
                "a process or its host may be stuck; look at both"};
    }
    return {fmt::format("rank {}, the server's, was not heard of within {} s", run().options.server,
                        kPreparation.count()),
            "look at its host and its output"};
}

int Root::nothing_to_read(const Obstacle& obstacle) {
    say(kMpiProgram, with_hint(obstacle.error, obstacle.hint));
    report_.run = announcement().run;
    report_.servers = {announcement().server};
    report_.results = Collector(comm(), announcement(), run().hosts)
                          .results(verify::Outcome::not_run, obstacle.error, obstacle.hint);
    note_interruption();
    return print(verify::kExitNothingRead);
}

int Root::write_reports(int exit_code) {
    report_.elapsed_s = std::chrono::duration<double>(steady_clock::now() - started_).count();
    if (!run().options.json) {
        return exit_code;
    }
    const std::string text = verify::to_json(report_);
    try {
        if (*run().options.json == "-") {
            run().out.write(text);
        } else {
            write_whole(*run().options.json, text);
        }
    } catch (const std::exception& error) {
        say(kMpiProgram, fmt::format("the JSON report was not written: {}", error.what()));
        return exit_code == verify::kExitPass ? verify::kExitFail : exit_code;
    }
    return exit_code;
}

int Root::print(int exit_code) {
    if (run().options.json != "-") {
        try {
            // A launcher gives its ranks a terminal of their own, whatever it does with their
            // output.
            const bool colour = run().out.is_terminal() && !run().launch.rank;
            run().out.write(verify::to_text(report_, colour));
        } catch (const std::exception& error) {
            say(kMpiProgram, fmt::format("the table was not printed: {}", error.what()));
            exit_code = exit_code == verify::kExitPass ? verify::kExitFail : exit_code;
        }
    }
    return write_reports(exit_code);
}

constexpr const char* kStartWithPmi =
    "start with srun --mpi=pmix, or with mpirun inside the allocation";

// Why MPI cannot be initialised here, if that is known beforehand: Open MPI would end the process
// with advice about building Slurm.
std::optional<std::string> no_start(const cluster::LaunchEnvironment& launch) {
    if (!launch.without_pmi
        || cluster::MpiSession::library_version().find("Open MPI") == std::string::npos) {
        return std::nullopt;
    }
    const int tasks = launch.slurm_tasks.value_or(1);
    return fmt::format("Slurm started {} {} without the PMI that Open MPI needs; {}", tasks,
                       tasks == 1 ? "task" : "tasks", kStartWithPmi);
}

// Why a job of this many ranks cannot read anything, if so.
std::optional<std::string> too_few(const cluster::LaunchEnvironment& launch, int size) {
    if (size >= 2) {
        return std::nullopt;
    }
    if (launch.slurm_tasks.value_or(1) > 1) {
        return fmt::format(
            "Slurm started {} tasks, but MPI sees one rank alone: the tasks were started without a "
            "PMI; {}",
            *launch.slurm_tasks, kStartWithPmi);
    }
    return "one rank alone has nobody to read from; start at least two: mpirun -np 2 rdma_read_mpi";
}

void answer(const EarlyExit& early, const ResultStream& out) {
    if (early.to_stderr) {
        print_to_stderr(early.text);
    } else {
        out.write(early.text);
    }
}

// Whether this process tells the user what is wrong with the whole job. Beside the launcher's word
// stands MPI's: a lone rank speaks whatever rank variables it inherited, unless it is one of
// several tasks that found no PMI and are alone all together.
bool speaks(const cluster::LaunchEnvironment& launch, const cluster::Communicator& communicator) {
    return launch.speaks || (communicator.size() == 1 && launch.slurm_tasks.value_or(1) == 1);
}

// `early` is the answer to a command line that asks for no run or is wrong; its ranks come together
// with the others before they leave, so that nobody waits in MPI_Init for one that has left.
int run_parsed(const Options* options, const EarlyExit* early,
               const cluster::LaunchEnvironment& launch, const ResultStream& out,
               const Roles& roles) {
    if (const auto problem = no_start(launch)) {
        if (launch.speaks && early == nullptr) {
            say(kMpiProgram, *problem);
        }
        return early != nullptr ? early->code : verify::kExitNothingRead;
    }
    cluster::MpiSession session;
    // After MPI_Init and gone before MPI_Finalize, either of which may hang and must be killable
    // then. Each rank has its own: a launcher that is told to stop tells all of them, and what a
    // reader knows by then belongs into the report.
    const StopSignal stop;
    cluster::Communicator communicator(session);
    try {
        if (early != nullptr && !launch.speaks && speaks(launch, communicator)) {
            answer(*early, out);
        }
        const CheckIn together = check_in(communicator, options, early == nullptr ? 0 : early->code,
                                          stop.flag(), roles.patience);
        if (together.exit_code) {
            return *together.exit_code;
        }
        if (const auto problem = too_few(launch, communicator.size())) {
            if (speaks(launch, communicator)) {
                say(kMpiProgram, *problem);
            }
            return verify::kExitNothingRead;
        }
        return run_star(
            {*options, launch, session, stop, communicator, out, together.hosts, roles});
    } catch (const std::exception& error) {
        say(kMpiProgram, fmt::format("rank {}: {}", communicator.rank(), error.what()));
        session.abort(verify::kExitFail);
    }
}

}  // namespace

int run_star(const RunContext& run) {
    return run.communicator.rank() == kRootRank ? Root(run).play() : Rank(run).play();
}

int rdma_read_mpi_main(int argc, const char* const* argv, const Roles& roles) {
    const ResultStream out;
    const auto launch = cluster::LaunchEnvironment::from_environment();
    const ParsedOptions parsed = parse_options(argc, argv);
    const auto* const early = std::get_if<EarlyExit>(&parsed);
    if (early == nullptr) {
        return run_parsed(&std::get<Options>(parsed), nullptr, launch, out, roles);
    }
    // All ranks find the same; one says it, at once.
    if (launch.speaks) {
        answer(*early, out);
    }
    const bool alone = !launch.rank.has_value() || launch.size == 1;
    return alone ? early->code : run_parsed(nullptr, early, launch, out, roles);
}

}  // namespace rdma_read::app
