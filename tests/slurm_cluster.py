"""Runs the pipeline through a real Slurm of one machine, and compares it with a local run.

Installs Debian's Slurm if it is not there, starts it on the loopback address, and stops it at the
end. It writes /etc/slurm, so it runs only as root and with CI=true, or with the word ``allowed``.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb

REPOSITORY = Path(__file__).parent.parent
SHARDS = 4
TIMINGS = ("runtime_ms", "relative_runtime_to_kernel_launch", "is_overhead_dominated_op")
"""The published columns that may differ: all that follows from a clock."""

TABLES = {
    "backend_bench_problems": TIMINGS,
    "operator_input_models_mapping": (),
    "tags": ("is_overhead_dominated_op",),
}
"""What is compared, and what may differ in it."""

ETC = Path("/etc/slurm")
MARK = "# written by tests/slurm_cluster.py"
PORTS = (6817, 6818)

TRACES = {
    "timm/one.txt": """Operator: aten.add.Tensor
cnt: 3, ((T([64, 128], f32), T([64, 128], f32)), {})
cnt: 1, ((T([64, 128], f32, stride=(1, 64)), T([], f32)), {})
Operator: aten.relu_.default
cnt: 2, ((T([32, 64], f32),), {})
Operator: aten.native_dropout.default
cnt: 1, ((T([8, 8], f32), 0.1, True), {})
Operator: aten.mm.default
cnt: 1, ((T([32, 64], f32), T([64, 16], f32)), {})
cnt: 2, ((T([64, 64], f32), T([64, 64], f32)), {})
""",
    "huggingface/two.train.txt": """Operator: aten.add.Tensor
cnt: 4, ((T([64, 128], f32), T([64, 128], f32)), {})
Operator: aten.embedding.default
cnt: 1, ((T([100, 16], f32), T([2, 30], i64)), {})
Operator: aten.softmax.int
cnt: 5, ((T([4, 100], f32), -1), {})
Operator: aten.upsample_nearest2d_backward.vec
cnt: 1, ((T([1, 2, 4, 4], f32), None, [1, 2, 2, 2], [2.0, 2.0]), {})
Operator: aten.exp.default
cnt: 0, ((T([16, 16], f32),), {})
""",
}


def main() -> None:
    """Say why it cannot run here, or run."""
    reason = obstacle()
    if reason:
        print(f"skipped: {reason}")
        return
    if not shutil.which("slurmctld") or not shutil.which("munged"):
        install()
    with tempfile.TemporaryDirectory(prefix="slurm-") as name:
        folder = Path(name)
        for trace, text in TRACES.items():
            (folder / "traces" / trace).parent.mkdir(parents=True, exist_ok=True)
            (folder / "traces" / trace).write_text(text)
        snakemake(folder, "local", "--cores", "2")
        with cluster(folder / "cluster"):
            snakemake(folder, "slurm", *through_slurm())
        rows = compare(folder / "local", folder / "slurm")
        journals = sorted((folder / "slurm/results/measurements").glob("*.parquet"))
        if len(journals) != SHARDS:
            sys.exit(f"{SHARDS} shards were asked for, {len(journals)} were measured")
    print(f"{rows} problems, equal to a local run in all but {', '.join(TIMINGS)}")
    print(f"{SHARDS} shards on Slurm")


def obstacle() -> str | None:
    """Why this machine must not be used, if so."""
    if os.geteuid() != 0:
        return "Slurm's daemons need root here"
    if os.environ.get("CI") != "true" and "allowed" not in sys.argv[1:]:
        return "it changes /etc/slurm; allow it with CI=true"
    if not shutil.which("apt-get"):
        return "it installs Debian's Slurm, and there is no apt-get"
    conf = ETC / "slurm.conf"
    if conf.exists() and MARK not in conf.read_text().splitlines():
        return f"{conf} is there: this machine has a Slurm of its own"
    for port in PORTS:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return f"port {port} is taken: a Slurm is running here"
    return None


def install() -> None:
    """Debian's Slurm; its packages start no daemon here."""
    quiet = {"stdout": subprocess.DEVNULL, "check": True}
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(["apt-get", "update", "-qq"], env=environment, **quiet)
    packages = ["--no-install-recommends", "slurm-wlm", "munge"]
    subprocess.run(["apt-get", "install", "-y", "-qq", *packages], env=environment, **quiet)


def snakemake(folder: Path, name: str, *options: str) -> None:
    """The main job on the small traces, with outputs under a folder of this name."""
    started = time.monotonic()
    command = [sys.executable, "-m", "snakemake", "-s", REPOSITORY / "Snakefile"]
    command += ["--directory", folder / name, *options]
    shards = SHARDS if name == "slurm" else 1
    command += ["--config", f"traces={folder / 'traces'}", f"shards={shards}", "device=cpu"]
    command += ["--", *(f"results/{table}.parquet" for table in TABLES)]
    # A run on a cluster that never ends is a known fault of wrong settings.
    subprocess.run(["timeout", "-k", "10", "330", *command], check=True)
    print(f"{name}: {time.monotonic() - started:.0f} s", flush=True)


def through_slurm() -> list[str]:
    """The profile that the repository ships, made small enough for one machine."""
    return [
        *("--workflow-profile", str(REPOSITORY / "profiles/slurm")),
        *("--default-resources", "mem_mb=1500", "runtime=10"),
        *("--cores", "2", "--max-threads", "1", "--set-threads", "measure=1"),
        *("--set-resources", "measure:gpu=1", "measure:mem_mb=1500", "measure:runtime=10"),
        *("--latency-wait", "5"),
        *("--slurm-init-seconds-before-status-checks", "1"),
        *("--seconds-between-status-checks", "1"),
    ]


def compare(local: Path, slurm: Path) -> int:
    """The number of problems; ends with the difference where there is one."""
    rows = 0
    for table, timings in TABLES.items():
        files = [folder / f"results/{table}.parquet" for folder in (local, slurm)]
        ours, theirs = (
            duckdb.sql(f"SELECT * EXCLUDE ({', '.join(timings)}) FROM read_parquet('{file}')")
            if timings
            else duckdb.sql(f"FROM read_parquet('{file}')")
            for file in files
        )
        if ours.fetchall() != theirs.fetchall():
            ours.except_(theirs).show()
            theirs.except_(ours).show()
            sys.exit(f"{table} differs: above, rows only of the local run, then only of Slurm")
        rows = rows or len(ours)
    return rows


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[None]:
    """A Slurm of one node with a GPU that is none (scheduling is what it is for)."""
    folder.mkdir()
    had_etc = ETC.exists()
    ETC.mkdir(exist_ok=True)
    configure(folder)
    daemons: list[subprocess.Popen[bytes]] = []
    try:
        start(daemons, folder, "munged", *munge_options(folder))
        wait_for("munged", (folder / "munge.socket").exists, folder)
        start(daemons, folder, "slurmctld", "-D", "-f", str(ETC / "slurm.conf"))
        start(daemons, folder, "slurmd", "-D", "-N", "localhost", "-f", str(ETC / "slurm.conf"))
        wait_for("slurmd", is_idle, folder)
        yield
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(10)
            daemon.kill()
        for name in ("slurm.conf", "gres.conf"):
            (ETC / name).unlink()
        if not had_etc:
            ETC.rmdir()


def configure(folder: Path) -> None:
    """Write Slurm's configuration; ``srun`` inside a job looks for it in this place only."""
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    (ETC / "slurm.conf").write_text(f"""{MARK}
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=5,bf_interval=5,batch_sched_delay=0,sched_min_interval=0
MinJobAge=300
ReturnToService=2
GresTypes=gpu
NodeName=localhost NodeAddr=127.0.0.1 CPUs={os.cpu_count()} RealMemory=6000 Gres=gpu:1 State=UNKNOWN
PartitionName=cpu Nodes=localhost Default=YES State=UP
""")
    (ETC / "gres.conf").write_text("NodeName=localhost Name=gpu Count=1 File=/dev/null\n")


def munge_options(folder: Path) -> list[str]:
    """Everything of munge's in our folder."""
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed"}
    options = [f"--{option}={folder}/munge.{end}" for option, end in files.items()]
    return ["--foreground", "--force", f"--log-file={folder}/munge.log", *options]


def start(
    daemons: list[subprocess.Popen[bytes]], folder: Path, program: str, *options: str
) -> None:
    """A daemon in the foreground form, so that it can be ended by its own id."""
    with (folder / f"{program}.out").open("wb") as output:
        path = shutil.which(program) or f"/usr/sbin/{program}"
        daemons.append(
            subprocess.Popen(
                [path, *options],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        )


def is_idle() -> bool:
    """Whether the node takes jobs."""
    said = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True)
    return said.stdout.split() == ["idle"]


def wait_for(what: str, is_there: Callable[[], bool], folder: Path, seconds: float = 30) -> None:
    """Wait until it is there; else show what the daemons said."""
    deadline = time.monotonic() + seconds
    while not is_there():
        if time.monotonic() > deadline:
            for output in sorted(folder.glob("*.out")):
                print(f"--- {output.name}\n{output.read_text()[-2000:]}")
            sys.exit(f"{what} did not come up within {seconds:.0f} s")
        time.sleep(0.1)


if __name__ == "__main__":
    main()
