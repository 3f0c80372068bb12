"""The commands that make the side module: those of the direct path, for a folder of the recipe."""

from __future__ import annotations

from release.module.build import link_command
from release.module.ladder import optimise_command
from release.package.recipe.model import Linking


def commands(linking: Linking) -> list[list[str]]:
    """Return the link and, unless the variant is ``none``, the optimiser.

    They run in the folder that holds ``linking.names``, and the module comes to lie beside that folder.
    """
    profile = linking.profile
    module = f"../{linking.output}"
    link = link_command(linking.names, linking.init, profile, module)
    if linking.variant == "none":
        return [link]
    return [link, optimise_command(linking.variant, profile.optimise, module, module)]
