"""A Ray cluster: how to find or start one, ask how large it is, and notice when it is gone.

Ray waits a minute for a head that is gone, inside whatever call it is in, and then ends the whole
process without a word. So each call has a thread of its own, while this one checks that the head
still answers; if it does not, that thread is left behind.
"""

import atexit
import contextlib
import importlib.util
import logging
import os
import signal
import socket
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any, TypeVar

from cmdpax.errors import ClusterError, CmdpaxWarning, MissingPackageError, ParameterError, in_line
from cmdpax.experiments.cluster.scheduling import WorkerPool

AUTO = "auto"
_LOOPBACK = "127.0.0.1"
_SECONDS_TO_CONNECT = 3.0
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_LEAVE = 20.0
_LOOKS = 2  # that fail before the head counts as gone
_SETTINGS = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "86400",  # after which it ends the user's process
}

_SOON = {  # if something else than a head answers, Ray would try for minutes
    "RAY_gcs_rpc_server_connect_timeout_s": "3",
    "RAY_py_gcs_connect_timeout_s": "5",
    "RAY_gcs_server_request_timeout_seconds": "20",
}
_FEW_TRIES = {"NUM_REDIS_GET_RETRIES": 2}
_ON_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""Ray replaces 127.0.0.1 by an address that other machines can reach, unless this says that there
are none; in spite of its name it works on all systems."""

_QUIET: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}

Value = TypeVar("Value")


class Cluster:
    """A connection to a Ray cluster."""

    def __init__(self, ray: Any, address: str) -> None:
        """Take the module and the address of the head."""
        self.ray, self.address = ray, address

    def pool(self) -> WorkerPool:
        """The workers that are there now: GPUs if there are any, else cores."""
        nodes = self._nodes()
        if gpus := _workers(nodes, "GPU").values():
            return WorkerPool(sum(gpus), "GPU", max(gpus) > 1)
        return WorkerPool(sum(_workers(nodes, "CPU").values()), "CPU")

    def machines(self, kind: str) -> set[str]:
        """The names of the machines that have workers of a kind now."""
        return set(_workers(self._nodes(), kind))

    def addresses(self) -> dict[str, str]:
        """The addresses of all machines that are there now, by their names."""
        return {node["NodeID"]: node.get("NodeManagerAddress", "") for node in self._nodes()}

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self.call(self.ray.nodes) if node["Alive"]]

    def call(self, function: Callable[..., Value], *arguments: Any, **options: Any) -> Value:
        """Return or raise what a function of Ray does; ClusterError once the head is gone."""
        future: Future[Value] = Future()

        def run() -> None:
            try:
                future.set_result(function(*arguments, **options))
            except BaseException as error:
                future.set_exception(error)

        threading.Thread(target=run, daemon=True).start()
        in_vain = 0
        while not wait([future], _SECONDS_BETWEEN_LOOKS).done:
            in_vain = 0 if answers(self.address) else in_vain + 1
            if in_vain == _LOOKS:
                raise self._gone()
        return future.result()

    def require(self) -> None:
        """Raise if the head does not answer any more."""
        if not any(answers(self.address) for _ in range(_LOOKS)):
            raise self._gone()

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"the cluster at {self.address} is gone; what was reported done is kept: run the "
            "same command again when it is back, or without --cluster to finish here."
        )


def _workers(nodes: Sequence[dict[str, Any]], kind: str) -> dict[str, int]:
    """How many workers of a kind each machine has, if any; a GPU needs a core to be one."""
    needs = {"CPU", kind}
    counts = {
        node["NodeID"]: min(int(node["Resources"].get(name, 0)) for name in needs) for node in nodes
    }
    return {name: count for name, count in counts.items() if count > 0}


def answers(address: str) -> bool:
    """Whether anybody listens there."""
    try:
        with socket.create_connection(_host_and_port(address), timeout=_SECONDS_TO_CONNECT):
            return True
    except (OSError, UnicodeError):  # the latter for names that no host can have
        return False


def prepare(address: str) -> None:
    """Refuse what cannot be an address, and a machine without Ray, before anything is done.

    A driver computes next to nothing, so it must not take the memory of a GPU, as JAX does when it
    first uses one.
    """
    if address != AUTO:
        _host_and_port(str(address))
    if importlib.util.find_spec("ray") is None:
        raise MissingPackageError(
            "a cluster needs the package ray; run `pip install 'cmdpax[ray]'`."
        )
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


@contextlib.contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to a cluster; "auto" takes one that runs here, or starts one for itself.

    One that is started here listens on loopback alone.
    """
    with _environment(_settings(address)):
        import ray

        if ray.is_initialized():  # by whoever called us: it stays theirs
            yield _theirs(ray, address)
            return
        handler = signal.getsignal(signal.SIGTERM)
        try:
            with _constants(ray, {"ENABLE_RAY_CLUSTER": False} if _is_local(address) else {}):
                _connect(ray, address)
            _leave_when_told(handler)
            yield Cluster(ray, address if ":" in address else _head(ray))
        finally:
            _disconnect(ray)
            _handle(handler)


def _leave_when_told(before: Any) -> None:
    """Let the process end at SIGTERM as at any exit; Ray would end it with a dump."""

    def leave(*_: Any) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    _handle(before if callable(before) else leave)


def _handle(handler: Any) -> None:
    if threading.current_thread() is threading.main_thread() and handler is not None:
        signal.signal(signal.SIGTERM, handler)


@contextlib.contextmanager
def _constants(ray: Any, values: dict[str, Any]) -> Iterator[None]:
    """Change for a while what Ray read in the environment, in case it was imported earlier."""
    module = ray._private.ray_constants
    before = {name: getattr(module, name) for name in values if hasattr(module, name)}
    for name in before:
        setattr(module, name, values[name])
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


@contextlib.contextmanager
def _environment(settings: dict[str, str]) -> Iterator[None]:
    """Set for a while what Ray reads when it is imported and when it connects."""
    added = {name: value for name, value in settings.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _settings(address: str) -> dict[str, str]:
    own = _ON_LOOPBACK if _is_local(address) else {}
    token = Path.home() / ".ray" / "auth_token"
    if token.exists() or {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & set(os.environ):
        own = own | {"RAY_AUTH_MODE": "token"}  # a token is there to be used
    return _SETTINGS | own | (_SOON if address != AUTO else {})


def _is_local(address: str) -> bool:
    return address == AUTO or _is_loopback(_host_and_port(address)[0])


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or "/" in host or not port.isdecimal() or not 0 < int(port[:9]) < 2**16:
        raise ParameterError(
            f'cluster = "{address}" is neither "auto" nor an address such as 127.0.0.1:6379.'
        )
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def _normal(address: str) -> tuple[str, int]:
    host, port = _host_and_port(address)
    return (_LOOPBACK if _is_loopback(host) else host), port


def _head(ray: Any) -> str:
    return str(ray.get_runtime_context().gcs_address)


def _theirs(ray: Any, address: str) -> Cluster:
    head = _head(ray)
    if address != AUTO and _normal(address) != _normal(head):
        raise ClusterError(
            f"this process is connected to the cluster at {head} already, not to {address}; use "
            'cluster="auto", or call ray.shutdown() first.'
        )
    return Cluster(ray, head)


def require_answer(address: str) -> None:
    """Raise if nobody listens at an address."""
    if address != AUTO and not answers(address):
        raise _no_cluster(address, "nobody answers; start one with `ray start --head`.")


def _connect(ray: Any, address: str) -> None:
    if address == AUTO:
        found = _running_here(ray)
        if found is None:
            return _start(ray)
        address = found
    require_answer(address)
    said: list[str] = []
    try:
        with _kept_back(said), _environment(_SOON), _constants(ray, _FEW_TRIES):
            ray.init(address=address, **_QUIET)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        raise _no_cluster(address, _why(error, "".join(said))) from None


def _running_here(ray: Any) -> str | None:
    """The cluster that the environment names, or one on this machine that answers."""
    if named := os.environ.get("RAY_ADDRESS"):
        return None if named == "local" else named
    try:
        found = ray._private.services.get_ray_address_from_environment(AUTO, None)
    except ConnectionError:
        return None
    return found if found and answers(found) else None  # a file may name one that was killed


def _start(ray: Any) -> None:
    """Start a cluster of this process, on this machine alone; nobody else may read its token."""
    mask = os.umask(0o077)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"os\.fork\(\) was called")  # JAX: Ray execs at once
            own = {"address": "local", "include_dashboard": False}
            ray.init(_node_ip_address=_LOOPBACK, **own, **_QUIET)
    except (OSError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        text = in_line(error).rstrip(".")
        raise ClusterError(f"a Ray cluster cannot be started here: {text}.") from None
    finally:
        os.umask(mask)
    if not _is_loopback(_host_and_port(_head(ray))[0]):
        warnings.warn(
            f"Ray's ports are open to the network at {_head(ray)}; set "
            f"{'='.join(*_ON_LOOPBACK.items())} in the environment to close them.",
            CmdpaxWarning,
            stacklevel=2,
        )


@contextlib.contextmanager
def _kept_back(said: list[str]) -> Iterator[None]:
    """Collect what is written to standard error: Ray's library explains itself only there."""
    with tempfile.TemporaryFile() as file:
        try:
            before = os.dup(2)
        except OSError:  # it is closed
            yield
            return
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(before, 2)
            os.close(before)
            file.seek(0)
            said.append(file.read().decode(errors="replace"))


def _why(error: Exception, said: str) -> str:
    if "AuthToken" in said or "authenticat" in str(error).lower():
        return (
            "it asks for another token; set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or "
            "~/.ray/auth_token to that of the cluster, or RAY_ADDRESS=local to have auto start one."
        )
    text = in_line(f"{error} {error.__cause__ or ''}").rstrip(".")
    if "node info" in text:
        return (
            "this machine is not part of it; run `ray start --address=… --num-cpus=0` here first."
        )
    return f"{text}; is it the head of a Ray cluster?"


def _no_cluster(address: str, reason: str) -> ClusterError:
    return ClusterError(f"cannot connect to a Ray cluster at {address}: {reason}")


def _disconnect(ray: Any) -> None:
    """Leave the cluster, or the process would crash at exit; without a head it takes seconds."""

    def leave() -> None:
        with contextlib.suppress(Exception):
            ray.shutdown()

    thread = threading.Thread(target=leave, daemon=True)
    thread.start()
    thread.join(_SECONDS_TO_LEAVE)
    if thread.is_alive():
        atexit.unregister(ray.shutdown)  # it would wait there as well
