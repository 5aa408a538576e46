"""Simulated live systems of different kinds: each is a model, a simulation and a declaration."""

from examples.systems.admission import Admission
from examples.systems.base import System
from examples.systems.heating import Heating
from examples.systems.inventory import Inventory
from examples.systems.kiln import Kiln
from examples.systems.pump import Pump
from examples.systems.robot import Robot

SYSTEMS: dict[str, type[System]] = {
    one.name: one for one in (Pump, Kiln, Heating, Admission, Inventory, Robot)
}
