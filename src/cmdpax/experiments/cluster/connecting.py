"""A Ray cluster: found or started, asked how large it is, noticed when it is gone.

Ray waits a minute for a head that is gone, inside whatever call it is in, and then ends the whole
process without a word. So all calls are made in a thread of their own, while this one looks whether
the head still answers; if not, that thread is left behind.
"""

import atexit
import contextlib
import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from cmdpax.errors import ClusterError, MissingPackageError

AUTO = "auto"
_LOOPBACK = "127.0.0.1"
_SECONDS_TO_CONNECT = 3.0
_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_LEAVE = 20.0
_LOOKS = 2  # in vain, until it counts as gone
_SETTINGS = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "86400",  # then it ends the process of the user
}

Value = TypeVar("Value")


class Cluster:
    """A connection to a Ray cluster."""

    def __init__(self, ray: Any, address: str) -> None:
        """With the module and the address of the head."""
        self.ray, self.address = ray, address

    def workers(self) -> tuple[int, str]:
        """How many batches can run at once, and on what: "GPU" if there are any, else "CPU"."""
        resources = self.call(self.ray.cluster_resources)
        kind = "GPU" if resources.get("GPU", 0) >= 1 else "CPU"
        return int(resources.get(kind, 0)), kind

    def call(self, function: Callable[..., Value], *arguments: Any, **options: Any) -> Value:
        """What a function of Ray returns or raises; ClusterError once the head is gone."""
        found: list[Value] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                found.append(function(*arguments, **options))
            except BaseException as error:
                raised.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        in_vain = 0
        while thread.is_alive():
            thread.join(_SECONDS_BETWEEN_LOOKS)
            in_vain = in_vain + 1 if thread.is_alive() and not answers(self.address) else 0
            if in_vain == _LOOKS:
                raise self._gone()
        if raised:
            raise raised[0]
        return found[0]

    def require(self) -> None:
        """Raise if the head does not answer any more."""
        if not any(answers(self.address) for _ in range(_LOOKS)):
            raise self._gone()

    def _gone(self) -> ClusterError:
        return ClusterError(
            f"the cluster at {self.address} is gone; what was reported done is kept: run the "
            "same command again when it is back, or without --cluster to finish here."
        )


def answers(address: str) -> bool:
    """Whether anybody listens there."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=_SECONDS_TO_CONNECT):
            return True
    except OSError:
        return False


@contextlib.contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to a cluster; "auto" takes one that runs here, or starts one for itself.

    Ray listens on all addresses of a machine even if it is told to use loopback; a cluster that is
    started here asks for the token of its user instead.
    """
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError:
        raise MissingPackageError(
            "a cluster needs the package ray; run `pip install 'cmdpax[ray]'`."
        ) from None
    _connect(ray, address)
    cluster = Cluster(ray, address if ":" in address else ray.get_runtime_context().gcs_address)
    try:
        yield cluster
    finally:
        _disconnect(ray)


def _connect(ray: Any, address: str) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if ":" in address and not answers(address):
        raise _no_cluster(address, "nobody answers")
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, ValueError, RuntimeError, ray.exceptions.RayError) as error:
        if address != AUTO:
            raise _no_cluster(address, str(error)) from None
        ray.init(_node_ip_address=_LOOPBACK, include_dashboard=False, **quiet)


def _no_cluster(address: str, reason: str) -> ClusterError:
    text = " ".join(reason.split()).rstrip(".")
    return ClusterError(
        f"cannot connect to a Ray cluster at {address}: {text}; start one with `ray start --head`."
    )


def _disconnect(ray: Any) -> None:
    """Without a head it takes five seconds; not to do it ends in a segmentation fault at exit."""

    def leave() -> None:
        with contextlib.suppress(Exception):
            ray.shutdown()

    thread = threading.Thread(target=leave, daemon=True)
    thread.start()
    thread.join(_SECONDS_TO_LEAVE)
    if thread.is_alive():
        atexit.unregister(ray.shutdown)  # it would wait there, too
